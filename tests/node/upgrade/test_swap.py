"""Static Pods on their way: manifests with and without the mark, what makes two of them the same, and where a Pod's cgroups are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.machine import Machine

from slipway.api.machinery.errors import OperatorError
from slipway.host.progress import TextProgress
from slipway.node.upgrade import controlplane, swap

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = b"""apiVersion: v1
kind: Pod
metadata:
  labels:
    component: kube-scheduler
  name: kube-scheduler
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-scheduler
    image: registry.k8s.io/kube-scheduler:v1.35.4
    name: kube-scheduler
status: {}
"""
UID = "9eb117f4f36f0123456789abcdef0123"


def test_a_mark_makes_another_pod_each_time() -> None:
    first, second = swap.marked(MANIFEST, "one"), swap.marked(MANIFEST, "two")
    assert not swap.equal(first, MANIFEST, 35)
    assert not swap.equal(first, second, 35)


def test_without_its_mark_a_manifest_is_what_it_was() -> None:
    assert swap.unmarked(swap.marked(MANIFEST, "one")) == MANIFEST
    assert swap.unmarked(swap.marked(swap.marked(MANIFEST, "one"), "two")) == MANIFEST
    assert swap.unmarked(MANIFEST) is MANIFEST


def test_the_mark_leaves_other_annotations_alone() -> None:
    annotated = MANIFEST.replace(b"metadata:\n", b"metadata:\n  annotations:\n    example.com/own: kept\n")
    assert swap.unmarked(swap.marked(annotated, "one")) == annotated


def test_manifests_are_equal_by_what_they_say() -> None:
    reordered = MANIFEST.replace(
        b"  name: kube-scheduler\n  namespace: kube-system\n", b"  namespace: kube-system\n  name: kube-scheduler\n"
    )
    assert reordered != MANIFEST
    assert swap.equal(MANIFEST, b"# a comment\n" + reordered, 35)
    assert not swap.equal(MANIFEST, MANIFEST.replace(b"v1.35.4", b"v1.36.3"), 35)


def test_a_file_that_is_no_pod_is_named() -> None:
    with pytest.raises(OperatorError, match=r"etcd\.yaml is not the manifest of one Pod"):
        swap.pod_of(b"kind: Secret\n", "/etc/kubernetes/manifests/etcd.yaml")


@pytest.mark.parametrize(
    "folders",
    [
        # cgroup v1 and the driver cgroupfs; v2 and cgroupfs; v2 and systemd, of two classes of service.
        [f"/sys/fs/cgroup/{name}/kubepods/burstable/pod{UID}" for name in ("cpu", "memory", "pids")],
        [f"/sys/fs/cgroup/kubepods/burstable/pod{UID}"],
        [f"/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID}.slice"],
        [f"/sys/fs/cgroup/kubepods.slice/kubepods-pod{UID}.slice"],
    ],
)
def test_cgroups_of_a_pod_are_found(folders: list[str], tmp_path: Path) -> None:
    host = Machine(tmp_path)
    for folder in folders:
        host.make_dir(f"{folder}/container")
        host.make_dir(folder.replace(UID, "another"))
    assert swap.cgroups_of(host, UID) == folders


def test_a_manifest_that_a_killed_kubeadm_took_away_is_put_back(tmp_path: Path) -> None:
    host = Machine(tmp_path)
    for moment, text in (("2026-01-01-00-00-00", "older"), ("2026-01-02-00-00-00", "newer")):
        host.put(f"/etc/kubernetes/tmp/kubeadm-backup-manifests-{moment}/etcd.yaml", text)
    host.put("/etc/kubernetes/tmp/kubeadm-backup-manifests-2026-01-02-00-00-00/kube-scheduler.yaml", "old")
    host.put("/etc/kubernetes/manifests/kube-scheduler.yaml", "here")
    controlplane.recover(host, TextProgress())
    assert host.read("/etc/kubernetes/manifests/etcd.yaml") == b"newer"
    assert host.read("/etc/kubernetes/manifests/kube-scheduler.yaml") == b"here"
    assert host.list_dir("/etc/kubernetes/manifests") == ["etcd.yaml", "kube-scheduler.yaml"]
