"""The folder for everything that is slow to obtain, and what is in it: programs with a record of what they are.

A file gets its final name only when it is whole.  A program lies in the folder of its own version, so that two
Kubernetes patches with the same etcd share it, and beside it ``<program>.json`` records its checksum and where it
came from; before it is used, it is compared with that.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.programs import catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a cached program."""

    version: str
    source: str
    sha256: str
    size: int


class CachedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """One program in the cache, for a person who wants to know what fills the disk."""

    program: str
    version: str
    size: int
    source: str
    """Where it came from; empty where nobody wrote it down yet."""
    path: Path


class DamagedError(Exception):
    """A cached program that is not what its record says."""


def cache_root() -> Path:
    """The folder for everything that is slow to obtain."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "slipway"


def shelf(program: str, version: str) -> str:
    """The name of the folder for a program's version: ``v1.35.4``, ``etcd-v3.6.6``."""
    project = catalog.project_of(program)
    return version if project == "kubernetes" else f"{project}-{version}"


def place(root: Path, program: str, version: str) -> Path:
    """Where the cache keeps a program."""
    return root / "bin" / shelf(program, version) / program


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock ``path``, so that two runs do not do the same work; ``on_wait`` is told when another run has it.

    A folder in which nothing but the lock came about is removed again.
    """
    with _lock(path, on_wait):
        try:
            yield
        finally:
            if [entry.name for entry in path.parent.iterdir()] == [path.name]:
                path.unlink()
                path.parent.rmdir()


def _lock(path: Path, on_wait: Callable[[], None] | None) -> IO[str]:
    """The file that holds the lock for as long as it is open."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            handle = path.open("w")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if on_wait is not None:
                    on_wait()
                fcntl.flock(handle, fcntl.LOCK_EX)
            # Whoever had the lock may have removed the file: what is locked now protects nothing.
            if path.exists() and os.path.samestat(os.fstat(handle.fileno()), path.stat()):
                return handle
            handle.close()


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A path beside ``target`` to write to; it becomes ``target`` when the block ends well, and vanishes otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield partial
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


def _remove_leftovers(target: Path) -> None:
    """Remove what runs that were killed left of ``target``: a partial file has the id of its process at the end."""
    for partial in target.parent.glob(f".{target.name}.*"):
        process = partial.suffix[1:]
        if process.isdigit() and not Path("/proc", process).exists():
            partial.unlink(missing_ok=True)


@contextmanager
def space_needed(what: str, folder: Path, size: int = 0) -> Iterator[None]:
    """Do something that fills the disk: it is refused when ``size`` bytes are not free, and a full disk gets a sentence."""
    free = shutil.disk_usage(existing_parent(folder)).free
    if free < size:
        raise OperatorError(
            f"not enough disk space for {what}: {free // 2**20} MiB are free in {folder} and {size // 2**20} MiB are needed; "
            f"free some with `slipway lab components --prune`, or set XDG_CACHE_HOME to a folder on a larger disk"
        )
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OperatorError(
            f"the disk became full during {what}: free space in {folder}, for example with `slipway lab components --prune`, "
            f"or set XDG_CACHE_HOME to a folder on a larger disk"
        ) from None


def existing_parent(path: Path) -> Path:
    """The nearest folder on the way up that exists."""
    return path if path.exists() else existing_parent(path.parent)


def checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def record(path: Path, version: str, source: str) -> Record:
    """Write down what the program at ``path`` is."""
    made = Record(version=version, source=source, sha256=checksum(path), size=path.stat().st_size)
    with appearing(_record_path(path)) as partial:
        partial.write_bytes(msgspec.json.encode(made) + b"\n")
    return made


def read_record(path: Path) -> Record | None:
    """What was written down about the program at ``path``; None where nothing readable was."""
    try:
        return msgspec.json.decode(_record_path(path).read_bytes(), type=Record)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def find(root: Path, program: str, version: str) -> Path | None:
    """The cached program after a check of what it is; one without a record is asked for its version and then recorded."""
    path = place(root, program, version)
    if not path.exists():
        return None
    known = read_record(path)
    if known is not None:
        if checksum(path) != known.sha256:
            raise DamagedError(f"{path} does not have the SHA-256 {known.sha256} that was recorded for it")
        return path
    try:
        stated = catalog.stated_version(program, path)
    except catalog.NoAnswerError as error:
        raise DamagedError(str(error)) from None
    if stated != version:
        raise DamagedError(f"{path} is {stated}, not {version}")
    record(path, version, "")
    return path


def discard(path: Path) -> None:
    """Take a program out of the cache, its record first: what is left after an interruption is then asked again."""
    _record_path(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def listing(root: Path | None = None) -> list[CachedProgram]:
    """The programs in the cache, by version."""
    found = []
    for folder in _shelves(root or cache_root()):
        for path in sorted(folder.iterdir()):
            if path.name in catalog.PROGRAMS:
                known = read_record(path)
                version = folder.name.removeprefix(f"{catalog.project_of(path.name)}-")
                source = known.source if known else ""
                found.append(CachedProgram(program=path.name, version=version, size=path.stat().st_size, source=source, path=path))
    return found


def prune(keep_versions: Iterable[str], root: Path | None = None) -> int:
    """Remove what does not belong to one of the Kubernetes versions; what another run works on stays.  The bytes freed."""
    root = root or cache_root()
    keep = {name for version in keep_versions for name in _shelves_of(version)}
    doomed = [folder for folder in (*_shelves(root), *_folders(root / "archives"), *_folders(root / "build")) if folder.name not in keep]
    if not keep and (root / "go").is_dir():
        doomed.append(root / "go")
    return sum(_removed(folder) for folder in doomed)


def _removed(folder: Path) -> int:
    """Remove a folder unless somebody holds the lock in it."""
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
        shutil.rmtree(folder)
        return size


def _shelves(root: Path) -> list[Path]:
    """The folders of programs; others may keep something beside them."""
    prefixes = ("v", *(f"{program.project}-" for program in catalog.PROGRAMS.values()))
    return [folder for folder in _folders(root / "bin") if folder.name.startswith(prefixes)]


def _shelves_of(version: str) -> set[str]:
    release = catalog.release_named(version)
    return {shelf(name, catalog.wanted_version(name, release)) for name in catalog.PROGRAMS}


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []


def _record_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
