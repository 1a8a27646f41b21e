"""Snapshots of a real etcd, read back by etcd's own tool where the lab has it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from node.etcd_process import EtcdNode, addresses

from slipway.api.machinery.errors import OperatorError
from slipway.node.etcd import snapshot
from slipway.workload.etcdapi import EtcdError

if TYPE_CHECKING:
    from node.conftest import Lines

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def node(tmp_path: Path, lines: Lines) -> Iterator[EtcdNode]:
    node = EtcdNode(tmp_path, addresses(1)[0], "first", lines)
    try:
        yield node.begin()
    finally:
        node.stop()


def test_a_snapshot_is_written_for_root_alone(node: EtcdNode) -> None:
    saved = snapshot.save(node.client(), "/srv/snapshots", NOW, node.ctx.host)
    assert saved.path == "/srv/snapshots/etcd-snapshot-2026-01-02T03-04-05Z.db"
    assert str(saved).startswith(f"{saved.path} (0.0 MiB)")
    written = node.root / saved.path[1:]
    assert written.stat().st_size == saved.size
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert [path.name for path in written.parent.iterdir()] == [written.name]


def test_nothing_is_left_of_a_snapshot_that_failed(node: EtcdNode) -> None:
    client = node.client(patience=0)
    node.stop()
    with pytest.raises(EtcdError, match="Connection refused"):
        snapshot.save(client, "/srv/snapshots", NOW, node.ctx.host)
    assert node.ctx.host.list_dir("/srv/snapshots") == []


def test_a_folder_that_cannot_be_one_is_refused(node: EtcdNode) -> None:
    node.ctx.host.write("/srv/snapshots", b"a file")
    with pytest.raises(OperatorError, match=r"/srv/snapshots: File exists; nothing was changed"):
        snapshot.save(node.client(), "/srv/snapshots", NOW, node.ctx.host)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named(node: EtcdNode) -> None:
    folder = node.root / "srv/snapshots"
    folder.mkdir(parents=True)
    (folder / "etcd-snapshot-2026-01-02T03-04-05Z.db.part").symlink_to("/dev/full")
    with pytest.raises(OperatorError, match="No space left on device"):
        snapshot.save(node.client(), "/srv/snapshots", NOW, node.ctx.host)
    assert list(folder.iterdir()) == []
