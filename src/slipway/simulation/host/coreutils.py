"""The small programs that every system has: for files, and for lines of text.

Each knows the options that scripts use; another one is an error, as with the real ones.
"""

from __future__ import annotations

import copy
import hashlib
import os
import posixpath
import re
from typing import TYPE_CHECKING

from slipway.simulation.host.files import File, Folder, Link

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.host.files import Entry, FileTree
    from slipway.simulation.shell.process import Process

Program = "Callable[[FileTree, Process], int]"


class UsageError(Exception):
    """An option that the program does not have here."""


def options(process: Process, known: str, *, valued: str = "", long: dict[str, str] | None = None) -> tuple[dict[str, str], list[str]]:
    """The options and the operands of a command line; ``long`` maps long names to letters."""
    found: dict[str, str] = {}
    operands: list[str] = []
    words = list(process.arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            operands += words
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            letter = (long or {}).get(name)
            if letter is None:
                raise UsageError(f"unrecognized option '{word}'")
            found[letter] = value if equals else (words.pop(0) if letter in valued and words else "")
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in valued:
                    found[letter] = letters or (words.pop(0) if words else "")
                    break
                if letter not in known:
                    raise UsageError(f"invalid option -- '{letter}'")
                found[letter] = ""
        else:
            operands.append(word)
    return found, operands


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or 0)


def _cat(tree: FileTree, process: Process) -> int:
    _, names = options(process, "")
    code = 0
    for name in names or ["-"]:
        try:
            process.out += process.stdin if name == "-" else tree.file(process.path(name)).content
        except OSError as error:
            code = process.fail(f"{name}: {_reason(error)}")
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
            return process.fail(f"cannot create directory '{name}': {_reason(error)}")
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
            return process.fail(f"cannot move '{source}' to '{target}': {_reason(error)}")
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
            return process.fail(f"cannot create '{wanted}': {_reason(error)}")
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
        return process.fail(f"failed to create symbolic link '{name}': {_reason(error)}")
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
                return process.fail(f"cannot touch '{name}': {_reason(error)}")
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


def _lines_of(tree: FileTree, process: Process, names: list[str]) -> list[str]:
    content = b"".join(process.stdin if name == "-" else tree.file(process.path(name)).content for name in names or ["-"])
    return content.decode(errors="replace").splitlines()


def _head(tree: FileTree, process: Process) -> int:
    return _end(tree, process, lambda lines, count: lines[:count])


def _tail(tree: FileTree, process: Process) -> int:
    return _end(tree, process, lambda lines, count: lines[-count:] if count else [])


def _end(tree: FileTree, process: Process, cut: Callable[[list[str], int], list[str]]) -> int:
    process.words = [re.sub(r"^-(\d+)$", r"-n\1", word) for word in process.words]
    given, names = options(process, "q", valued="nc", long={"lines": "n", "bytes": "c"})
    if "c" in given:
        content = b"".join(tree.file(process.path(name)).content for name in names) if names else process.stdin
        process.out += content[: int(given["c"])]
        return 0
    for line in cut(_lines_of(tree, process, names), int(given.get("n", "10"))):
        process.say(line)
    return 0


def _cut(tree: FileTree, process: Process) -> int:
    given, names = options(process, "s", valued="dfc")
    first, _, last = (given.get("f") or given.get("c") or "1").partition("-")
    for line in _lines_of(tree, process, names):
        pieces = list(line) if "c" in given else line.split(given.get("d", "\t"))
        begin = int(first or 1) - 1
        end = (int(last) if last else len(pieces)) if "-" in (given.get("f") or given.get("c") or "") else begin + 1
        process.say(("" if "c" in given else given.get("d", "\t")).join(pieces[begin:end]) if len(pieces) > 1 or "c" in given else line)
    return 0


def _tr(tree: FileTree, process: Process) -> int:
    given, sets = options(process, "ds")
    text = process.stdin.decode(errors="replace")
    first = _set_of(sets[0])
    if "d" in given:
        process.out += "".join(sign for sign in text if sign not in first).encode()
        return 0
    second = _set_of(sets[1])
    second += second[-1] * (len(first) - len(second))
    process.out += text.translate(str.maketrans(first, second[: len(first)])).encode()
    return 0


