"""``reset``: what a dry run prints is compared in the golden cases; a real one is run on the files of a machine under a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from node.etcd_process import EtcdNode, addresses
from support.machine import Machine

from slipway.api.machinery.errors import OperatorError, PreflightError
from slipway.host import procfs, real, waiting
from slipway.node import reset
from slipway.node.etcd import membership, pod, wal
from slipway.node.reset import ResetOptions
from slipway.node.reset import etcd as resetetcd

if TYPE_CHECKING:
    from node.conftest import Lines

pytestmark = [pytest.mark.upstream_table, pytest.mark.recorded]

DRY = {"dryRun": True, "criSocket": "unix:///run/containerd/containerd.sock"}
ETCD = "/etc/kubernetes/manifests/etcd.yaml"
POD = "apiVersion: v1\nkind: Pod\nspec:\n  volumes:\n"


# cmd/phases/reset/removeetcdmember_test.go, TestGetEtcdDataDir
@pytest.mark.parametrize(
    ("manifest", "folder"),
    [
        (None, "/var/lib/etcd"),
        (POD + "  - hostPath: {path: /path/to/etcd, type: DirectoryOrCreate}\n    name: etcd-data\n", "/path/to/etcd"),
        (POD + "  - hostPath: {path: /etc/kubernetes/pki/etcd}\n    name: etcd-certs\n", None),
        (POD + "  - emptyDir: {}\n    name: etcd-data\n", None),
        ("", None),
    ],
)
def test_the_manifest_tells_where_etcd_keeps_its_data(manifest: str | None, folder: str | None, tmp_path: Path) -> None:
    host = Machine(tmp_path)
    if manifest is not None:
        host.put(ETCD, manifest)
    assert resetetcd.etcd_data_dir(host) == folder


def test_an_etcd_without_a_data_folder_is_taken_for_an_external_one(tmp_path: Path, lines: Lines) -> None:
    reset.run(ResetOptions(overrides=DRY), Machine(tmp_path).put(ETCD, POD), lines)
    assert "[reset] No etcd config found. Assuming external etcd" in lines.said


def test_a_dry_run_deletes_nothing(tmp_path: Path, lines: Lines) -> None:
    host = Machine(tmp_path).put("/etc/kubernetes/admin.conf", "").put("/etc/kubernetes/pki/ca.crt", "")
    reset.run(ResetOptions(overrides=DRY), host, lines)
    assert host.exists("/etc/kubernetes/admin.conf")
    assert host.exists("/etc/kubernetes/pki/ca.crt")


def test_the_folders_are_those_of_the_configuration(tmp_path: Path, lines: Lines) -> None:
    reset.run(ResetOptions(overrides={**DRY, "certificatesDir": "/srv/pki", "cleanupTmpDir": True}), Machine(tmp_path), lines)
    assert "[dryrun] Would delete contents of directories: [/etc/kubernetes/manifests /srv/pki /etc/kubernetes/tmp]" in lines.said
    assert '[reset] WARNING: Cleaning a non-default certificates directory: "/srv/pki"' in lines.warned


def test_a_phase_alone_ends_without_instructions(tmp_path: Path, lines: Lines) -> None:
    reset.run(ResetOptions(overrides=DRY, only="cleanup-node"), Machine(tmp_path), lines)
    assert lines.shown == []


def test_only_root_may_reset(tmp_path: Path, lines: Lines) -> None:
    host = Machine(tmp_path)
    host.uid = 1000
    with pytest.raises(PreflightError):
        reset.run(ResetOptions(overrides=DRY), host, lines)


REAL = {"criSocket": "unix:///run/containerd/containerd.sock", "force": True}
MADE = (
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
    "/etc/kubernetes/pki/etcd/ca.crt",
    "/etc/kubernetes/tmp/kubeadm-backup/etcd.yaml",
    "/var/lib/kubelet/config.yaml",
    "/var/lib/etcd/member/snap/db",
)


def machine_with_files(root: Path) -> Machine:
    host = Machine(root, {"HOME": "/home/admin"})
    for path in MADE:
        host.put(path, "")
    host.remove("/etc/kubernetes/admin.conf")
    return host.put("/home/admin/.kube/config", "").put("/etc/cni/net.d/10-bridge.conflist", "")


def files(root: Path) -> set[str]:
    return {f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file()}


def test_a_reset_tells_a_program_what_is_gone(tmp_path: Path, lines: Lines) -> None:
    host = machine_with_files(tmp_path).put("/etc/kubernetes/scheduler.conf", "")
    result = reset.run(ResetOptions(overrides=REAL), host, lines)
    assert result.emptied == ("/var/lib/etcd", "/etc/kubernetes/manifests", "/var/lib/kubelet", "/etc/kubernetes/pki")
    assert result.removed == ("/etc/kubernetes/scheduler.conf",)
    assert result.left_alone == ("/etc/cni/net.d (10-bridge.conflist)", "/etc/kubernetes (tmp)", "/home/admin/.kube/config")
    assert list(result.seconds) == ["preflight", "remove-etcd-member", "cleanup-node"]


def test_of_a_dry_run_nothing_is_gone(tmp_path: Path, lines: Lines) -> None:
    result = reset.run(ResetOptions(overrides=DRY), machine_with_files(tmp_path), lines)
    assert (result.emptied, result.removed) == ((), ())


def test_a_reset_deletes_what_was_made_and_says_what_it_left(tmp_path: Path, lines: Lines) -> None:
    host = machine_with_files(tmp_path)
    reset.run(ResetOptions(overrides=REAL), host, lines)
    assert files(tmp_path) == {
        "/etc/kubernetes/tmp/kubeadm-backup/etcd.yaml",
        "/home/admin/.kube/config",
        "/etc/cni/net.d/10-bridge.conflist",
    }
    assert host.is_dir("/etc/kubernetes/manifests")
    assert host.is_dir("/var/lib/etcd")
    # In the order of kubeadm's cmd/phases/reset/cleanupnode.go.
    folders = "/etc/kubernetes/manifests /var/lib/kubelet /etc/kubernetes/pki"
    assert f"[reset] Deleting contents of directories: [{folders}]" in lines.said
    assert "[reset] Deleted contents of the etcd data directory: /var/lib/etcd" in lines.said
    left = [text.removeprefix("[reset] Left alone: ") for text in lines.said if text.startswith("[reset] Left alone")]
    assert left == ["/etc/cni/net.d (10-bridge.conflist)", "/etc/kubernetes (tmp)", "/home/admin/.kube/config"]
    assert any("Failed to remove containers" in text for text in lines.warned)


def test_a_reset_can_be_run_again(tmp_path: Path, lines: Lines) -> None:
    host = machine_with_files(tmp_path)
    for _ in range(2):
        reset.run(ResetOptions(overrides={**REAL, "cleanupTmpDir": True}), host, lines)
    assert files(tmp_path) == {"/home/admin/.kube/config", "/etc/cni/net.d/10-bridge.conflist"}


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "yess\n", " y\n"])
def test_without_consent_nothing_is_done(answer: str, tmp_path: Path, lines: Lines) -> None:
    host = machine_with_files(tmp_path)
    before = files(tmp_path)
    with pytest.raises(OperatorError, match="won't proceed; the user didn't answer"):
        reset.run(ResetOptions(overrides={**REAL, "force": False}, answer=lambda: answer), host, lines)
    assert lines.shown == ["[reset] Are you sure you want to proceed? [y/N]: "]
    assert files(tmp_path) == before


@pytest.mark.parametrize("answer", ["y\n", "Yes\n", "YES"])
def test_consent_is_given_with_a_word(answer: str, tmp_path: Path, lines: Lines) -> None:
    host = machine_with_files(tmp_path)
    reset.run(ResetOptions(overrides={**REAL, "force": False}, answer=lambda: answer), host, lines)
    assert not host.exists("/var/lib/kubelet/config.yaml")


def test_a_cluster_that_cannot_be_asked_is_a_warning(tmp_path: Path, lines: Lines) -> None:
    host = machine_with_files(tmp_path).put("/etc/kubernetes/admin.conf", "apiVersion: v1\nkind: Config\n")
    reset.run(ResetOptions(overrides=REAL), host, lines)
    assert any("Unable to fetch the kubeadm-config ConfigMap from cluster" in text for text in lines.warned)
    assert not host.exists("/etc/kubernetes/admin.conf")


STACKED = """apiVersion: v1
kind: Pod
spec:
  containers:
  - command:
    - etcd
    - --advertise-client-urls=https://10.0.0.2:2379
    - --initial-advertise-peer-urls=https://10.0.0.2:2380
    - --initial-cluster=b=https://10.0.0.2:2380,a=https://10.0.0.1:2380,c=https://[fd00::3]:2380
    - --trusted-ca-file=/srv/pki/etcd/ca.crt
