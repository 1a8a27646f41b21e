"""The small programs that every system has: those for files here, those for lines of text in :mod:`.filters`.

Each knows the options that scripts use; another one is an error, as with the real ones.
"""

from __future__ import annotations

import copy
import hashlib
import posixpath
import re
from typing import TYPE_CHECKING

from slipway.simulation.host import filters
from slipway.simulation.host.commandline import UsageError, options, reason
from slipway.simulation.host.files import File, Folder, Link

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.host.files import Entry, FileTree
    from slipway.simulation.shell.process import Process

Program = "Callable[[FileTree, Process], int]"


def _cat(tree: FileTree, process: Process) -> int:
    _, names = options(process, "")
    code = 0
    for name in names or ["-"]:
        try:
            process.out += process.stdin if name == "-" else tree.file(process.path(name)).content
        except OSError as error:
            code = process.fail(f"{name}: {reason(error)}")
    return code


def _mkdir(tree: FileTree, process: Process) -> int:
    given, names = options(process, "pv", valued="m", long={"parents": "p", "mode": "m"})
    mode = int(given.get("m", "755"), 8)
    for name in names:
        try:
            if "p" in given:
                tree.make_dirs(process.path(name), mode)
            else:
                tree.make_dir(process.path(name), mode)
        except OSError as error:
            return process.fail(f"cannot create directory '{name}': {reason(error)}")
    return 0


def _rm(tree: FileTree, process: Process) -> int:
    given, names = options(process, "rRfdv", long={"recursive": "r", "force": "f"})
    code = 0
    for name in names:
        entry = tree.find(process.path(name), follow=False)
        if entry is None:
            code = code if "f" in given else process.fail(f"cannot remove '{name}': No such file or directory")
        elif isinstance(entry, Folder) and not ({"r", "R"} & set(given)):
            code = process.fail(f"cannot remove '{name}': Is a directory")
        else:
            tree.remove(process.path(name))
    return code


def _rmdir(tree: FileTree, process: Process) -> int:
    for name in options(process, "p")[1]:
        entry = tree.find(process.path(name))
        if not isinstance(entry, Folder) or entry.children:
            return process.fail(f"failed to remove '{name}': {'No such file or directory' if entry is None else 'Directory not empty'}")
        tree.remove(process.path(name))
    return 0


def _mv(tree: FileTree, process: Process) -> int:
    given, names = options(process, "fnvT", long={"no-target-directory": "T", "force": "f"})
    if len(names) < 2:
        return process.fail("missing destination file operand")
    *sources, target = names
    for source in sources:
        into = tree.is_dir(process.path(target)) and "T" not in given
        wanted = posixpath.join(process.path(target), posixpath.basename(process.path(source))) if into else process.path(target)
        try:
            tree.rename(process.path(source), wanted)
        except OSError as error:
            if tree.find(process.path(source), follow=False) is None:
                return process.fail(f"cannot stat '{source}': No such file or directory")
            return process.fail(f"cannot move '{source}' to '{target}': {reason(error)}")
    return 0


def _cp(tree: FileTree, process: Process) -> int:
    given, names = options(process, "aprRfTvdL", long={"recursive": "r", "archive": "a", "no-target-directory": "T", "preserve": "p"})
    if len(names) < 2:
        return process.fail("missing destination file operand")
    *sources, target = names
    recursive = bool({"a", "r", "R"} & set(given))
    for source in sources:
        entry = tree.find(process.path(source), follow=not recursive)
        if entry is None:
            return process.fail(f"cannot stat '{source}': No such file or directory")
        if isinstance(entry, Folder) and not recursive:
            return process.fail(f"-r not specified; omitting directory '{source}'")
        into = tree.is_dir(process.path(target)) and "T" not in given
        wanted = posixpath.join(process.path(target), posixpath.basename(process.path(source))) if into else process.path(target)
        try:
            _copied(tree, entry, wanted)
        except OSError as error:
            return process.fail(f"cannot create '{wanted}': {reason(error)}")
    return 0


