"""A snapshot of etcd as it comes and as it is kept: the pieces of the stream, and what the file tells of itself.

The file is what ``etcdutl snapshot restore`` takes: etcd's database with its SHA-256 at the end, as etcd sends it.  The database is one of
bbolt's: pages, two of which say where the root is; a bucket is a B+tree of pages.  Only what tells the revision is read.
"""

from __future__ import annotations

import base64
import hashlib
import mmap
import struct
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.workload import etcdapi
from slipway.workload.etcdapi import EtcdError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIGEST_SIZE = hashlib.sha256().digest_size
_PAGE = 512
"""etcd's database is made of pages; a multiple of this is what comes before the digest."""


class Piece(NamedTuple):
    """What one message of the stream says: how much follows, and some bytes."""

    remaining: int
    blob: bytes


def piece(endpoint: str, line: bytes, http_status: int = 200) -> Piece:
    """One line of what the gateway answers; an EtcdError where it says that it failed."""
    import msgspec

    try:
        message = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise EtcdError(f"{endpoint}: not a snapshot: {error}", transient=True) from error
    if "result" not in message:
        raise etcdapi.failure(endpoint, message.get("error") or message, http_status)
    result = message["result"]
    return Piece(int(result.get("remaining_bytes", 0)), base64.b64decode(result.get("blob", "")))


class SnapshotStream:
    """What has come of a snapshot, checked against the size that etcd announced and the digest that it appends."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._digest, self._held = hashlib.sha256(), b""
        self._remaining = 0
        self.size = 0
        self.announced = 0
        """How large it will be; 0 before the first piece."""

    def add(self, came: Piece) -> None:
        if not self.announced:
            # What etcd announces is the database; its digest follows in a message of its own.
            self.announced = came.remaining + len(came.blob) + DIGEST_SIZE
        self._remaining = came.remaining
        self.size += len(came.blob)
        # The last 32 bytes are the digest of all before them, and may be spread over pieces.
        held = self._held + came.blob
        self._digest.update(memoryview(held)[:-DIGEST_SIZE])
        self._held = held[-DIGEST_SIZE:]

    def ended(self) -> int:
        """The size of what came; an EtcdError where it is not what etcd had."""
        if not self.announced:
            raise EtcdError(f"{self._endpoint}: the snapshot is empty", transient=True)
        if self.size != self.announced or self._remaining:
            raise EtcdError(f"{self._endpoint}: the snapshot ended after {self.size} of {self.announced} bytes", transient=True)
        if self.size % _PAGE != DIGEST_SIZE or self._digest.digest() != self._held:
            raise EtcdError(f"{self._endpoint}: the snapshot is damaged: its SHA-256 is not the one that etcd sent with it", transient=True)
        return self.size


class Checked(NamedTuple):
    """What a snapshot file is."""

    size: int
    sha256: str
    """Of the whole file, as ``sha256sum`` says it."""
    revision: int
    """The last revision that the database has."""


def check(path: Path) -> Checked:
    """Read a whole file; OperatorError where it is not a snapshot, or not any more what etcd sent."""
    whole, database, held, size = hashlib.sha256(), hashlib.sha256(), b"", 0
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                size += len(block)
                whole.update(block)
                held += block
                database.update(memoryview(held)[:-DIGEST_SIZE])
                held = held[-DIGEST_SIZE:]
    except OSError as error:
        raise OperatorError(f"the snapshot {path} cannot be read: {error.strerror}") from error
    if size % _PAGE != DIGEST_SIZE or database.digest() != held:
        raise OperatorError(f"{path} is not a snapshot of etcd, or damaged: its last 32 bytes are not the SHA-256 of all before them")
    return Checked(size, whole.hexdigest(), revision(path))


_META = struct.Struct("<4I6Q")
_MAGIC, _VERSION = 0xED0CDAED, 2
_HEADER = struct.Struct("<QHHI")
_BRANCH, _LEAF = 0x01, 0x02
_BUCKET = 0x01
_BRANCH_ELEMENT, _LEAF_ELEMENT = struct.Struct("<IIQ"), struct.Struct("<4I")
_REVISION = struct.Struct(">Q")
# In the bucket "meta": up to where history was, or is to be, thrown away; the last revision may be one of those.
_COMPACTIONS = (b"finishedCompactRev", b"scheduledCompactRev")
_DEEPEST = 64


def revision(path: Path) -> int:
    """The last revision of a database: the last key of the bucket "key", or one up to which history was thrown away."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            database = _Database(data)
            last = _main(database.last(b"key"))
            compacted = [_main(found) for key in _COMPACTIONS if (found := database.value(b"meta", key)) is not None]
            # An etcd that nobody has written to is at its first revision.
            return max([1, last, *compacted])
    except OSError as error:
        raise OperatorError(f"the snapshot {path} cannot be read: {error.strerror}") from error
    except (ValueError, struct.error, IndexError, RecursionError) as error:
        raise OperatorError(f"{path} is not a database of etcd: {error}") from None