"""
API_SERVER = """apiVersion: v1
kind: Pod
spec:
  containers:
  - command:
    - kube-apiserver
    - --advertise-address=10.0.0.2
    - --etcd-cafile=/etc/kubernetes/pki/etcd/ca.crt
    - --etcd-servers={servers}
"""


@pytest.mark.parametrize(
    ("manifests", "member"),
    [
        ({}, None),
        (
            {"etcd": STACKED},
            ("https://10.0.0.2:2380", ("https://10.0.0.1:2379", "https://[fd00::3]:2379", "https://10.0.0.2:2379"), "/srv/pki"),
        ),
        (
            {"kube-apiserver": API_SERVER.format(servers="https://127.0.0.1:2379")},
            ("https://10.0.0.2:2380", ("https://10.0.0.2:2379",), "/etc/kubernetes/pki"),
        ),
        ({"kube-apiserver": API_SERVER.format(servers="https://10.0.9.9:2379")}, None),
    ],
)
def test_the_static_pods_tell_which_member_this_node_is(manifests: dict[str, str], member: object, tmp_path: Path) -> None:
    host = Machine(tmp_path)
    for name, text in manifests.items():
        host.put(f"/etc/kubernetes/manifests/{name}.yaml", text)
    assert resetetcd.local_member(host) == member


@pytest.fixture
def pair(tmp_path: Path, lines: Lines) -> Iterator[tuple[EtcdNode, EtcdNode]]:
    """Two voters, of which the second is about to be reset; no API server is anywhere."""
    first, second = (EtcdNode(tmp_path, address, name, lines) for name, address in zip("ab", addresses(2), strict=True))
    try:
        first.begin()
        second.make_certificates(first)
        client = first.client()
        added, members = client.add_learner(second.peer_url)
        pod.write_joined(second.ctx, membership.initial_cluster(members, added, "b"))
        second.start()
        waiting.until(lambda: "" if all(member.name for member in client.members()) else "the second member", timeout=30)
        yield first, second
    finally:
        first.stop()
        second.stop()


def test_a_member_leaves_while_the_api_server_is_gone(pair: tuple[EtcdNode, EtcdNode], lines: Lines) -> None:
    first, second = pair
    reset.run(ResetOptions(overrides=REAL), Machine(second.root), lines)
    assert [member.name for member in first.client().members()] == ["a"]
    assert second.ctx.host.list_dir("/var/lib/etcd") == []
    assert not second.ctx.host.exists(ETCD)
    assert f"[reset] Removed the etcd member with the peer URL {second.peer_url}" in lines.said


def test_the_only_member_is_not_removed_but_its_data_is(pair: tuple[EtcdNode, EtcdNode], lines: Lines) -> None:
    first, second = pair
    membership.leave(first.client(), second.peer_url)
    reset.run(ResetOptions(overrides=REAL), Machine(first.root), lines)
    assert first.ctx.host.list_dir("/var/lib/etcd") == []
    assert not any("Removed the etcd member" in text for text in lines.said)
    assert not any("Failed to remove etcd member" in text for text in lines.warned)


def test_a_member_that_cannot_leave_is_named(pair: tuple[EtcdNode, EtcdNode], lines: Lines) -> None:
    first, second = pair
    first.stop()
    second.stop()
    owner = wal.owner(second.ctx.host, "/var/lib/etcd")
    assert owner is not None
    config = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ResetConfiguration\nforce: true\ntimeouts: {etcdAPICall: 1s}\n"
    reset.run(ResetOptions(text=config + f"criSocket: {REAL['criSocket']}\n"), Machine(second.root), lines)
    assert any(
        f"Connection refused, please manually remove this etcd member using etcdctl: `etcdctl member remove {owner.member_id:x}`" in text
        for text in lines.warned
    )
    assert second.ctx.host.list_dir("/var/lib/etcd") == []


MOUNTS = """/dev/vda / ext4 rw 0 0
tmpfs /var/lib/kubelet/pods/1/volumes/a tmpfs rw 0 0
tmpfs /var/lib/kubelet tmpfs rw 0 0
tmpfs /var/lib/kubelet/pods/1/volumes/a/b\\040c tmpfs rw 0 0
tmpfs /var/lib/kubelet-other/pods tmpfs rw 0 0
tmpfs /var/lib/kubelet/x tmpfs rw 0 0
tmpfs /var/lib/kubelet/y tmpfs rw 0 0
"""


def test_mounts_are_listed_from_the_deepest_and_the_latest() -> None:
    assert procfs.listed_mounts(MOUNTS, "/var/lib/kubelet") == [
        "/var/lib/kubelet/pods/1/volumes/a/b c",
        "/var/lib/kubelet/pods/1/volumes/a",
        "/var/lib/kubelet/y",
        "/var/lib/kubelet/x",
    ]


def test_flags_of_umount2_are_those_of_kubeadm() -> None:
    """cmd/phases/reset/unmount_linux_test.go: all four together are 15."""
    assert sum(real.UNMOUNT_FLAGS.values()) == 15