def _copied(tree: FileTree, entry: Entry, target: str) -> None:
    if isinstance(entry, Folder):
        tree.make_dirs(target, entry.mode)
        for name, child in entry.children.items():
            _copied(tree, child, posixpath.join(target, name))
    elif isinstance(entry, Link):
        tree.remove(target)
        tree.link(target, entry.target)
    else:
        tree.write(target, entry.content, entry.mode)


def _ln(tree: FileTree, process: Process) -> int:
    given, names = options(process, "sfnTv", long={"symbolic": "s", "force": "f"})
    if "s" not in given or len(names) != 2:
        return process.fail("only symbolic links of one name are simulated")
    target, name = names
    path = process.path(name)
    if tree.is_dir(path) and "n" not in given and "T" not in given:
        path = posixpath.join(path, posixpath.basename(target))
    if "f" in given:
        tree.remove(path)
    try:
        tree.link(path, target)
    except OSError as error:
        return process.fail(f"failed to create symbolic link '{name}': {reason(error)}")
    return 0


def _ls(tree: FileTree, process: Process) -> int:
    given, names = options(process, "1aAdtr")
    if "t" in given:
        raise UsageError("files of a simulated machine have no times: -t is not simulated")
    code, lines = 0, []
    for name in names or ["."]:
        path = process.path(name)
        if tree.find(path, follow=False) is None:
            code = process.fail(f"cannot access '{name}': No such file or directory", 2)
        elif tree.is_dir(path) and "d" not in given:
            lines += [each for each in tree.names(path) if not each.startswith(".") or {"a", "A"} & set(given)]
        else:
            lines.append(name)
    for line in reversed(lines) if "r" in given else lines:
        process.say(line)
    return code


def _touch(tree: FileTree, process: Process) -> int:
    for name in options(process, "c")[1]:
        if not tree.exists(process.path(name)):
            try:
                tree.write(process.path(name), b"")
            except OSError as error:
                return process.fail(f"cannot touch '{name}': {reason(error)}")
    return 0


def _chmod(tree: FileTree, process: Process) -> int:
    _, (mode, *names) = options(process, "R")
    for name in names:
        entry = tree.find(process.path(name))
        if entry is None or isinstance(entry, Link):
            return process.fail(f"cannot access '{name}': No such file or directory")
        if not re.fullmatch(r"[0-7]{3,4}", mode):
            return process.fail(f"the mode '{mode}' is not simulated: write it as a number")
        entry.mode = int(mode, 8)
    return 0


def _chown(tree: FileTree, process: Process) -> int:
    _, (_owner, *names) = options(process, "R")
    missing = [name for name in names if not tree.exists(process.path(name))]
    return process.fail(f"cannot access '{missing[0]}': No such file or directory") if missing else 0


def _basename(tree: FileTree, process: Process) -> int:
    name = posixpath.basename(process.arguments[0].rstrip("/"))
    process.say(name.removesuffix(process.arguments[1]) if len(process.arguments) > 1 else name)
    return 0


def _dirname(tree: FileTree, process: Process) -> int:
    process.say(posixpath.dirname(process.arguments[0].rstrip("/")) or ".")
    return 0


def _readlink(tree: FileTree, process: Process) -> int:
    given, (name,) = options(process, "fen")
    entry = tree.find(process.path(name), follow=False)
    if not isinstance(entry, Link):
        if "f" in given and entry is not None:
            process.say(process.path(name))
            return 0
        return 1
    process.say(posixpath.normpath(posixpath.join(posixpath.dirname(process.path(name)), entry.target)) if "f" in given else entry.target)
    return 0


def _sha256sum(tree: FileTree, process: Process) -> int:
    _, names = options(process, "b")
    for name in names or ["-"]:
        content = process.stdin if name == "-" else tree.file(process.path(name)).content
        process.say(f"{hashlib.sha256(content).hexdigest()}  {name}")
    return 0


