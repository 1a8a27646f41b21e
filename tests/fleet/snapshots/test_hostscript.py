"""The script that gives a host the data of a snapshot, run for real: etcd starts with what it leaves.  Skipped without etcdutl."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet.snapshots.databases import REVISION, database
from node.conftest import Lines
from node.etcd_process import EtcdNode, addresses

from slipway.fleet.snapshots.hostscript import BUMP, Download, script
from slipway.host import waiting
from slipway.lab.programs import cache
from slipway.node.etcd import pod
from slipway.workload import etcdsnapshot

ROOTS = ("/run/kubeadm", "/var/lib/slipway-restore", "/etc/kubernetes/manifests")


class Stand:
    """A folder in place of a host: kubeadm writes the static Pod of the node, etcdutl is the real one."""

    def __init__(self, root: Path) -> None:
        program = cache.find(cache.cache_root(), "etcdutl", "v3.6.6")
        if program is None:
            pytest.skip("etcdutl v3.6.6 is not in the lab's cache")
        self.root = root / "host"
        self.node = EtcdNode(root, addresses(1)[0], "host", Lines())
        self.node.make_certificates()
        pod.write_local(self.node.ctx)
        self.manifest = self.root / "etc/kubernetes/manifests/etcd.yaml"
        shown = self.manifest.read_text().replace("=/var/lib", f"={self.root}/var/lib")
        self.manifest.unlink()
        self.data = self.root / "var/lib/etcd"
        self.config = self.root / "run/kubeadm/kubeadm.yaml"
        self.config.parent.mkdir(parents=True)
        self.config.write_text("kind: InitConfiguration\n")
        tools = root / "bin"
        tools.mkdir()
        (tools / "etcdutl").symlink_to(program)
        wanted = f"init phase etcd local --config {self.config}.held"
        kubeadm = f"[ \"$*\" = '{wanted}' ] || exit 9\ncat > {self.manifest} <<'POD'\n{shown}POD\n"
        (tools / "kubeadm").write_text(f"#!/bin/sh\n{kubeadm}")
        (tools / "kubeadm").chmod(0o755)
        self._path = f"{tools}:{os.environ['PATH']}"
        self.snapshot = root / "snapshot.db"
        self.snapshot.write_bytes(database())

    def run(self, sha256: str = "") -> subprocess.CompletedProcess[str]:
        text = script(Download(f"file://{self.snapshot}", sha256 or etcdsnapshot.check(self.snapshot).sha256))
        for place in ROOTS:
            text = text.replace(f"={place}", f"={self.root}{place}")
        return subprocess.run(["sh", "-c", text], env={**os.environ, "PATH": self._path}, capture_output=True, text=True, check=False)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(tmp_path)
    try:
        yield made
    finally:
        made.node.stop()


def test_etcd_starts_with_the_data_of_the_snapshot_and_as_the_member_that_kubeadm_makes(stand: Stand, tmp_path: Path) -> None:
    done = stand.run()
    assert done.returncode == 0, done.stderr
    assert stand.config.read_text() == "kind: InitConfiguration\n"
    assert not stand.manifest.exists()
    assert sorted(os.listdir(stand.root / "var/lib/slipway-restore")) == ["ca.crt", "done", "etcd.yaml"]
    pod.write_local(stand.node.ctx)
    stand.node.start()
    client = stand.node.client()
    waiting.until(lambda: "" if not client.unhealthy() else "etcd", timeout=20)
    (member,) = client.members()
    assert (member.name, member.peer_urls) == ("host", (stand.node.peer_url,))
    with (tmp_path / "again.db").open("wb") as file:
        client.snapshot(file.write)
    # Revisions go on from where nobody has been.
    assert etcdsnapshot.revision(tmp_path / "again.db") == REVISION + BUMP


def test_it_can_be_run_again(stand: Stand) -> None:
    assert stand.run().returncode == 0
    again = stand.run()
    assert (again.returncode, "has the data of the snapshot already" in again.stdout) == (0, True)
    assert stand.config.exists()


@pytest.mark.parametrize("fault", ["other bytes", "no server", "other data"])
def test_a_host_on_which_it_fails_makes_no_cluster(stand: Stand, fault: str) -> None:
    sha256 = ""
    if fault == "other bytes":
        sha256 = "ab" * 32
    elif fault == "no server":
        sha256 = etcdsnapshot.check(stand.snapshot).sha256
        stand.snapshot.unlink()
    else:
        (stand.data / "member").mkdir(parents=True)
    done = stand.run(sha256)
    assert done.returncode != 0
    assert not stand.config.exists()
    assert not (stand.data / "member" / "snap").exists()
