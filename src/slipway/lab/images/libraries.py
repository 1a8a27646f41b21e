"""Collects programs of a Debian root file system with every shared library that they need, as files of an image.

What a program needs stands in its ELF header and dynamic section: ``ldd`` would run the program's loader, which is no good
for a root file system that is not this machine's.
"""

from __future__ import annotations

import mmap
import posixpath
import struct
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.images.oci import Entry, File, FileOnDisk, Link

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_PROGRAM_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
_LIBRARY_FOLDERS = ("/usr/lib", "/lib", "/usr/lib64", "/lib64")
_MOST_LINKS = 40

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 15, 29
_64_BIT_LITTLE_ENDIAN = b"\x7fELF\x02\x01"


class NotELFError(Exception):
    """A file that is no 64-bit little-endian ELF file."""


class Linkage(msgspec.Struct, frozen=True, kw_only=True):
    """What the loader must find for a program: itself, and libraries by name."""

    interpreter: str
    """The path of the loader; empty for a library and for a static program."""
    needed: tuple[str, ...]
    search_path: tuple[str, ...]
    """Folders that the file itself names (RPATH and RUNPATH)."""


def program_files(rootfs: Path, programs: dict[str, str], plugins: Iterable[str] = ()) -> dict[str, Entry]:
    """The files that ``programs`` (with the Debian package of each) need to run.

    ``plugins`` are patterns for libraries that programs load by themselves, below the folders of libraries.
    """
    collection = _Collection(rootfs)
    for name, package in programs.items():
        collection.add_program(name, package)
    for pattern in plugins:
        collection.add_plugins(pattern)
    return collection.files


def resolve(rootfs: Path, path: str) -> str:
    """Where ``path`` of the root file system leads, links followed as its own processes would follow them."""
    resolved, waiting, links = "/", path.strip("/").split("/"), 0
    while waiting:
        step = posixpath.normpath(posixpath.join(resolved, waiting.pop(0)))
        on_disk = rootfs / step.lstrip("/")
        if not on_disk.is_symlink():
            resolved = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OperatorError(f"{path} in {rootfs} is a link that never ends: make the root file system anew")
        target = str(on_disk.readlink())
        resolved = "/" if target.startswith("/") else posixpath.dirname(step)
        waiting = target.strip("/").split("/") + waiting
    return resolved


def linkage(path: Path) -> Linkage:
    """What the file at ``path`` is linked with."""
    with path.open("rb") as stream:
        if stream.read(len(_64_BIT_LITTLE_ENDIAN)) != _64_BIT_LITTLE_ENDIAN:
            raise NotELFError(f"{path} is not a 64-bit ELF file")
        # Programs are large and only a few of their pages matter here.
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _linkage(data)
            except (struct.error, UnicodeDecodeError, StopIteration):
                raise NotELFError(f"{path} is a damaged ELF file") from None


class _Collection:
    def __init__(self, rootfs: Path) -> None:
        self.files: dict[str, Entry] = {}
        self._rootfs = rootfs
        self._triplets = sorted({path.name for folder in ("usr/lib", "lib") for path in (rootfs / folder).glob("*-linux-gnu*")})

    def add_program(self, name: str, package: str) -> None:
        path = self._first(f"{folder}/{name}" for folder in _PROGRAM_FOLDERS)
        if path is None:
            raise OperatorError(f"{self._rootfs} has no program {name}: install the Debian package {package} there")
        # One program often has many names and goes by the one that it is called with.
        real = resolve(self._rootfs, path)
        self._add(real, 0o755)
        if real != path:
            self.files[path] = Link(real)

    def add_plugins(self, pattern: str) -> None:
        for folder in self._library_folders():
            if resolve(self._rootfs, folder) == folder:
                for path in sorted(self._on_disk(folder).glob(pattern)):
                    self._add("/" + path.relative_to(self._rootfs).as_posix(), 0o644)

    def _add(self, path: str, mode: int) -> None:
        if path in self.files:
            return
        on_disk = self._on_disk(resolve(self._rootfs, path))
        self.files[path] = File(FileOnDisk.at(on_disk), mode)
        try:
            linked = linkage(on_disk)
        except NotELFError as error:
            raise OperatorError(f"{error}: its libraries are not known, so it cannot go into an image") from None
        if linked.interpreter:
            self._add(linked.interpreter, 0o755)
        for name in linked.needed:
            self._add_library(name, linked, path)

    def _add_library(self, name: str, linked: Linkage, user: str) -> None:
        # The loader is its own library, and it is there already.
        if any(posixpath.basename(path) == name for path in self.files):
            return
        found = self._first(f"{folder}/{name}" for folder in (*linked.search_path, *self._library_folders()))
        if found is None:
            raise OperatorError(f"{self._rootfs} has no library {name}, which {user} needs: make the root file system anew")
        self._add(found, 0o644)

    def _library_folders(self) -> list[str]:
        return [f"{folder}/{triplet}" for triplet in self._triplets for folder in ("/usr/lib", "/lib")] + list(_LIBRARY_FOLDERS)

    def _first(self, paths: Iterable[str]) -> str | None:
        return next((path for path in paths if self._on_disk(resolve(self._rootfs, path)).is_file()), None)

    def _on_disk(self, path: str) -> Path:
        return self._rootfs / path.lstrip("/")


class _Segment(msgspec.Struct, frozen=True):
    kind: int
    offset: int
    address: int
    size: int


def _linkage(data: mmap.mmap) -> Linkage:
    segments = _segments(data)
    interpreter = next((_string(data, segment.offset) for segment in segments if segment.kind == _PT_INTERP), "")
    dynamic = next((segment for segment in segments if segment.kind == _PT_DYNAMIC), None)
    if dynamic is None:
        return Linkage(interpreter=interpreter, needed=(), search_path=())
    tags = []
    for tag, value in struct.iter_unpack("<qQ", data[dynamic.offset : dynamic.offset + dynamic.size]):
        if tag == _DT_NULL:
            break
        tags.append((tag, value))
    strings = next((_file_offset(segments, value) for tag, value in tags if tag == _DT_STRTAB), 0)
    search = [_string(data, strings + value) for tag, value in tags if tag in (_DT_RPATH, _DT_RUNPATH)]
    return Linkage(
        interpreter=interpreter,
        needed=tuple(_string(data, strings + value) for tag, value in tags if tag == _DT_NEEDED),
        search_path=tuple(folder for folders in search for folder in folders.split(":") if folder),
    )


def _segments(data: mmap.mmap) -> list[_Segment]:
    (table,) = struct.unpack_from("<Q", data, 0x20)
    entry_size, count = struct.unpack_from("<HH", data, 0x36)
    segments = []
    for index in range(count):
        kind, _flags, offset, address, _physical, size = struct.unpack_from("<IIQQQQ", data, table + index * entry_size)
        segments.append(_Segment(kind, offset, address, size))
    return segments


def _file_offset(segments: list[_Segment], address: int) -> int:
    """Where in the file an address of the running program lies."""
    home = next(segment for segment in segments if segment.kind == _PT_LOAD and segment.address <= address < segment.address + segment.size)
    return address - home.address + home.offset


def _string(data: mmap.mmap, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode()
