"""What a store of snapshots does, whatever it is: a folder, or a bucket of an S3-compatible store.

A snapshot is two files, ``NAMESPACE/CLUSTER/NAME.db`` and ``NAME.json``.  The record is written last and deleted first: what has a record
is a whole snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from slipway.fleet.snapshots import record
from slipway.fleet.snapshots.record import DATABASE, RECORD

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from slipway.fleet.snapshots.record import Snapshot

Progress: TypeAlias = Callable[[int, int], None]
"""Hears how many bytes are done, and of how many."""


class Store(Protocol):
    """OperatorError is what its methods raise."""

    @property
    def shown(self) -> str:
        """What an operator calls it."""

    def spool(self, namespace: str, cluster: str) -> Path:
        """The folder in which a snapshot is written down before it is kept; it is there after this."""

    async def files(self, namespace: str, cluster: str) -> list[str]: ...
    async def clusters(self) -> list[tuple[str, str]]: ...
    async def read(self, namespace: str, cluster: str, file: str) -> bytes: ...
    async def write(self, namespace: str, cluster: str, file: str, content: bytes) -> None: ...
    async def put(self, snapshot: Snapshot, file: Path, progress: Progress | None = None) -> None:
        """Keep the database; the file is gone after this."""

    async def fetch(self, snapshot: Snapshot, into: Path, progress: Progress | None = None) -> None: ...
    async def delete(self, namespace: str, cluster: str, file: str) -> None: ...


async def keep(store: Store, snapshot: Snapshot, file: Path, progress: Progress | None = None) -> None:
    """Keep a snapshot that is in the spool."""
    await store.put(snapshot, file, progress)
    await store.write(snapshot.namespace, snapshot.cluster, snapshot.name + RECORD, record.written(snapshot))


async def snapshots(store: Store, namespace: str, cluster: str) -> list[Snapshot]:
    """Those of a cluster, the newest last."""
    files = set(await store.files(namespace, cluster))
    names = sorted(file.removesuffix(RECORD) for file in files if file.endswith(RECORD) and record.taken_at(file) is not None)
    return [
        record.read(await store.read(namespace, cluster, name + RECORD), f"{store.shown}/{namespace}/{cluster}/{name}{RECORD}")
        for name in names
        if name + DATABASE in files
    ]


async def prune(store: Store, namespace: str, cluster: str, keep_last: int, now: datetime) -> list[str]:
    """Delete what is more than is to be kept; the files that went."""
    going = record.superfluous(await store.files(namespace, cluster), keep_last, now)
    for file in going:
        await store.delete(namespace, cluster, file)
    return going
