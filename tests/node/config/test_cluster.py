"""The configuration that a cluster keeps of itself, in the form in which any kubeadm wrote it.

Inputs of old versions, and what a chain of real kubeadms made of them, are those of tests/golden/history.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.machine import Machine
from support.tlsserver import authority, leaf

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.machinery.yaml import goyaml
from slipway.api.releases import release_for
from slipway.node import paths
from slipway.node.cluster import imagined
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.config import cluster as clusterconfig
from slipway.workload import configmaps

if TYPE_CHECKING:
    from node.conftest import Lines

pytestmark = pytest.mark.recorded

HISTORY = Path(__file__).parents[2] / "golden/history"
RELEASE = release_for(Version.parse("v1.35.4"))


def document(path: Path, kind: str) -> str:
    """The document of a kind in a file, as a ConfigMap has it."""
    return next(goyaml.dump(found.value) for found in goyaml.load(path.read_text()) if found.value.get("kind") == kind)


def cluster(lines: Lines, data: dict[str, str], *, kubelet: str = "kubelet-config") -> DryRunCluster:
    objects = [item for item in imagined.objects(RELEASE, "") if item["metadata"]["name"] not in ("kubeadm-config", "kubelet-config")]
    text = next(item for item in imagined.objects(RELEASE, "") if item["metadata"]["name"] == "kubelet-config")["data"]
    return DryRunCluster(
        lines, RELEASE, imagined=[*objects, configmaps.config_map("kubeadm-config", data), configmaps.config_map(kubelet, text)]
    )


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_an_old_configuration_is_read_as_a_chain_of_kubeadms_would_have_made_it(version: str, lines: Lines) -> None:
    folder = HISTORY / "chain" / version
    made = cluster(lines, {"ClusterConfiguration": document(folder / "input.yaml", "ClusterConfiguration")})
    config = clusterconfig.read(made, RELEASE, lines, "upgrade").cluster
    wanted: dict[str, Any] = goyaml.load(document(folder / "v1.35.4.yaml", "ClusterConfiguration"))[0].value
    assert config.cluster_name == wanted["clusterName"]
    assert config.certificates_dir == wanted["certificatesDir"]
    assert config.control_plane_endpoint == wanted.get("controlPlaneEndpoint", "")
    assert config.networking.pod_subnet == wanted["networking"].get("podSubnet", "")
    shown = [{"name": argument.name, "value": argument.value} for argument in config.api_server.extra_args]
    assert shown == wanted["apiServer"].get("extraArgs", [])
    assert f"[upgrade] The configuration was written as kubeadm.k8s.io/{version} by an older release" in lines.said


@pytest.mark.parametrize(
    ("path", "kind", "key", "version"),
    [
        ("v1.11.10/v1alpha1_upgrade/before.yaml", "", "MasterConfiguration", "v1.9.6"),
        ("v1.11.10/conversion/master/v1alpha1.yaml", "MasterConfiguration", "MasterConfiguration", "v1.10.2"),
        ("v1.11.10/conversion/master/v1alpha2.yaml", "MasterConfiguration", "MasterConfiguration", "v1.10.2"),
        ("v1.12.10/conversion/master/v1alpha3.yaml", "ClusterConfiguration", "ClusterConfiguration", "v1.11.2"),
        ("v1.14.10/conversion/controlplane/v1beta1.yaml", "ClusterConfiguration", "ClusterConfiguration", "v1.12.2"),
    ],
)
def test_the_version_of_the_cluster_is_found_whoever_wrote_it(path: str, kind: str, key: str, version: str, lines: Lines) -> None:
    text = document(HISTORY / path, kind) if kind else (HISTORY / path).read_text()
    made = cluster(lines, {key: text})
    assert clusterconfig.kubernetes_version(made) == version
    config = clusterconfig.read(made, RELEASE, lines, "upgrade")
    assert config.cluster.kubernetes_version == version
    # What is a node's own does not come from the node that made the cluster.
    assert config.node_registration.name == ""
    assert config.local_api_endpoint.advertise_address == ""


def test_the_kubelet_configuration_of_an_old_release_has_the_version_in_its_name(lines: Lines) -> None:
    text = document(HISTORY / "chain/v1beta2/input.yaml", "ClusterConfiguration")
    made = cluster(lines, {"ClusterConfiguration": text}, kubelet="kubelet-config-1.21")
    assert configmaps.KUBELET_GROUP in clusterconfig.read(made, RELEASE, lines, "upgrade").cluster.component_configs


def test_what_is_missing_is_named(lines: Lines) -> None:
    with pytest.raises(OperatorError, match='there is no ConfigMap "kubeadm-config" in the namespace "kube-system"'):
        clusterconfig.read(DryRunCluster(lines, RELEASE), RELEASE, lines, "upgrade")
    with pytest.raises(
        OperatorError, match="unexpected error when reading kubeadm-config ConfigMap: ClusterConfiguration key value pair missing"
    ):
        clusterconfig.kubernetes_version(cluster(lines, {"ClusterStatus": "{}"}))
    text = document(HISTORY / "chain/v1beta2/input.yaml", "ClusterConfiguration")
    with pytest.raises(OperatorError, match='there is no ConfigMap "kubelet-config"'):
        clusterconfig.read(cluster(lines, {"ClusterConfiguration": text}, kubelet="other"), RELEASE, lines, "upgrade")


def test_a_node_without_the_annotation_has_its_runtime_in_a_file(lines: Lines, tmp_path: Path) -> None:
    release = release_for(Version.parse("v1.36.3"))
    machine = Machine(tmp_path).put(paths.KUBELET_INSTANCE_CONFIG, "containerRuntimeEndpoint: unix:///run/x.sock\n")
    made = DryRunCluster(lines, release, imagined=imagined.objects(release, ""), lists=imagined.lists(release, "node-1"))
    config = clusterconfig.fetch(made, release, machine, lines, "upgrade", name="node-1", is_control_plane=False)
    annotated = release.imagined_cri_socket
    assert config.node_registration.cri_socket == (annotated or "unix:///run/x.sock")
    assert config.node_registration.name == "node-1"


def test_a_control_plane_must_have_its_api_server_in_the_cluster(lines: Lines, tmp_path: Path) -> None:
    made = DryRunCluster(lines, RELEASE, imagined=imagined.objects(RELEASE, ""), lists=imagined.lists(RELEASE, "other"))
    config = clusterconfig.read(made, RELEASE, lines, "upgrade")
    with pytest.raises(OperatorError, match='API server pod for node name "node-1" has 0 entries, only one was expected'):
        clusterconfig.fill_in_node(config, made, "node-1", Machine(tmp_path), lines, is_control_plane=True, patience=0)


def test_a_node_has_the_name_of_its_kubelet_and_without_one_that_of_the_host(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.name = " Host.Example "
    assert clusterconfig.node_name(machine) == "host.example"
    machine.put("/var/lib/kubelet/pki/current.pem", leaf(authority()).certificate.decode())
    machine.put(
        paths.KUBELET_CONF,
        "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://h'}}]\n"
        "users: [{name: u, user: {client-certificate: /var/lib/kubelet/pki/current.pem}}]\n",
    )
    assert clusterconfig.node_name(machine) == "kube-apiserver"
