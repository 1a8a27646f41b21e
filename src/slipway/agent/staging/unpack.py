"""Puts the layers of an image one over the other into a folder: its root file system.

What a layer says is nobody's but its maker's: it is unpacked by a process of its own whose root is that folder, so that no link in an
image leads out of it.  Everything that the process needs is read before it goes there.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import stat
import tarfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_OPAQUE, _WHITEOUT = ".wh..wh..opq", ".wh."
_XATTR = "SCHILY.xattr."
_LONGEST_REASON = 4096


class UnpackError(Exception):
    """A layer that cannot be put into the folder, with the reason."""


def unpack(chunks: Iterable[bytes], root: str) -> None:
    """Put a layer, an uncompressed tar, over what is in the folder; what ``chunks`` raises is raised, and the folder is not to be used."""
    with _unpacker(root) as write:
        for chunk in chunks:
            write(chunk)


@contextmanager
def _unpacker(root: str) -> Iterator[Callable[[bytes], object]]:
    data_out, data_in = os.pipe()
    told_out, told_in = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(data_in)
        os.close(told_out)
        _unpack_and_end(data_out, told_in, root)
    os.close(data_out)
    os.close(told_in)
    reason = ""
    try:
        yield lambda chunk: _write_all(data_in, chunk)
    except BrokenPipeError:
        # It ended before its time, and says why.
        pass
    finally:
        os.close(data_in)
        with open(told_out, "rb") as told:
            reason = told.read(_LONGEST_REASON).decode(errors="replace")
        _, status = os.waitpid(process, 0)
    if status != 0:
        raise UnpackError(reason or f"the process that unpacks ended with {os.waitstatus_to_exitcode(status)}")


def _write_all(pipe: int, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[os.write(pipe, left) :]


def _unpack_and_end(data: int, told: int, root: str) -> None:
    """The process that unpacks: it never returns."""
    code = 1
    try:
        os.chroot(root)
        os.chdir("/")
        os.umask(0)
        with open(data, "rb") as stream:
            apply(stream)
            # What comes after the end of the archive belongs to the layer, too.
            while stream.read(1 << 20):
                pass
        code = 0
    except BaseException as error:
        os.write(told, f"{type(error).__name__}: {error}".encode()[:_LONGEST_REASON])
    finally:
        os._exit(code)


def apply(stream: IO[bytes]) -> None:
    """Put a tar over what is under the root of this process."""
    made: set[str] = set()
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            name = posixpath.normpath(f"/{member.name}")
            folder, base = posixpath.split(name)
            if base == _OPAQUE:
                _remove_all(folder, made)
            elif base.startswith(_WHITEOUT):
                _remove(posixpath.join(folder, base.removeprefix(_WHITEOUT)))
            elif member.ischr() and (member.devmajor, member.devminor) == (0, 0):
                # As an overlay has it on disk.
                _remove(name)
            elif base:
                made.add(name)
                _put(archive, member, name)


def _put(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
    there = _kind(name)
    if there is not None and not (stat.S_ISDIR(there) and member.isdir()):
        _remove(name)
    # Under this root a link leads to where it will lead when the image is booted, though that may not be there yet.
    os.makedirs(os.path.realpath(posixpath.dirname(name)), 0o755, exist_ok=True)
    member.name = name.lstrip("/")
    if member.islnk():
        member.linkname = posixpath.normpath(f"/{member.linkname}").lstrip("/")
    try:
        # Of a file with several names, the first one says whose it is.
        archive.extract(member, "/", set_attrs=not member.islnk(), numeric_owner=True)
    except PermissionError:
        # A host in a container may not make devices, and the kernel of the next boot makes its own.
        if not member.isdev():
            raise
        return
    for key, value in member.pax_headers.items():
        if key.startswith(_XATTR) and not member.issym():
            os.setxattr(name, key.removeprefix(_XATTR), value.encode("utf-8", "surrogateescape"))


def _remove_all(folder: str, but: set[str]) -> None:
    """What layers below have in a folder; what this one put there stays."""
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if posixpath.join(folder, name) not in but:
            _remove(posixpath.join(folder, name))


def _remove(path: str) -> None:
    kind = _kind(path)
    if kind is not None and stat.S_ISDIR(kind):
        shutil.rmtree(path)
    elif kind is not None:
        os.unlink(path)


def _kind(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None
