"""Text of values as Go's fmt makes it: ``print``, ``println``, and how a value shows with a verb and flags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slipway.api.machinery.gotemplate.floats import format_float
from slipway.api.machinery.gotemplate.quoting import byte_length, can_backquote, encoded, joined, quote
from slipway.api.machinery.gotemplate.values import Uint8, Value, type_name

if TYPE_CHECKING:
    from slipway.api.machinery.gotemplate.budget import Budget

NIL_TEXT = "<nil>"
_BASES = {"v": 10, "d": 10, "b": 2, "o": 8, "O": 8, "x": 16, "X": 16}
_LARGEST_RUNE = 0x10FFFF


@dataclass(slots=True)
class Flags:
    """What stands between the percent sign and the verb.  ``go_syntax`` is the sharp sign of ``%#v``, which is no other verb's."""

    minus: bool = False
    plus: bool = False
    sharp: bool = False
    space: bool = False
    zero: bool = False
    width: int | None = None
    precision: int | None = None
    go_syntax: bool = False


PLAIN = Flags()


class Writer:
    """Collects text, up to the longest that a function may make."""

    __slots__ = ("_length", "_pieces", "budget")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._pieces: list[str] = []
        self._length = 0

    def reserve(self, length: int) -> None:
        """Text of at least this length is about to be made and written."""
        self.budget.reserve(self._length + length)

    def write(self, text: str) -> None:
        self._length += len(text)
        self.budget.piece(len(text), self._length)
        self._pieces.append(text)

    def text(self) -> str:
        text = "".join(self._pieces)
        self.budget.keep(text)
        if text.isascii():
            return text
        self.budget.scan(len(text))
        return joined(text)


def sprint(values: list[Value], budget: Budget) -> str:
    """Spaces stand between two values of which neither is text."""
    writer = Writer(budget)
    for position, value in enumerate(values):
        if position and not isinstance(value, str) and not isinstance(values[position - 1], str):
            writer.write(" ")
        write_value(writer, value, "v", PLAIN)
    return writer.text()


def sprintln(values: list[Value], budget: Budget) -> str:
    writer = Writer(budget)
    for position, value in enumerate(values):
        if position:
            writer.write(" ")
        write_value(writer, value, "v", PLAIN)
    writer.write("\n")
    return writer.text()


def shown(value: Value, budget: Budget, verb: str = "v") -> str:
    """A value that Go shows through its reflection, as errors do."""
    writer = Writer(budget)
    write_value(writer, value, verb, PLAIN)
    return writer.text()


def write_value(writer: Writer, value: Value, verb: str, flags: Flags) -> None:
    """One argument of ``printf``."""
    if value is None and verb in ("T", "v"):
        _pad(writer, NIL_TEXT, flags)
    elif value is None:
        writer.write(f"%!{verb}({NIL_TEXT})")
    elif verb == "T":
        _text(writer, type_name(value), flags)
    elif verb == "p" or (verb == "w" and isinstance(value, (dict, list))):
        _bad_verb(writer, value, verb, flags)
    else:
        _write(writer, value, verb, flags)


def _write(writer: Writer, value: Value, verb: str, flags: Flags) -> None:
    if isinstance(value, str):
        _string(writer, value, verb, flags)
    elif isinstance(value, bool):
        _boolean(writer, value, verb, flags)
    elif isinstance(value, int):
        _integer(writer, value, verb, flags)
    elif isinstance(value, float):
        _float(writer, value, verb, flags)
    elif isinstance(value, complex):
        _complex(writer, value, verb, flags)
    elif isinstance(value, dict):
        _map(writer, value, verb, flags)
    else:
        _list(writer, value, verb, flags)


def _bad_verb(writer: Writer, value: Value, verb: str, flags: Flags) -> None:
    writer.write(f"%!{verb}({type_name(value)}=")
    _write(writer, value, "v", flags)
    writer.write(")")


def _padding(flags: Flags, length: int) -> str:
    return ("0" if flags.zero and not flags.minus else " ") * ((flags.width or 0) - length)


def _pad(writer: Writer, text: str, flags: Flags) -> None:
    padding = _padding(flags, len(text))
    writer.write(text + padding if flags.minus else padding + text)


def _pad_with_spaces(writer: Writer, text: str, flags: Flags) -> None:
    padding = " " * ((flags.width or 0) - len(text))
    writer.write(text + padding if flags.minus else padding + text)


def _text(writer: Writer, text: str, flags: Flags) -> None:
    _pad(writer, text if flags.precision is None else text[: flags.precision], flags)


def _string(writer: Writer, value: str, verb: str, flags: Flags) -> None:
    if verb == "q" or (verb == "v" and flags.go_syntax):
        text = value if flags.precision is None else value[: flags.precision]
        writer.reserve(len(text))
        writer.budget.scan(len(text))
        plain = flags.sharp and can_backquote(text)
        _pad(writer, f"`{text}`" if plain else quote(text, ascii_only=flags.plus, budget=writer.budget), flags)
    elif verb in ("v", "s"):
        _text(writer, value, flags)
    elif verb in ("x", "X"):
        _hexadecimal_text(writer, value, verb, flags)
    else:
        _bad_verb(writer, value, verb, flags)


def _boolean(writer: Writer, value: bool, verb: str, flags: Flags) -> None:
    if verb in ("t", "v"):
        _pad(writer, "true" if value else "false", flags)
    else:
        _bad_verb(writer, value, verb, flags)


