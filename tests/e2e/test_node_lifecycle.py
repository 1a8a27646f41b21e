"""A cluster's whole life with Slipway as the node tool: made, grown, upgraded with a Service in use, and taken down."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from e2e import service
from e2e.nodes import IGNORED, OURS, Nodes, nodes, real_hosts

pytestmark = real_hosts

PLANES = ("host-1", "host-2", "host-3")
WORKERS = ("host-4", "host-5")
STEPS = (("v1.34.10", "v1.35.4"), ("v1.35.4", "v1.36.3"))


@pytest.fixture(scope="module", params=STEPS, ids=lambda step: "-to-".join(step))
def life(request: pytest.FixtureRequest) -> Iterator[tuple[Nodes, str]]:
    before, after = request.param
    with nodes(before, len(PLANES) + len(WORKERS), "life") as made:
        # An OS image of the next version is where its programs and container images come from.
        made.lab.run("image", "build", "--kubernetes-version", after, patience=3600)
        yield made, after


def test_a_cluster_is_made_of_three_control_planes_and_two_workers(life: tuple[Nodes, str]) -> None:
    cluster, _ = life
    cluster.init("host-1")
    for host in PLANES[1:]:
        cluster.join(host, control_plane=True)
    for host in WORKERS:
        cluster.join(host)
    cluster.wait_healthy()
    assert cluster.versions() == dict.fromkeys((*PLANES, *WORKERS), cluster.version)
    assert cluster.etcd_members() == dict.fromkeys(PLANES, False)
    assert cluster.control_planes() == list(PLANES)


def test_it_is_upgraded_while_a_service_is_in_use(life: tuple[Nodes, str], record_property: Callable[[str, object], None]) -> None:
    cluster, after = life
    url = service.deploy(cluster.lab)
    service.start_asking(cluster.lab, "host-4", url)
    # On every node, since a lab has no registry and the health check of an upgrade runs a Pod anywhere.
    for host in (*PLANES, *WORKERS):
        cluster.load(host, after)
    cluster.lab.on("host-1", f"{OURS} upgrade apply {after} --yes {IGNORED}")
    for host in (*PLANES[1:], *WORKERS):
        cluster.lab.on(host, f"{OURS} upgrade node {IGNORED}")
    for host in (*PLANES, *WORKERS):
        cluster.renew_kubelet(host)
    cluster.wait_healthy()
    asked = service.stop_asking(cluster.lab, "host-4")
    record_property("asked", asked["asked"])
    record_property("failures", asked["failures"])
    assert cluster.versions() == dict.fromkeys((*PLANES, *WORKERS), after)
    tags = cluster.api_server_images()
    assert {tag for name, tag in tags.items() if not name.startswith("etcd")} == {after}
    assert cluster.etcd_members() == dict.fromkeys(PLANES, False)
    stored = cluster.lab.kubectl("-n kube-system get configmap kubeadm-config -o jsonpath='{.data.ClusterConfiguration}'")
    assert f"kubernetesVersion: {after}" in stored
    assert "apiVersion: kubeadm.k8s.io/v1beta4" in stored
    print(f"{asked['asked']} questions, {len(asked['failures'])} without an answer: {asked['failures']}")
    assert asked["asked"] > 100
    assert asked["failures"] == []


def test_it_is_taken_down_node_by_node(life: tuple[Nodes, str]) -> None:
    cluster, _ = life
    cluster.lab.on("host-5", f"{OURS} reset --force")
    assert _left(cluster, "host-5") == ""
    cluster.lab.on("host-3", f"{OURS} reset --force")
    assert _left(cluster, "host-3") == ""
    assert cluster.etcd_members() == dict.fromkeys(PLANES[:2], False)
    cluster.lab.on("host-2", f"{OURS} reset --force")
    assert cluster.etcd_members() == {"host-1": False}
    cluster.lab.on("host-1", f"{OURS} reset --force")
    assert _left(cluster, "host-1") == ""
    assert cluster.lab.on("host-1", "ctr -n k8s.io containers list -q") == ""


def _left(cluster: Nodes, host: str) -> str:
    folders = "/etc/kubernetes/manifests /etc/kubernetes/pki /etc/kubernetes/*.conf /var/lib/etcd"
    return cluster.lab.on(host, f"find {folders} -type f", check=False)


def test_the_oldest_supported_minor_is_initialised() -> None:
    with nodes("v1.33.13", 1, "oldest") as cluster:
        cluster.init("host-1")
        cluster.wait_healthy()
        assert cluster.versions() == {"host-1": "v1.33.13"}
        assert cluster.etcd_members() == {"host-1": False}


@pytest.mark.smoke
def test_a_control_plane_and_a_worker_are_made_and_taken_down() -> None:
    with nodes("v1.35.4", 2, "smoke") as cluster:
        cluster.init("host-1")
        cluster.join("host-2")
        cluster.wait_healthy()
        assert cluster.versions() == {"host-1": "v1.35.4", "host-2": "v1.35.4"}
        cluster.lab.on("host-2", f"{OURS} reset --force")
        assert _left(cluster, "host-2") == ""
        cluster.lab.on("host-1", f"{OURS} reset --force")
        assert _left(cluster, "host-1") == ""
