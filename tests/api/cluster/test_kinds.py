"""Where kinds are in the API."""

from __future__ import annotations

import pytest

from slipway.api.cluster import kinds


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (kinds.path(kinds.SECRET, "default", "a"), "/api/v1/namespaces/default/secrets/a"),
        (kinds.path(kinds.SECRET), "/api/v1/secrets"),
        (kinds.path(kinds.SECRET, "default"), "/api/v1/namespaces/default/secrets"),
        (kinds.path(kinds.NODE, name="n1"), "/api/v1/nodes/n1"),
        (kinds.path(kinds.NODE, "ignored", "n1", "status"), "/api/v1/nodes/n1/status"),
        (kinds.path(kinds.CLUSTER_ROLE, name="system:node"), "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"),
        (
            kinds.path(kinds.KUBEADM_CONFIG, "a/b", "c d", "status"),
            "/apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/a%2Fb/kubeadmconfigs/c%20d/status",
        ),
    ],
)
def test_an_object_has_one_path(path: str, expected: str) -> None:
    assert path == expected


def test_an_object_of_a_namespace_is_not_asked_for_without_one() -> None:
    with pytest.raises(ValueError, match='the Secret "a" is wanted without saying in which namespace it is'):
        kinds.path(kinds.SECRET, name="a")


def test_a_subresource_belongs_to_an_object() -> None:
    with pytest.raises(ValueError, match="without a name"):
        kinds.path(kinds.MACHINE, "default", subresource="status")


def test_the_api_version_of_the_core_group_is_its_version() -> None:
    assert kinds.SECRET.api_version == "v1"
    assert kinds.MACHINE.api_version == "cluster.x-k8s.io/v1beta2"
    assert kinds.MACHINE.list_kind == "MachineList"


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (("v1", "Pod", "default", "a"), "/api/v1/namespaces/default/pods/a"),
        (("v1", "Pod", "default"), "/api/v1/namespaces/default/pods"),
        (("v1", "Pod"), "/api/v1/pods"),
        (("v1", "Node", "", "n"), "/api/v1/nodes/n"),
        (("v1", "Namespace", "", "n"), "/api/v1/namespaces/n"),
        (("apps/v1", "Deployment", "kube-system", "coredns"), "/apis/apps/v1/namespaces/kube-system/deployments/coredns"),
        (
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:coredns"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns",
        ),
        (("v1", "Secret", "a", "b/../c?d"), "/api/v1/namespaces/a/secrets/b%2F..%2Fc%3Fd"),
    ],
)
def test_what_a_manifest_says_has_a_path(of: tuple[str, ...], path: str) -> None:
    assert kinds.path(kinds.named(*of[:2]), *of[2:]) == path


def test_a_kind_that_is_not_in_the_table_is_named() -> None:
    with pytest.raises(ValueError, match="the kind Widget"):
        kinds.named("example.com/v1", "Widget")