def _set_of(text: str) -> str:
    text = (
        text.replace("\\n", "\n").replace("\\t", "\t").replace("[:upper:]", "A-Z").replace("[:lower:]", "a-z").replace("[:space:]", " \t\n")
    )
    return re.sub(r"(.)-(.)", lambda match: "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1))), text)


def _sort(tree: FileTree, process: Process) -> int:
    given, names = options(process, "runV")
    key = _natural if "V" in given else (_number if "n" in given else str)
    lines = sorted(_lines_of(tree, process, names), key=key, reverse="r" in given)
    for line in dict.fromkeys(lines) if "u" in given else lines:
        process.say(line)
    return 0


def _natural(text: str) -> list[tuple[int, int, str]]:
    return [(1, int(piece), "") if piece.isdecimal() else (0, 0, piece) for piece in re.findall(r"\d+|\D+", text)]


def _number(text: str) -> tuple[float, str]:
    match = re.match(r"\s*-?\d+(\.\d+)?", text)
    return (float(match[0]) if match else 0.0, text)


def _uniq(tree: FileTree, process: Process) -> int:
    before = None
    for line in _lines_of(tree, process, options(process, "")[1]):
        if line != before:
            process.say(line)
        before = line
    return 0


def _wc(tree: FileTree, process: Process) -> int:
    given, names = options(process, "lc")
    content = b"".join(tree.file(process.path(name)).content for name in names) if names else process.stdin
    process.say(str(content.count(b"\n") if "l" in given else len(content)))
    return 0


def _grep(tree: FileTree, process: Process) -> int:
    given, names = options(process, "qFEvixowlsch", valued="em", long={"quiet": "q", "fixed-strings": "F", "max-count": "m"})
    wanted = given["e"] if "e" in given else names.pop(0)
    expression = re.escape(wanted) if "F" in given else _regular(wanted, extended="E" in given)
    if "x" in given or "w" in given:
        expression = rf"\A(?:{expression})\Z" if "x" in given else rf"\b(?:{expression})\b"
    compiled = re.compile(expression, re.IGNORECASE if "i" in given else 0)
    try:
        lines = _lines_of(tree, process, names)
    except OSError as error:
        return 2 if "s" in given else process.fail(f"{error.filename}: {_reason(error)}", 2)
    found = [line for line in lines if (compiled.search(line) is None) is ("v" in given)]
    if "q" in given:
        return 0 if found else 1
    if "c" in given:
        process.say(str(len(found)))
    elif "o" in given:
        for line in found:
            for match in compiled.finditer(line):
                process.say(match[0])
    else:
        for line in found[: int(given["m"])] if "m" in given else found:
            process.say(line)
    return 0 if found else 1


def _regular(text: str, *, extended: bool) -> str:
    """A POSIX expression as Python writes it; in a basic one the signs of an extended one stand for themselves."""
    for name, meaning in (("digit", "0-9"), ("space", r"\s"), ("alnum", "A-Za-z0-9"), ("alpha", "A-Za-z"), ("xdigit", "0-9a-fA-F")):
        text = text.replace(f"[:{name}:]", meaning)
    if extended:
        return text
    return re.sub(r"\\?[(){}+?|]", lambda match: match[0][1] if match[0].startswith("\\") else f"\\{match[0]}", text)


def _sed(tree: FileTree, process: Process) -> int:
    given, names = options(process, "nErzi", valued="e", long={"quiet": "n", "regexp-extended": "E", "in-place": "i"})
    script = given["e"] if "e" in given else names.pop(0)
    extended = bool({"E", "r"} & set(given))
    edited = []
    for number, line in enumerate(_lines_of(tree, process, names), 1):
        result = _edited(script, line, number, extended=extended, quiet="n" in given)
        if result is None:
            raise UsageError(f"this script is not simulated: {script}")
        edited += result
    content = "".join(f"{line}\n" for line in edited).encode()
    if "i" in given:
        tree.write(process.path(names[0]), content)
    else:
        process.out += content
    return 0


def _edited(script: str, line: str, number: int, *, extended: bool, quiet: bool) -> list[str] | None:
    """``s``, and ``p`` or ``d`` of a line number or an expression."""
    substitution = re.fullmatch(r"s(.)(.*?)(?<!\\)\1(.*?)(?<!\\)\1([gp]*)", script)
    if substitution is not None:
        replacement = re.sub(r"\\(\d)", r"\\g<\1>", substitution[3].replace(f"\\{substitution[1]}", substitution[1]))
        replacement = re.sub(r"(?<!\\)&", r"\\g<0>", replacement)
        count = 0 if "g" in substitution[4] else 1
        changed, times = re.subn(_regular(substitution[2], extended=extended), replacement, line, count=count)
        printed = [changed] if "p" in substitution[4] and times else []
        return printed if quiet else [changed, *printed]
    addressed = re.fullmatch(r"(?:(\d+)|/(.*)/)([pd])", script)
    if addressed is None:
        return None
    hit = number == int(addressed[1]) if addressed[1] else re.search(_regular(addressed[2], extended=extended), line) is not None
    if addressed[3] == "d":
        return [] if hit or quiet else [line]
    return [line] * (int(hit) + int(not quiet))


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
    "head": _head,
    "tail": _tail,
    "cut": _cut,
    "tr": _tr,
    "sort": _sort,
    "uniq": _uniq,
    "wc": _wc,
    "grep": _grep,
    "sed": _sed,
    "basename": _basename,
    "dirname": _dirname,
    "readlink": _readlink,
    "sha256sum": _sha256sum,
    "find": _find,
    "mktemp": _mktemp,
    "install": _install,
    "sync": _nothing,
}


def run(tree: FileTree, process: Process) -> int:
    """Run one of :data:`PROGRAMS`."""
    try:
        return PROGRAMS[posixpath.basename(process.name)](tree, process)
    except UsageError as error:
        return process.fail(str(error), 2)
    except OSError as error:
        return process.fail(f"{error.filename}: {_reason(error)}")
