"""Snapshots in a folder: of this machine, or of a PersistentVolume that the manager's Pod has mounted."""

from __future__ import annotations

import asyncio
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots.record import DATABASE, PARTIAL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slipway.fleet.snapshots.record import Snapshot
    from slipway.fleet.snapshots.store import Progress

_BLOCK = 1 << 20


class Folder:
    """A file appears under its name when it is complete and on the disk.

    The database holds every Secret of a cluster: only the owner of the file reads it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def shown(self) -> str:
        return str(self._root)

    def spool(self, namespace: str, cluster: str) -> Path:
        folder = self._root / namespace / cluster
        with self._explained(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    async def clusters(self) -> list[tuple[str, str]]:
        with self._explained(self._root):
            if not self._root.is_dir():
                return []
            return sorted(
                (namespace.name, cluster.name)
                for namespace in self._root.iterdir()
                if namespace.is_dir()
                for cluster in namespace.iterdir()
                if cluster.is_dir()
            )

    async def files(self, namespace: str, cluster: str) -> list[str]:
        folder = self._root / namespace / cluster
        with self._explained(folder):
            return sorted(os.listdir(folder)) if folder.is_dir() else []

    async def read(self, namespace: str, cluster: str, file: str) -> bytes:
        path = self._root / namespace / cluster / file
        with self._explained(path):
            return path.read_bytes()

    async def write(self, namespace: str, cluster: str, file: str, content: bytes) -> None:
        path = self.spool(namespace, cluster) / file
        partial = path.with_name(path.name + PARTIAL)
        with self._explained(path):
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as handle:
                handle.write(content)
            await asyncio.to_thread(_settle, partial, path)

    async def put(self, snapshot: Snapshot, file: Path, progress: Progress | None = None) -> None:
        path = self.spool(snapshot.namespace, snapshot.cluster) / (snapshot.name + DATABASE)
        with self._explained(path):
            await asyncio.to_thread(_settle, file, path)

    async def fetch(self, snapshot: Snapshot, into: Path, progress: Progress | None = None) -> None:
        path = self._root / snapshot.namespace / snapshot.cluster / (snapshot.name + DATABASE)
        with self._explained(path), path.open("rb") as source, into.open("wb") as target:
            done = 0
            while block := await asyncio.to_thread(source.read, _BLOCK):
                await asyncio.to_thread(target.write, block)
                done += len(block)
                if progress is not None:
                    progress(done, snapshot.size)

    async def delete(self, namespace: str, cluster: str, file: str) -> None:
        path = self._root / namespace / cluster / file
        with self._explained(path):
            path.unlink(missing_ok=True)

    @contextmanager
    def _explained(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OperatorError(f"the store of snapshots {self._root} cannot be used: {error.strerror or error}: {path}") from error


def _settle(partial: Path, path: Path) -> None:
    """Let a file appear under its name when it is on the disk, name and all."""
    for each in (partial, None, path.parent):
        if each is None:
            os.replace(partial, path)
            continue
        handle = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
