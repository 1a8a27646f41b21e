"""The small programs that every system has for lines of text: they read files, or what the program before them wrote."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway.simulation.host.commandline import UsageError, options, reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.host.files import FileTree
    from slipway.simulation.shell.process import Process


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
        return 2 if "s" in given else process.fail(f"{error.filename}: {reason(error)}", 2)
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


PROGRAMS: dict[str, Callable[[FileTree, Process], int]] = {
    "head": _head,
    "tail": _tail,
    "cut": _cut,
    "tr": _tr,
    "sort": _sort,
    "uniq": _uniq,
    "wc": _wc,
    "grep": _grep,
    "sed": _sed,
}
