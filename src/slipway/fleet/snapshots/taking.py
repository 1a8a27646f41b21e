"""Takes a snapshot: from a member of etcd into the spool, checked there, and kept with a record of what it is.

A snapshot is never in memory as a whole: pieces of the stream go to the disk, and what is checked afterwards is the file.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots import store as stores
from slipway.fleet.snapshots.record import PARTIAL, Snapshot, name_of
from slipway.workload import etcdsnapshot

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from slipway.fleet.snapshots.store import Progress, Store

Write: TypeAlias = Callable[[bytes], Awaitable[None]]
# A write goes through a thread, so that a slow disk holds up nobody else.
_BLOCK = 1 << 20


class Source(NamedTuple):
    """Who sent a snapshot, and what it must have at the least: the revision that etcd had agreed on before."""

    etcd_version: str
    revision: int


class Etcd(Protocol):
    """What a snapshot is taken of."""

    async def snapshot(self, write: Write, progress: Progress | None = None) -> Source: ...


class Subject(NamedTuple):
    """Whose etcd it is."""

    namespace: str
    cluster: str
    kubernetes_version: str = ""


async def take(etcd: Etcd, store: Store, subject: Subject, now: datetime, progress: Progress | None = None) -> Snapshot:
    """Take a snapshot, check it, keep it; OperatorError, and nothing kept, where that cannot be done."""
    folder = store.spool(subject.namespace, subject.cluster)
    partial = folder / f"{name_of(now, 0)}.{secrets.token_hex(4)}{PARTIAL}"
    try:
        source = await _written(etcd, partial, progress)
        found = await asyncio.to_thread(etcdsnapshot.check, partial)
        if found.revision < source.revision:
            raise OperatorError(
                f"the snapshot of etcd ends at revision {found.revision}, and etcd was at {source.revision} before it was taken: "
                "the member that sent it has lost data"
            )
        snapshot = Snapshot(
            namespace=subject.namespace,
            cluster=subject.cluster,
            taken=now.replace(microsecond=0),
            revision=found.revision,
            size=found.size,
            sha256=found.sha256,
            etcd_version=source.etcd_version,
            kubernetes_version=subject.kubernetes_version,
        )
        await stores.keep(store, snapshot, partial)
    except OSError as error:
        raise OperatorError(f"no snapshot of etcd could be written to {folder}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return snapshot


async def _written(etcd: Etcd, path: Path, progress: Progress | None) -> Source:
    # The database holds every Secret of the cluster.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        waiting = bytearray()

        async def write(piece: bytes) -> None:
            waiting.extend(piece)
            if len(waiting) >= _BLOCK:
                await flush()

        async def flush() -> None:
            block = bytes(waiting)
            waiting.clear()
            await asyncio.to_thread(file.write, block)

        source = await etcd.snapshot(write, progress)
        await flush()
    return source