def _main(key: bytes | None) -> int:
    return 0 if not key else int(_REVISION.unpack_from(key)[0])


class _Database:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        first = self._meta(_HEADER.size)
        size = first[2] if first is not None else 4096
        second = self._meta(size + _HEADER.size)
        known = [meta for meta in (first, second) if meta is not None]
        if not known:
            raise ValueError("neither of its two first pages says where the data is")
        newest = max(known, key=lambda meta: int(meta[8]))
        self._page_size, self._root = int(newest[2]), int(newest[4])

    def _meta(self, offset: int) -> tuple[int, ...] | None:
        if offset + _META.size > len(self._data):
            return None
        meta: tuple[int, ...] = _META.unpack_from(self._data, offset)
        checksum = 0xCBF29CE484222325
        for byte in self._data[offset : offset + _META.size - 8]:
            checksum = ((checksum ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        return meta if meta[0] == _MAGIC and meta[1] == _VERSION and meta[9] == checksum else None

    def last(self, bucket: bytes) -> bytes | None:
        """The last key of a bucket; None where it has none."""
        offset = self._bucket(bucket)
        for _ in range(_DEEPEST):
            flags, count = self._header(offset)
            if not count:
                return None
            if flags & _LEAF:
                return self._leaf(offset, count - 1)[1]
            offset = self._child(offset, count - 1)
        raise ValueError("its tree has no end")

    def value(self, bucket: bytes, wanted: bytes) -> bytes | None:
        return next((value for _, key, value in self._entries(self._bucket(bucket)) if key == wanted), None)

    def _bucket(self, name: bytes) -> int:
        """Where the root page of a bucket is."""
        for offset, flags, key, value in self._placed(self._root * self._page_size):
            if key == name and flags & _BUCKET:
                (root,) = struct.unpack_from("<Q", value)
                # A small one is in its entry, after the two numbers that say where it is else.
                return int(root) * self._page_size if root else offset + 16
        raise ValueError(f"it has no bucket {name.decode()}")

    def _entries(self, offset: int) -> Iterator[tuple[int, bytes, bytes]]:
        return ((flags, key, value) for _, flags, key, value in self._placed(offset))

    def _placed(self, offset: int, depth: int = 0) -> Iterator[tuple[int, int, bytes, bytes]]:
        """The entries of a tree: where the value is, its flags, key and value."""
        if depth > _DEEPEST:
            raise ValueError("its tree has no end")
        flags, count = self._header(offset)
        for index in range(count):
            if flags & _LEAF:
                place, key, value = self._leaf(offset, index)
                yield place, _LEAF_ELEMENT.unpack_from(self._data, offset + _HEADER.size + index * 16)[0], key, value
            else:
                yield from self._placed(self._child(offset, index), depth + 1)

    def _header(self, offset: int) -> tuple[int, int]:
        _, flags, count, _ = _HEADER.unpack_from(self._data, offset)
        if not flags & (_BRANCH | _LEAF):
            raise ValueError(f"the page at {offset} is none of a tree")
        return int(flags), int(count)

    def _leaf(self, offset: int, index: int) -> tuple[int, bytes, bytes]:
        element = offset + _HEADER.size + index * _LEAF_ELEMENT.size
        _, position, key, value = _LEAF_ELEMENT.unpack_from(self._data, element)
        start = element + position
        if start + key + value > len(self._data):
            raise ValueError(f"the page at {offset} reaches over the end")
        return start + key, self._data[start : start + key], self._data[start + key : start + key + value]

    def _child(self, offset: int, index: int) -> int:
        _, _, page = _BRANCH_ELEMENT.unpack_from(self._data, offset + _HEADER.size + index * _BRANCH_ELEMENT.size)
        return int(page) * self._page_size
