"""The store in an SQLite file, so that a server survives its process: every write is a transaction, in the order of versions."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMA = """
create table if not exists objects (resource text not null, key text not null, version integer not null, raw blob not null,
                                    primary key (resource, key)) without rowid;
create table if not exists facts (name text primary key, value blob not null) without rowid;
"""


class Database:
    """A :class:`slipway.embedded.storage.store.Journal`.

    A killed process loses nothing; a machine that goes down may lose the last writes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            _make_private(path)
            self._connection = sqlite3.connect(path, isolation_level=None)
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = normal")
            # One server a file: a second one would hand out the same versions.
            self._connection.execute("pragma locking_mode = exclusive")
            self._connection.executescript(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise OperatorError(f"cannot use {path} as the database of the embedded API server: {error}") from None

    def write(self, resource: str, key: str, version: int, raw: bytes | None) -> None:
        connection = self._connection
        try:
            connection.execute("begin immediate")
            if raw is None:
                connection.execute("delete from objects where resource = ? and key = ?", (resource, key))
            else:
                connection.execute("insert or replace into objects values (?, ?, ?, ?)", (resource, key, version, raw))
            connection.execute("insert or replace into facts values ('version', ?)", (str(version).encode(),))
            connection.execute("commit")
        except sqlite3.Error as error:
            raise OperatorError(f"cannot write to {self._path}: {error}") from None

    def objects(self) -> Iterator[tuple[str, bytes, int]]:
        """Everything that was stored: resource, object, version."""
        yield from self._connection.execute("select resource, raw, version from objects order by version")

    @property
    def version(self) -> int:
        """The version of the last write."""
        found = self.fact("version")
        return int(found) if found else 1

    def fact(self, name: str) -> bytes:
        row = self._connection.execute("select value from facts where name = ?", (name,)).fetchone()
        return bytes(row[0]) if row is not None else b""

    def keep(self, name: str, value: bytes) -> None:
        self._connection.execute("insert or replace into facts values (?, ?)", (name, value))

    def close(self) -> None:
        self._connection.close()


def _make_private(path: Path) -> None:
    """The file holds the authority's key and everybody's Secrets: it is its owner's alone, before anything is written to it.

    SQLite gives the files that it puts beside it the same mode, unless they are there already.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if file.exists() and file.stat().st_mode & 0o077:
            file.chmod(0o600)