def _hexadecimal_text(writer: Writer, value: str, verb: str, flags: Flags) -> None:
    # The precision counts bytes, of which each character has one or more.
    value = value if flags.precision is None else value[: flags.precision]
    prefix = "0x" if flags.sharp else ""
    per_byte = 2 + (1 + len(prefix) if flags.space else 0)
    writer.reserve(len(value) * per_byte)
    writer.reserve(byte_length(value) * per_byte)
    data = encoded(value)[: flags.precision]
    text = data.hex(" ").replace(" ", f" {prefix}") if flags.space else data.hex()
    text = prefix + text if data else ""
    _pad(writer, text.upper() if verb == "X" else text, flags)


def _integer(writer: Writer, value: int, verb: str, flags: Flags) -> None:
    if verb in _BASES:
        _number(writer, int(value), verb, flags, is_hexadecimal=verb == "v" and flags.go_syntax and isinstance(value, Uint8))
    elif verb in ("c", "q"):
        character = _rune(value)
        _pad(writer, character if verb == "c" else quote(character, mark="'", ascii_only=flags.plus), flags)
    elif verb == "U":
        # Go shows the 64 bits.
        code = value & ((1 << 64) - 1)
        text = f"U+{code:0{max(4, flags.precision or 0)}X}"
        if flags.sharp and code <= _LARGEST_RUNE and chr(code).isprintable():
            text += f" '{chr(code)}'"
        _pad_with_spaces(writer, text, flags)
    else:
        _bad_verb(writer, value, verb, flags)


def _rune(value: int) -> str:
    return chr(value) if 0 <= value <= _LARGEST_RUNE and not 0xD800 <= value <= 0xDFFF else "\ufffd"


def _number(writer: Writer, value: int, verb: str, flags: Flags, *, is_hexadecimal: bool = False) -> None:
    if flags.precision == 0 and value == 0:
        writer.write(" " * (flags.width or 0))
        return
    sign = "-" if value < 0 else "+" if flags.plus else " " if flags.space else ""
    base = 16 if is_hexadecimal else _BASES[verb]
    digits = format(abs(value), {10: "d", 2: "b", 8: "o", 16: "x"}[base])
    if flags.precision is not None:
        digits = digits.zfill(flags.precision)
    elif flags.zero and not flags.minus and flags.width is not None:
        digits = digits.zfill(flags.width - len(sign))
    digits = digits.upper() if verb == "X" else digits
    if flags.sharp or is_hexadecimal:
        prefix = {2: "0b", 16: "0X" if verb == "X" else "0x"}.get(base, "")
        digits = "0" + digits if base == 8 and digits[0] != "0" else prefix + digits
    if verb == "O":
        digits = "0o" + digits
    _pad_with_spaces(writer, sign + digits, flags)


def _float(writer: Writer, value: float, verb: str, flags: Flags, *, plus: bool = False) -> None:
    if verb not in ("v", "b", "g", "G", "x", "X", "f", "F", "e", "E"):
        _bad_verb(writer, value, verb, flags)
        return
    verb = {"v": "g", "F": "f"}.get(verb, verb)
    default = 6 if verb in "feE" else -1
    precision = default if flags.precision is None else flags.precision
    text = format_float(value, verb, precision)
    plus = plus or flags.plus
    sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("+", text)
    if sign == "+" and not plus:
        sign = " " if flags.space else ""
    if digits[0] in "IN":
        # Infinity keeps its sign always, and is not padded with zeros.
        sign = "+" if digits == "Inf" and not sign else sign
        _pad_with_spaces(writer, sign + digits, flags)
        return
    if flags.sharp and verb != "b":
        digits = _with_point(digits, verb, precision)
    if sign and flags.zero and not flags.minus:
        digits = digits.zfill((flags.width or 0) - 1)
    _pad(writer, sign + digits, flags)


def _with_point(text: str, verb: str, precision: int) -> str:
    """The sharp flag: always a decimal point, and for ``%g`` the trailing zeros too."""
    mark = re.search("[pP]" if verb in "xX" else "[eEpP]", text)
    end = len(text) if mark is None else mark.start()
    number, tail = text[:end], text[end:]
    wanted = (6 if precision == -1 else precision) if verb in ("g", "G", "x") else 0
    # Digits count from the first that is no zero; the x of 0x is one of Go's.
    stripped = number.replace(".", "").lstrip("0")
    missing = wanted - len(stripped)
    if "." not in number:
        missing -= number == "0"
        number += "."
    return number + "0" * missing + tail


def _complex(writer: Writer, value: complex, verb: str, flags: Flags) -> None:
    if verb not in ("v", "b", "g", "G", "x", "X", "f", "F", "e", "E"):
        _bad_verb(writer, value, verb, flags)
        return
    writer.write("(")
    _float(writer, value.real, verb, flags)
    _float(writer, value.imag, verb, flags, plus=True)
    writer.write("i)")


def _element(writer: Writer, value: Value, verb: str, flags: Flags) -> None:
    """A value inside a map or list."""
    if value is None:
        writer.write("interface {}(nil)" if flags.go_syntax else NIL_TEXT)
    else:
        _write(writer, value, verb, flags)


def _map(writer: Writer, value: dict[str, Value], verb: str, flags: Flags) -> None:
    writer.write(f"{type_name(value)}{{" if flags.go_syntax else "map[")
    for position, key in enumerate(sorted(value)):
        if position:
            writer.write(", " if flags.go_syntax else " ")
        _string(writer, key, verb, flags)
        writer.write(":")
        _element(writer, value[key], verb, flags)
    writer.write("}" if flags.go_syntax else "]")


def _list(writer: Writer, value: list[Value], verb: str, flags: Flags) -> None:
    writer.write(f"{type_name(value)}{{" if flags.go_syntax else "[")
    for position, item in enumerate(value):
        if position:
            writer.write(", " if flags.go_syntax else " ")
        _element(writer, item, verb, flags)
    writer.write("}" if flags.go_syntax else "]")