def _find(tree: FileTree, process: Process) -> int:
    words = list(process.arguments)
    places = []
    while words and not words[0].startswith("-"):
        places.append(words.pop(0))
    tests: list[Callable[[str, Entry, int], bool]] = []
    action = "-print"
    while words:
        word = words.pop(0)
        match word:
            case "-name":
                import fnmatch

                wanted = words.pop(0)
                tests.append(lambda path, entry, depth, wanted=wanted: fnmatch.fnmatchcase(posixpath.basename(path), wanted))  # type: ignore[misc]
            case "-type":
                kind = {"f": File, "d": Folder, "l": Link}[words.pop(0)]
                tests.append(lambda path, entry, depth, kind=kind: isinstance(entry, kind))  # type: ignore[misc]
            case "-maxdepth" | "-mindepth":
                number = int(words.pop(0))
                most = word == "-maxdepth"
                tests.append(lambda path, entry, depth, number=number, most=most: depth <= number if most else depth >= number)  # type: ignore[misc]
            case "-delete" | "-print":
                action = word
            case _:
                raise UsageError(f"unknown predicate '{word}'")
    code = 0
    for place in places or ["."]:
        base = process.path(place)
        top = tree.find(base)
        if top is None:
            code = process.fail(f"'{place}': No such file or directory")
            continue
        found = [(base, top), *tree.walk(base)]
        for path, entry in found:
            depth = path.removeprefix(base).count("/")
            if all(test(path, entry, depth) for test in tests):
                if action == "-delete":
                    tree.remove(path)
                else:
                    process.say(place + path.removeprefix(base))
    return code


def _mktemp(tree: FileTree, process: Process) -> int:
    given, names = options(process, "d")
    number = 0
    while tree.exists(path := re.sub(r"X{3,}$", f"{number:06d}", names[0] if names else "/tmp/tmp.XXXXXXXXXX")):
        number += 1
    if "d" in given:
        tree.make_dirs(path, 0o700)
    else:
        tree.write(path, b"", 0o600)
    process.say(path)
    return 0


def _install(tree: FileTree, process: Process) -> int:
    given, names = options(process, "dDv", valued="mog", long={"mode": "m", "directory": "d"})
    mode = int(given.get("m", "755"), 8)
    if "d" in given:
        for name in names:
            tree.make_dirs(process.path(name), mode)
        return 0
    source, target = names
    if tree.is_dir(process.path(target)):
        target = posixpath.join(target, posixpath.basename(source))
    if "D" in given:
        tree.make_dirs(posixpath.dirname(process.path(target)))
    content = copy.copy(tree.file(process.path(source)).content)
    tree.write(process.path(target), content, mode, keep_mode=False)
    return 0


def _nothing(tree: FileTree, process: Process) -> int:
    return 0


PROGRAMS: dict[str, Callable[[FileTree, Process], int]] = {
    "cat": _cat,
    "mkdir": _mkdir,
    "rm": _rm,
    "rmdir": _rmdir,
    "mv": _mv,
    "cp": _cp,
    "ln": _ln,
    "ls": _ls,
    "touch": _touch,
    "chmod": _chmod,
    "chown": _chown,
    "basename": _basename,
    "dirname": _dirname,
    "readlink": _readlink,
    "sha256sum": _sha256sum,
    "find": _find,
    "mktemp": _mktemp,
    "install": _install,
    "sync": _nothing,
    **filters.PROGRAMS,
}


def run(tree: FileTree, process: Process) -> int:
    """Run one of :data:`PROGRAMS`."""
    try:
        return PROGRAMS[posixpath.basename(process.name)](tree, process)
    except UsageError as error:
        return process.fail(str(error), 2)
    except OSError as error:
        return process.fail(f"{error.filename}: {reason(error)}")
