"""The values of flags, read as pflag and Go's strconv read them, with their error texts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.flags import Flag

    Value = str | bool | int | list[str] | list[tuple[str, str]]
else:
    Value = object

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_BITS = {"int": 64, "int32": 32, "Level": 32}


class InvalidValueError(Exception):
    """Why a text is not a value of the flag's type."""


def value_without_argument(flag: Flag) -> str:
    """What ``--flag`` without a value means; empty where a value must follow."""
    return "true" if flag.kind == "bool" else ""


def default_value(flag: Flag) -> Value:
    """The value of a flag that is not on the command line."""
    if flag.kind in ("bool", "duration", *_BITS):
        return parse_value(flag, flag.default or ("false" if flag.kind == "bool" else "0"))
    if flag.kind == "pairs":
        return []
    if flag.kind == "strings":
        return flag.default.strip("[]").split(",") if flag.default else []
    return flag.default


def parse_value(flag: Flag, text: str) -> Value:
    """The value that ``text`` gives to a flag."""
    kind = flag.kind
    if kind == "bool":
        return _boolean(text)
    if kind in _BITS:
        return _integer(text, _BITS[kind], base=10 if kind == "Level" else 0)
    if kind == "strings":
        return _comma_separated(text)
    if kind == "pairs":
        return _pairs(text)
    if kind == "duration":
        from slipway.api.machinery.duration import Duration

        try:
            return Duration.parse(text)
        except ValueError as error:
            raise InvalidValueError(str(error)) from None
    if kind == "moduleSpec":
        return _modules(text)
    return text


def quote(text: str) -> str:
    """Go's ``%q``."""
    escapes = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    return '"' + "".join(escapes.get(char) or _escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _boolean(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise InvalidValueError(f"strconv.ParseBool: parsing {quote(text)}: invalid syntax")


def _integer(text: str, bits: int, base: int) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    try:
        if not digits.isascii() or digits != digits.strip() or digits[:1] in ("+", "-", "_", ""):
            raise ValueError
        # Go reads a leading zero as octal; Python wants 0o.
        octal = base == 0 and len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567_"
        number = int(digits, 8) if octal else int(digits, base)
        if base and "_" in digits:
            raise ValueError
    except ValueError:
        raise InvalidValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax") from None
    number = -number if text[0] == "-" else number
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise InvalidValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def _comma_separated(text: str) -> list[str]:
    """The first record of Go's encoding/csv: quotes around a field, doubled inside it."""
    if not text:
        return []
    fields: list[str] = []
    line = text.lstrip("\n").split("\n", 1)[0] if '"' not in text else text
    if not line:
        raise InvalidValueError("EOF")
    position = 0
    while True:
        if line[position : position + 1] == '"':
            field, position = _quoted(line, position + 1)
        else:
            end = line.find(",", position)
            end = len(line) if end < 0 else end
            field = line[position:end]
            bare = field.find('"')
            if bare >= 0:
                raise InvalidValueError(f'parse error on line 1, column {position + bare + 1}: bare " in non-quoted-field')
            position = end
        fields.append(field)
        if position >= len(line):
            return fields
        position += 1


def _quoted(line: str, position: int) -> tuple[str, int]:
    field = ""
    while True:
        end = line.find('"', position)
        if end < 0:
            raise InvalidValueError(f'parse error on line 1, column {len(line) + 1}: extraneous or missing " in quoted-field')
        field += line[position:end]
        following = line[end + 1 : end + 2]
        if following == '"':
            field += '"'
            position = end + 2
        elif following in ("", ","):
            return field, end + 1
        else:
            raise InvalidValueError(f'parse error on line 1, column {end + 1}: extraneous or missing " in quoted-field')


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if not equals or "=" in value:
            raise InvalidValueError(f"malformed key=value pair in flag value: {text}")
        pairs.append((name, value))
    return pairs


def _modules(text: str) -> str:
    """klog's --vmodule: checked, since a typo should be told, and then not used."""
    for pattern in text.split(","):
        name, equals, level = pattern.partition("=")
        if pattern and (not equals or not name or not level):
            raise InvalidValueError("syntax error: expect comma-separated list of filename=N")
        if pattern:
            try:
                _integer(level, 32, base=10)
            except InvalidValueError:
                raise InvalidValueError("syntax error: expect comma-separated list of filename=N") from None
    return text
