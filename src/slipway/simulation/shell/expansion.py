"""What becomes of the words of a command: parameters, substitutions, fields and names of files."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from typing import TYPE_CHECKING

from slipway.simulation.shell.nodes import Arithmetic, Literal, Parameter, Substitution

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.simulation.shell.interpreter import Shell
    from slipway.simulation.shell.nodes import Part, Word

_SPACES = " \t\n"
_GLOB = re.compile(r"[*?\[]")
# A quoted sign of a pattern stands for itself.
_QUOTE = {"*": "[*]", "?": "[?]", "[": "[[]"}


class ExpansionError(Exception):
    """A parameter that must be set and is not: it ends the script."""


class _Fields:
    """Fields as they grow: text, and the same as a pattern."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self._text, self._pattern, self._begun = "", "", False

    def add(self, text: str, *, quoted: bool) -> None:
        self._begun = True
        self._text += text
        self._pattern += "".join(_QUOTE.get(sign, sign) for sign in text) if quoted else text

    def end(self) -> None:
        if self._begun:
            self.done.append((self._text, self._pattern))
        self._text, self._pattern, self._begun = "", "", False

    def split(self, text: str) -> None:
        """Add what came unquoted out of an expansion: spaces part fields."""
        for piece in re.findall(r"[ \t\n]+|[^ \t\n]+", text):
            if piece[0] in _SPACES:
                self.end()
            else:
                self.add(piece, quoted=False)


def fields(shell: Shell, words: Iterable[Word]) -> list[str]:
    """The arguments that words become."""
    found: list[str] = []
    for word in words:
        growing = _Fields()
        for part in word:
            _expand(shell, part, growing)
        growing.end()
        for text, pattern in growing.done:
            found += (
                _paths(shell, pattern) or [text]
                if _GLOB.search(pattern.replace("[*]", "").replace("[?]", "").replace("[[]", ""))
                else [text]
            )
    return found


def text(shell: Shell, word: Word) -> str:
    """A word where there are no fields: an assignment, a case, a redirection."""
    return "".join(_text_of(shell, part) for part in word)


def pattern(shell: Shell, word: Word) -> str:
    return "".join(
        "".join(_QUOTE.get(sign, sign) for sign in _text_of(shell, part)) if part.quoted else _text_of(shell, part) for part in word
    )


def _expand(shell: Shell, part: Part, growing: _Fields) -> None:
    if isinstance(part, Literal):
        value = _home(shell, part.text) if not part.quoted else part.text
        growing.add(value, quoted=part.quoted)
    elif isinstance(part, Parameter) and part.name == "@" and part.quoted and not part.operator:
        for position, value in enumerate(shell.arguments):
            if position:
                growing.end()
            growing.add(value, quoted=True)
    elif part.quoted:
        growing.add(_text_of(shell, part), quoted=True)
    else:
        growing.split(_text_of(shell, part))


def _text_of(shell: Shell, part: Part) -> str:
    if isinstance(part, Literal):
        return part.text
    if isinstance(part, Substitution):
        return shell.substituted(part.body)
    if isinstance(part, Arithmetic):
        return str(_arithmetic(shell, part.expression))
    assert isinstance(part, Parameter)
    return _parameter(shell, part)


def _parameter(shell: Shell, part: Parameter) -> str:
    value = shell.value(part.name)
    operator = part.operator
    if operator.removeprefix(":") in ("-", "=", "?", "+") and operator:
        missing = value is None or (operator.startswith(":") and not value)
        match operator[-1]:
            case "-":
                return text(shell, part.word) if missing else value or ""
            case "+":
                return "" if missing else text(shell, part.word)
            case "=":
                if missing:
                    value = shell.variables[part.name] = text(shell, part.word)
                return value or ""
            case _:
                if missing:
                    raise ExpansionError(f"{part.name}: {text(shell, part.word) or 'parameter not set'}")
                return value or ""
    if value is None:
        if "u" in shell.options and part.name not in ("@", "*"):
            raise ExpansionError(f"{part.name}: parameter not set")
        value = ""
    if operator == "length":
        return str(len(value))
    if operator:
        return _trimmed(value, operator, pattern(shell, part.word))
    return value


def _trimmed(value: str, operator: str, wanted: str) -> str:
    """``#`` takes the shortest match off the front and ``##`` the longest, ``%`` and ``%%`` off the end."""
    cuts = range(len(value) + 1)
    if operator.startswith("#"):
        for cut in cuts if operator == "#" else reversed(cuts):
            if fnmatch.fnmatchcase(value[:cut], wanted):
                return value[cut:]
        return value
    for cut in reversed(cuts) if operator == "%" else cuts:
        if fnmatch.fnmatchcase(value[cut:], wanted):
            return value[:cut]
    return value


def _arithmetic(shell: Shell, expression: str) -> int:
    """Sums of whole numbers and variables; what else there may be is refused."""
    named = re.sub(r"\$?\{?([A-Za-z_][A-Za-z0-9_]*)\}?", lambda match: shell.value(match[1]) or "0", expression)
    if not re.fullmatch(r"[\d\s+*()/%<>=!-]*", named) or "**" in named:
        raise ExpansionError(f"this arithmetic is not simulated: {expression}")
    try:
        result = eval(re.sub(r"(?<!/)/(?!/)", "//", named), {"__builtins__": {}})
    except (SyntaxError, ZeroDivisionError, TypeError) as error:
        raise ExpansionError(f"arithmetic: {expression}: {error}") from None
    return int(result)


def _home(shell: Shell, value: str) -> str:
    return value.replace("~", shell.value("HOME") or "/root", 1) if value == "~" or value.startswith("~/") else value


def _paths(shell: Shell, wanted: str) -> list[str]:
    absolute = wanted if wanted.startswith("/") else posixpath.join(shell.folder, wanted)
    found = shell.system.tree.glob(absolute)
    if wanted.startswith("/"):
        return found
    base = shell.folder.rstrip("/") + "/"
    return [path.removeprefix(base) for path in found]
