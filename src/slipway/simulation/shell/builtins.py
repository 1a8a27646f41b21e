"""The commands that a shell has in itself."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from slipway.simulation.host.files import File, Folder, Link
from slipway.simulation.shell.process import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.shell.interpreter import Shell

_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "r": "\r", "0": "\0", "a": "\a", "b": "\b"}


def _true(shell: Shell, words: list[str]) -> int:
    return 0


def _false(shell: Shell, words: list[str]) -> int:
    return 1


def _echo(shell: Shell, words: list[str]) -> int:
    end = "\n"
    if words and words[0] == "-n":
        words, end = words[1:], ""
    shell.streams.out += (" ".join(map(_escaped, words)) + end).encode()
    return 0


def _printf(shell: Shell, words: list[str]) -> int:
    if words and words[0] == "--":
        words = words[1:]
    if not words:
        shell.complain("printf: usage: printf format [arg ...]")
        return 2
    template, values = _escaped(words[0]), list(words[1:])
    while True:
        before = len(values)

        def value(match: re.Match[str]) -> str:
            if match[0] == "%%":
                return "%"
            given = values.pop(0) if values else ""
            if match[2] == "d":
                return f"%{match[1]}d" % int(given or 0)
            return f"%{match[1]}s" % (_escaped(given) if match[2] == "b" else given)

        shell.streams.out += re.sub(r"%%|%([-0-9.]*)([sdb])", value, template).encode()
        if not values or len(values) == before:
            return 0


def _escaped(text: str) -> str:
    """As dash has it: echo knows backslashes."""
    return re.sub(r"\\([ntr\\0ab])", lambda match: _ESCAPES[match[1]], text) if "\\" in text else text


def _cd(shell: Shell, words: list[str]) -> int:
    target = posixpath.normpath(posixpath.join(shell.folder, words[0] if words else shell.value("HOME") or "/"))
    if not shell.system.tree.is_dir(target):
        shell.complain(f"cd: can't cd to {words[0] if words else target}")
        return 2
    shell.variables["OLDPWD"], shell.variables["PWD"] = shell.folder, target
    shell.folder = target
    return 0


def _pwd(shell: Shell, words: list[str]) -> int:
    shell.streams.out += f"{shell.folder}\n".encode()
    return 0


def _exit(shell: Shell, words: list[str]) -> int:
    from slipway.simulation.shell.interpreter import Exit

    raise Exit(int(words[0]) if words else shell.code)


def _return(shell: Shell, words: list[str]) -> int:
    from slipway.simulation.shell.interpreter import Return

    raise Return(int(words[0]) if words else shell.code)


def _break(shell: Shell, words: list[str]) -> int:
    from slipway.simulation.shell.interpreter import Loop

    raise Loop(int(words[0]) if words else 1, again=False)


def _continue(shell: Shell, words: list[str]) -> int:
    from slipway.simulation.shell.interpreter import Loop

    raise Loop(int(words[0]) if words else 1, again=True)


def _export(shell: Shell, words: list[str]) -> int:
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            shell.variables[name] = value
        shell.exported.add(name)
    return 0


def _local(shell: Shell, words: list[str]) -> int:
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            shell.variables[name] = value
    return 0


def _unset(shell: Shell, words: list[str]) -> int:
    for word in words:
        shell.variables.pop(word, None)
        shell.exported.discard(word)
    return 0


def _set(shell: Shell, words: list[str]) -> int:
    words = list(words)
    while words and re.fullmatch(r"[-+][A-Za-z]+", words[0]):
        word = words.pop(0)
        letters = set(word[1:]) - {"o"}
        if "o" in word[1:] and words:
            letters.add({"errexit": "e", "nounset": "u", "xtrace": "x"}.get(words[0], words[0]))
            words.pop(0)
        shell.options = shell.options | letters if word[0] == "-" else shell.options - letters
    if words and words[0] == "--":
        words = words[1:]
        shell.arguments = words
    elif words:
        shell.arguments = words
    return 0


def _shift(shell: Shell, words: list[str]) -> int:
    count = int(words[0]) if words else 1
    if count > len(shell.arguments):
        shell.complain("shift: can't shift that many")
        return 2
    shell.arguments = shell.arguments[count:]
    return 0


def _read(shell: Shell, words: list[str]) -> int:
    raw = bool(words and words[0] == "-r")
    names = words[1:] if raw else words
    line, ends, rest = shell.streams.stdin.partition(b"\n")
    shell.streams.stdin = rest
    values = line.decode(errors="replace").strip(" \t").split(None, max(len(names) - 1, 0)) if names else []
    for position, name in enumerate(names):
        shell.variables[name] = values[position] if position < len(values) else ""
    return 0 if ends else 1


def _eval(shell: Shell, words: list[str]) -> int:
    return shell.evaluate(" ".join(words))


def _source(shell: Shell, words: list[str]) -> int:
    path = Process([""], {}, folder=shell.folder).path(words[0])
    try:
        content = shell.system.tree.file(path).content
    except OSError:
        shell.complain(f".: cannot open {words[0]}: No such file")
        return 2
    return shell.evaluate(content.decode())


def _exec(shell: Shell, words: list[str]) -> int:
    if not words:
        return 0
    from slipway.simulation.shell.interpreter import Exit

    raise Exit(_command(shell, words))


def _command(shell: Shell, words: list[str]) -> int:
    if words[:1] in (["-v"], ["-V"]):
        for word in words[1:]:
            if word in TABLE or word in shell.functions:
                shell.streams.out += f"{word}\n".encode()
            elif shell.system.program(word) is not None:
                shell.streams.out += f"{word if '/' in word else f'/usr/bin/{word}'}\n".encode()
            else:
                return 127
        return 0
    builtin = TABLE.get(words[0])
    if builtin is not None:
        return builtin(shell, words[1:])
    return shell.execute(words, {name: shell.variables[name] for name in shell.exported if name in shell.variables})


def _trap(shell: Shell, words: list[str]) -> int:
    if len(words) == 2 and words[1] in ("EXIT", "0"):
        shell.at_exit = "" if words[0] == "-" else words[0]
        return 0
    # Signals do not reach a simulated script.
    return 0


def _test(shell: Shell, words: list[str]) -> int:
    try:
        return 0 if _Condition(shell, words).holds() else 1
    except (IndexError, ValueError) as error:
        shell.complain(f"test: {' '.join(words)}: {error}")
        return 2


def _bracket(shell: Shell, words: list[str]) -> int:
    if not words or words[-1] != "]":
        shell.complain("[: missing ]")
        return 2
    return _test(shell, words[:-1])


class _Condition:
    """The expression of ``test``."""

    def __init__(self, shell: Shell, words: list[str]) -> None:
        self._shell, self._words = shell, list(words)

    def holds(self) -> bool:
        if not self._words:
            return False
        result = self._or()
        if self._words:
            raise ValueError(f"unexpected operator {self._words[0]}")
        return result

    def _or(self) -> bool:
        result = self._and()
        while self._words[:1] == ["-o"]:
            self._words.pop(0)
            result = self._and() or result
        return result

    def _and(self) -> bool:
        result = self._not()
        while self._words[:1] == ["-a"]:
            self._words.pop(0)
            result = self._not() and result
        return result

    def _not(self) -> bool:
        if self._words[0] == "!" and len(self._words) > 1:
            self._words.pop(0)
            return not self._not()
        return self._primary()

    def _primary(self) -> bool:
        words = self._words
        if len(words) >= 3 and words[1] in _COMPARISONS:
            left, operator, right = words.pop(0), words.pop(0), words.pop(0)
            return _COMPARISONS[operator](left, right)
        if len(words) >= 2 and re.fullmatch(r"-[a-zA-Z]", words[0]):
            operator, operand = words.pop(0), words.pop(0)
            return self._unary(operator, operand)
        return bool(words.pop(0))

    def _unary(self, operator: str, operand: str) -> bool:
        if operator in "-n-z":
            return bool(operand) is (operator == "-n")
        path = Process([""], {}, folder=self._shell.folder).path(operand)
        tree = self._shell.system.tree
        entry = tree.find(path)
        match operator:
            case "-e":
                return entry is not None
            case "-f":
                return isinstance(entry, File)
            case "-d":
                return isinstance(entry, Folder)
            case "-h" | "-L":
                return isinstance(tree.find(path, follow=False), Link)
            case "-s":
                return isinstance(entry, File) and bool(entry.content)
            case "-r" | "-w":
                return entry is not None
            case "-x":
                return isinstance(entry, Folder) or (isinstance(entry, File) and bool(entry.mode & 0o111))
            case "-S":
                return isinstance(entry, File) and entry.mode & 0o170000 == 0o140000
            case "-t":
                return False
        raise ValueError(f"{operator}: this operator is not simulated")


_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "-eq": lambda left, right: int(left) == int(right),
    "-ne": lambda left, right: int(left) != int(right),
    "-gt": lambda left, right: int(left) > int(right),
    "-ge": lambda left, right: int(left) >= int(right),
    "-lt": lambda left, right: int(left) < int(right),
    "-le": lambda left, right: int(left) <= int(right),
}

TABLE: dict[str, Callable[[Shell, list[str]], int]] = {
    ":": _true,
    "true": _true,
    "false": _false,
    "echo": _echo,
    "printf": _printf,
    "cd": _cd,
    "pwd": _pwd,
    "exit": _exit,
    "return": _return,
    "break": _break,
    "continue": _continue,
    "export": _export,
    "local": _local,
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    "read": _read,
    "eval": _eval,
    ".": _source,
    "exec": _exec,
    "command": _command,
    "trap": _trap,
    "test": _test,
    "[": _bracket,
    "umask": _true,
    "wait": _true,
}
