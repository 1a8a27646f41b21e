"""The objects of a new cluster, each equal to the one that the real kubeadm of the release makes in the same case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from node import recorded
from node.conftest import VERSIONS

from slipway.api.kubeadm.internal import DNS, ClusterConfiguration, Networking
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.node.cluster.dryrun import as_printed
from slipway.workload import clusterinfo, coredns, kubeproxy, roles

if TYPE_CHECKING:
    from slipway.api.releases import Release


def cluster(version: str, **fields: Any) -> ClusterConfiguration:
    networking = Networking(service_subnet="10.96.0.0/12", dns_domain="cluster.local")
    return ClusterConfiguration(kubernetes_version=version, image_repository="registry.k8s.io", networking=networking, **fields)


def release_of(version: str) -> Release:
    return release_for(Version.parse(version))


def made(version: str) -> list[dict[str, Any]]:
    """All objects of our own whose content does not depend on keys, times or component configurations."""
    release, config = release_of(version), cluster(version)
    return [
        *(manifest for _, manifests in roles.for_joining_nodes(release) for manifest in manifests),
        *clusterinfo.access(),
        coredns.deployment(config, release),
        coredns.config_map(config),
        coredns.service(config),
        coredns.account(),
        *coredns.access(),
        *kubeproxy.access(),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_are_those_of_the_real_kubeadm(version: str) -> None:
    expected = recorded.objects(version)
    for manifest in made(version):
        identity = manifest["kind"], manifest["metadata"]["name"]
        assert recorded.as_text(as_printed(manifest, release_of(version))) == expected[identity], identity


@pytest.mark.parametrize("version", VERSIONS)
def test_the_kubelet_client_has_a_binding_where_the_release_makes_one(version: str) -> None:
    names = {manifest["metadata"]["name"] for _, manifests in roles.for_joining_nodes(release_of(version)) for manifest in manifests}
    assert ("kubeadm:apiserver-kubelet-client" in names) == (
        ("ClusterRoleBinding", "kubeadm:apiserver-kubelet-client") in recorded.objects(version)
    )


def test_administrators_are_bound_to_cluster_admin() -> None:
    # phases/kubeconfig/kubeconfig.go, EnsureAdminClusterRoleBindingImpl
    assert roles.cluster_admins() == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kubeadm:cluster-admins"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "name": "kubeadm:cluster-admins"}],
    }


def test_a_custom_repository_has_no_folder_for_coredns() -> None:
    config = cluster("v1.36.3", dns=DNS(image_repository="registry.example.org/k8s", image_tag="v9.9.9"))
    containers = coredns.deployment(config, release_of("v1.36.3"))["spec"]["template"]["spec"]["containers"]
    assert [container["image"] for container in containers] == ["registry.example.org/k8s/coredns:v9.9.9"]
