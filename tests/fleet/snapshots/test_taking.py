"""Snapshots that are taken and kept: in a folder, and in a store that speaks S3's protocol as far as it is needed here."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fleet.snapshots.databases import REVISION, database

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots import store as stores
from slipway.fleet.snapshots.folder import Folder
from slipway.fleet.snapshots.store import Progress
from slipway.fleet.snapshots.taking import Source, Subject, Write, take

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SUBJECT = Subject("n", "c", "v1.35.4")


class Model:
    """An etcd that sends its database in pieces of an odd size."""

    def __init__(self, content: bytes | None = None, revision: int = REVISION) -> None:
        self.content = database() if content is None else content
        self.revision = revision
        self.broken: Exception | None = None

    async def snapshot(self, write: Write, progress: Progress | None = None) -> Source:
        for start in range(0, len(self.content), 5000):
            await write(self.content[start : start + 5000])
            if progress is not None:
                progress(min(start + 5000, len(self.content)), len(self.content))
            if self.broken is not None:
                raise self.broken
        return Source("3.6.6", self.revision)


def test_a_snapshot_is_kept_with_a_record_of_what_it_is(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    told: list[tuple[int, int]] = []
    taken = asyncio.run(take(Model(), store, SUBJECT, NOW, lambda done, whole: told.append((done, whole))))
    assert (taken.name, taken.revision, taken.size) == (f"20260301T120000Z-r{REVISION}", REVISION, len(database()))
    assert (taken.etcd_version, taken.kubernetes_version) == ("3.6.6", "v1.35.4")
    assert told[-1] == (taken.size, taken.size)
    assert asyncio.run(stores.snapshots(store, "n", "c")) == [taken]
    kept = tmp_path / "n" / "c" / f"{taken.name}.db"
    assert kept.read_bytes() == database()
    # It holds every Secret of the cluster.
    assert kept.stat().st_mode & 0o077 == 0
    assert sorted(os.listdir(kept.parent)) == [f"{taken.name}.db", f"{taken.name}.json"]


@pytest.mark.parametrize(
    ("etcd", "said"),
    [
        pytest.param(Model(revision=REVISION + 1), f"ends at revision {REVISION}, and etcd was at {REVISION + 1}", id="too old"),
        pytest.param(Model(content=database()[:-1]), "not a snapshot of etcd, or damaged", id="cut"),
        pytest.param(Model(content=b""), "not a snapshot of etcd, or damaged", id="empty"),
    ],
)
def test_what_is_not_right_is_not_kept(tmp_path: Path, etcd: Model, said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        asyncio.run(take(etcd, Folder(tmp_path), SUBJECT, NOW))
    assert os.listdir(tmp_path / "n" / "c") == []


def test_a_stream_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    etcd = Model()
    etcd.broken = OperatorError("the connection ended")
    with pytest.raises(OperatorError, match="the connection ended"):
        asyncio.run(take(etcd, Folder(tmp_path), SUBJECT, NOW))
    assert os.listdir(tmp_path / "n" / "c") == []


def test_a_folder_that_cannot_be_written_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "n").write_text("in the way")
    with pytest.raises(OperatorError, match=r"the store of snapshots .* cannot be used: "):
        asyncio.run(take(Model(), Folder(tmp_path), SUBJECT, NOW))


def test_the_newest_are_kept_and_those_of_other_clusters_left_alone(tmp_path: Path) -> None:
    async def work() -> tuple[list[str], int]:
        store = Folder(tmp_path)
        for number in range(4):
            await take(Model(), store, SUBJECT, NOW + timedelta(hours=number))
        await take(Model(), store, Subject("n", "other"), NOW - timedelta(days=9))
        went = await stores.prune(store, "n", "c", 2, NOW)
        assert len(went) == 4
        assert await store.clusters() == [("n", "c"), ("n", "other")]
        return [each.name[:15] for each in await stores.snapshots(store, "n", "c")], len(await stores.snapshots(store, "n", "other"))

    assert asyncio.run(work()) == (["20260301T140000", "20260301T150000"], 1)


def test_a_database_without_a_record_is_no_snapshot(tmp_path: Path) -> None:
    async def work() -> list[object]:
        store = Folder(tmp_path)
        taken = await take(Model(), store, SUBJECT, NOW)
        await store.delete("n", "c", f"{taken.name}.json")
        return list(await stores.snapshots(store, "n", "c"))

    assert asyncio.run(work()) == []


def test_what_was_kept_can_be_fetched(tmp_path: Path) -> None:
    async def work() -> None:
        store = Folder(tmp_path)
        taken = await take(Model(), store, SUBJECT, NOW)
        await store.fetch(taken, tmp_path / "fetched")

    asyncio.run(work())
    assert (tmp_path / "fetched").read_bytes() == database()
