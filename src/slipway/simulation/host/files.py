"""A file system in memory: folders, files with modes and owners, and symbolic links."""

from __future__ import annotations

import errno
import fnmatch
import os
import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINKS = 40


class File:
    __slots__ = ("content", "group", "mode", "user")

    def __init__(self, content: bytes, mode: int = 0o644) -> None:
        self.content, self.mode, self.user, self.group = content, mode, 0, 0


class Folder:
    __slots__ = ("children", "group", "mode", "user")

    def __init__(self, mode: int = 0o755) -> None:
        self.children: dict[str, Entry] = {}
        self.mode, self.user, self.group = mode, 0, 0


class Link:
    __slots__ = ("target",)

    def __init__(self, target: str) -> None:
        self.target = target


Entry = File | Folder | Link


def failure(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class FileTree:
    """Paths are absolute.  Errors are those of the system calls."""

    def __init__(self) -> None:
        self.root = Folder()

    def find(self, path: str, *, follow: bool = True) -> Entry | None:
        try:
            folder, name = self._place(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        entry: Entry | None = folder if not name else folder.children.get(name)
        if isinstance(entry, Link) and follow:
            target = self._target(path, entry)
            return File(b"", 0o666) if target == "/dev/null" else self.find(target)
        return entry

    def exists(self, path: str) -> bool:
        return self.find(path) is not None or posixpath.normpath(path) == "/dev/null"

    def is_dir(self, path: str) -> bool:
        return isinstance(self.find(path), Folder)

    def names(self, path: str) -> list[str]:
        entry = self.find(path)
        if entry is None:
            raise failure(errno.ENOENT, path)
        if not isinstance(entry, Folder):
            raise failure(errno.ENOTDIR, path)
        return sorted(entry.children)

    def file(self, path: str) -> File:
        entry = self.find(path)
        if entry is None:
            raise failure(errno.ENOENT, path)
        if not isinstance(entry, File):
            raise failure(errno.EISDIR, path)
        return entry

    def write(self, path: str, content: bytes, mode: int = 0o644, *, keep_mode: bool = True) -> File:
        """Write a file whose folder is there; one that is there keeps its owner, and its mode unless that is not wanted."""
        if path == "/dev/null":
            return File(b"")
        entry = self.find(path)
        if isinstance(entry, Folder):
            raise failure(errno.EISDIR, path)
        if entry is None:
            linked = self.find(path, follow=False)
            folder, name = self._place(self._target(path, linked) if isinstance(linked, Link) else path)
            entry = folder.children[name] = File(content, mode)
        assert isinstance(entry, File)
        entry.content = content
        if not keep_mode:
            entry.mode = mode
        return entry

    def make_dirs(self, path: str, mode: int = 0o755) -> None:
        """All folders of a path that are missing."""
        so_far = ""
        for name in _names(path):
            so_far += f"/{name}"
            found = self.find(so_far)
            if found is None:
                folder, last = self._place(so_far)
                folder.children[last] = Folder(mode)
            elif not isinstance(found, Folder):
                raise failure(errno.ENOTDIR, so_far)

    def make_dir(self, path: str, mode: int = 0o755) -> None:
        folder, name = self._place(path)
        if not name or name in folder.children:
            raise failure(errno.EEXIST, path)
        folder.children[name] = Folder(mode)

    def link(self, path: str, target: str) -> None:
        folder, name = self._place(path)
        if name in folder.children:
            raise failure(errno.EEXIST, path)
        folder.children[name] = Link(target)

    def remove(self, path: str) -> bool:
        """Remove a file, a link or a whole folder; whether there was one."""
        try:
            folder, name = self._place(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return folder.children.pop(name, None) is not None

    def rename(self, path: str, target: str) -> None:
        source, name = self._place(path)
        entry = source.children.get(name)
        if entry is None:
            raise failure(errno.ENOENT, path)
        folder, wanted = self._place(target)
        there = folder.children.get(wanted)
        if isinstance(there, Folder) and not isinstance(entry, Folder):
            raise failure(errno.EISDIR, target)
        if isinstance(there, Folder) and there.children:
            raise failure(errno.ENOTEMPTY, target)
        del source.children[name]
        folder.children[wanted] = entry

    def walk(self, path: str = "/") -> Iterator[tuple[str, Entry]]:
        """Everything below a folder, the folder not counted."""
        entry = self.find(path)
        if isinstance(entry, Folder):
            for name in sorted(entry.children):
                below = posixpath.join(path, name)
                yield below, entry.children[name]
                if isinstance(entry.children[name], Folder):
                    yield from self.walk(below)

    def glob(self, pattern: str) -> list[str]:
        """The paths that match, sorted; a leading dot is matched by itself alone."""
        found = ["/"]
        for part in _names(pattern):
            if not any(sign in part for sign in "*?["):
                found = [path for path in (posixpath.join(base, part) for base in found) if self.find(path, follow=False) is not None]
                continue
            found = [
                posixpath.join(base, name)
                for base in found
                if self.is_dir(base)
                for name in self.names(base)
                if fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))
            ]
        return sorted(found)

    def _place(self, path: str) -> tuple[Folder, str]:
        """The folder that an entry is in, links in its path followed, and the entry's name; the root has none."""
        folder, names = self.root, _names(path)
        trail: list[str] = []
        budget = _LINKS
        while len(names) > 1:
            name = names.pop(0)
            entry = folder.children.get(name)
            if isinstance(entry, Link):
                budget -= 1
                if not budget:
                    raise failure(errno.ELOOP, path)
                names = [*_names(self._target("/" + "/".join([*trail, name]), entry)), *names]
                folder, trail = self.root, []
                continue
            if entry is None:
                raise failure(errno.ENOENT, path)
            if not isinstance(entry, Folder):
                raise failure(errno.ENOTDIR, path)
            folder = entry
            trail.append(name)
        return folder, names[0] if names else ""

    @staticmethod
    def _target(path: str, link: Link) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), link.target))


def _names(path: str) -> list[str]:
    return [name for name in posixpath.normpath(path).split("/") if name]
