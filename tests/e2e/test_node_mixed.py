"""Nodes of one cluster made, upgraded and taken down by Slipway and by the real kubeadm in turn."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.nodes import IGNORED, OURS, REAL, Nodes, nodes, real_hosts

pytestmark = real_hosts

BEFORE, AFTER = "v1.34.10", "v1.35.4"


@pytest.mark.parametrize(("first", "second"), [(OURS, REAL), (REAL, OURS)], ids=["ours-then-real", "real-then-ours"])
def test_one_makes_the_cluster_and_the_other_grows_it(first: str, second: str) -> None:
    with nodes(AFTER, 3, "mixed") as cluster:
        cluster.init("host-1", first)
        cluster.join("host-2", second, control_plane=True)
        cluster.join("host-3", second)
        cluster.wait_healthy()
        assert cluster.etcd_members() == {"host-1": False, "host-2": False}
        assert cluster.control_planes() == ["host-1", "host-2"]
        # Each takes down what the other made.
        cluster.lab.on("host-3", f"{first} reset --force")
        cluster.lab.on("host-2", f"{first} reset --force")
        assert cluster.etcd_members() == {"host-1": False}
        cluster.lab.on("host-1", f"{second} reset --force")
        left = "find /etc/kubernetes/manifests /etc/kubernetes/pki /etc/kubernetes/*.conf /var/lib/etcd -type f"
        assert [cluster.lab.on(host, left, check=False) for host in ("host-1", "host-2", "host-3")] == ["", "", ""]


@pytest.mark.parametrize(("made", "applied", "followed"), [(REAL, OURS, REAL), (OURS, REAL, OURS)], ids=["ours-applies", "real-applies"])
def test_one_upgrades_what_the_other_made(made: str, applied: str, followed: str) -> None:
    with nodes(BEFORE, 2, "mixed") as cluster:
        cluster.lab.run("image", "build", "--kubernetes-version", AFTER, patience=3600)
        cluster.init("host-1", made)
        cluster.join("host-2", made, control_plane=True)
        cluster.wait_healthy()
        for host in ("host-1", "host-2"):
            cluster.load(host, AFTER)
        cluster.lab.on("host-1", f"{applied} upgrade apply {AFTER} --yes {IGNORED}", patience=900)
        cluster.lab.on("host-2", f"{followed} upgrade node {IGNORED}", patience=900)
        for host in ("host-1", "host-2"):
            cluster.renew_kubelet(host)
        cluster.wait_healthy()
        assert {tag for name, tag in cluster.api_server_images().items() if not name.startswith("etcd")} == {AFTER}
        assert cluster.versions() == {"host-1": AFTER, "host-2": AFTER}
        assert cluster.etcd_members() == {"host-1": False, "host-2": False}


@pytest.fixture(scope="module", params=["v1.35.4", "v1.34.10", "v1.36.3"])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every object of a cluster that each tool made on a host of the same name and address."""
    with nodes(request.param, 1, "equal") as cluster:
        found = []
        for tool in (REAL, OURS):
            cluster.init("host-1", tool)
            cluster.wait_healthy()
            found.append(settled_objects(cluster))
            cluster.renew_host("host-1")
        yield found[0], found[1]


def settled_objects(cluster: Nodes) -> dict[str, Any]:
    """The objects when no more of them come: some are made by the controllers of a young cluster, in their own time."""
    before: list[str] = []
    deadline = time.monotonic() + 120
    while before != [*(found := objects(cluster))]:
        assert time.monotonic() < deadline, "new objects keep coming"
        before = [*found]
        time.sleep(5)
    return found


def test_every_object_is_as_the_real_one_makes_it(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    real, ours = both
    assert sorted(real) == sorted(ours)
    assert len(real) > 40
    for path, manifest in real.items():
        assert ours[path] == manifest, path


# What init makes, or has made: `kubectl get --raw` of each.
COLLECTIONS = (
    "/api/v1/nodes",
    "/api/v1/namespaces/kube-system/configmaps",
    "/api/v1/namespaces/kube-public/configmaps",
    "/api/v1/namespaces/kube-system/secrets",
    "/api/v1/namespaces/kube-system/serviceaccounts",
    "/api/v1/namespaces/kube-system/services",
    "/api/v1/namespaces/kube-system/pods",
    "/apis/apps/v1/namespaces/kube-system/deployments",
    "/apis/apps/v1/namespaces/kube-system/daemonsets",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/roles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
)

# Times, and what is made anew for every object.
VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


def objects(cluster: Nodes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in COLLECTIONS:
        for item in json.loads(cluster.lab.kubectl(f"get --raw {path}"))["items"]:
            found |= described(path, item)
    return found


def described(path: str, item: dict[str, Any]) -> dict[str, Any]:
    """An object without times, keys and tokens; nothing for one that a controller made in passing."""
    name, metadata = item["metadata"]["name"], item["metadata"]
    for field in VOLATILE:
        metadata.pop(field, None)
    item.pop("status", None)
    if path.endswith("/pods"):
        # A static Pod is its manifest; the Pods of add-ons are those of their controllers, under random names.
        if "kubernetes.io/config.hash" not in metadata.get("annotations", {}):
            return {}
        for key in ("kubernetes.io/config.hash", "kubernetes.io/config.mirror", "kubernetes.io/config.seen"):
            metadata["annotations"].pop(key)
        metadata.pop("ownerReferences")
    if path.endswith("/secrets"):
        for owner in metadata.get("ownerReferences", []):
            owner["name"] = owner["uid"] = ""
        if name.startswith("bootstrap-token-") and name != "bootstrap-token-abcdef":
            name = metadata["name"] = "bootstrap-token-of-kubeadm-certs"
            item["data"]["token-id"] = ""
        item["data"] = {
            key: "" if key in ("expiration", "token-secret") or name == "kubeadm-certs" else value for key, value in item["data"].items()
        }
    if name in ("cluster-info", "kube-root-ca.crt", "extension-apiserver-authentication"):
        item["data"] = sorted(item["data"])
    if path.endswith("/nodes"):
        for key in ("volumes.kubernetes.io/controller-managed-attach-detach",):
            metadata.get("annotations", {}).pop(key, None)
        for taint in item["spec"].get("taints", []):
            taint.pop("timeAdded", None)
    return {f"{path}/{name}": item}
