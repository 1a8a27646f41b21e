"""Collects programs of a Debian root file system with every shared library that they need, as files of an image."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.lab.images import elf
from slipway.lab.images.oci import Entry, File, FileOnDisk, Link

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_PROGRAM_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
_LIBRARY_FOLDERS = ("/usr/lib", "/lib", "/usr/lib64", "/lib64")
_MOST_LINKS = 40


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
            linkage = elf.linkage(on_disk)
        except elf.NotELFError as error:
            raise OperatorError(f"{error}: its libraries are not known, so it cannot go into an image") from None
        if linkage.interpreter:
            self._add(linkage.interpreter, 0o755)
        for name in linkage.needed:
            self._add_library(name, linkage, path)

    def _add_library(self, name: str, linkage: elf.Linkage, user: str) -> None:
        # The loader is its own library, and it is there already.
        if any(posixpath.basename(path) == name for path in self.files):
            return
        found = self._first(f"{folder}/{name}" for folder in (*linkage.search_path, *self._library_folders()))
        if found is None:
            raise OperatorError(f"{self._rootfs} has no library {name}, which {user} needs: make the root file system anew")
        self._add(found, 0o644)

    def _library_folders(self) -> list[str]:
        return [f"{folder}/{triplet}" for triplet in self._triplets for folder in ("/usr/lib", "/lib")] + list(_LIBRARY_FOLDERS)

    def _first(self, paths: Iterable[str]) -> str | None:
        return next((path for path in paths if self._on_disk(resolve(self._rootfs, path)).is_file()), None)

    def _on_disk(self, path: str) -> Path:
        return self._rootfs / path.lstrip("/")
