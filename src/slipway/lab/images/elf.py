"""Reads which shared libraries a program needs, out of its ELF header and dynamic section.

``ldd`` would run the program's loader, which is no good for a root file system that is not this machine's.
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

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


class _Segment(msgspec.Struct, frozen=True):
    kind: int
    offset: int
    address: int
    size: int


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
