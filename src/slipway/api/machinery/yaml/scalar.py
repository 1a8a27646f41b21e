"""What a scalar of Kubernetes' YAML means, and how Go writes a number: rules that reading and writing share.

The dialect is that of goyaml v2, which sigs.k8s.io/yaml stands on: YAML 1.1 booleans and octals, YAML 1.2 octals, no base-60
numbers, and timestamps that stay strings but are quoted on the way out.
"""

from __future__ import annotations

import re

_PREFIX = "tag:yaml.org,2002:"
STR, BOOL, INT, FLOAT, NULL, TIMESTAMP, BINARY, MERGE = (
    _PREFIX + name for name in ("str", "bool", "int", "float", "null", "timestamp", "binary", "merge")
)

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {}
for _words, _value in (
    ("y Y yes Yes YES true True TRUE on On ON", True),
    ("n N no No NO false False FALSE off Off OFF", False),
    ("~ null Null NULL", None),
    (".nan .NaN .NAN", float("nan")),
    (".inf .Inf .INF +.inf +.Inf +.INF", float("inf")),
    ("-.inf -.Inf -.INF", float("-inf")),
):
    for _word in _words.split():
        _WORDS[_word] = _value
_WORDS[""] = None

_NUMERIC = "0123456789abcdefABCDEFxXoO_.+-"
_FIRST = frozenset("+-0123456789yYnNtTfFoO~.")
# Patterns are compiled when they are first needed: most commands never see a timestamp.
_INTEGER = r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z"
_REAL = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"
# Here alone goyaml leaves the underscores to ParseFloat, which wants digits on both sides.
_FRACTION = r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?\Z"
_BASE_60 = r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z"
_TIME_OF_DAY = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?"
_DATE = (
    rf"([0-9]{{4}})-([0-9]{{1,2}})-([0-9]{{1,2}})"
    rf"(?:[Tt]{_TIME_OF_DAY}(?:Z|[-+]([0-9]{{2}}):([0-9]{{2}}))| +{_TIME_OF_DAY})?\Z"
)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class TagError(ValueError):
    """A scalar that its explicit tag does not allow."""


def resolve(text: str) -> Scalar:
    """The value of a plain scalar without a tag.  Timestamps are strings."""
    if text and text[0] not in _FIRST:
        return text
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "+-0123456789":
        return text if is_timestamp(text) else _number(text)
    if first == "." and re.match(_FRACTION, text):
        return _finite(text, text)
    return text


def resolve_tagged(tag: str, text: str) -> Scalar:
    """The value of a scalar with an explicit tag; a tag that is not one of YAML's own is ignored."""
    if tag == BINARY:
        return _binary(text)
    if tag not in (BOOL, INT, FLOAT, NULL, TIMESTAMP):
        return text
    value = resolve(text)
    found = TIMESTAMP if tag == TIMESTAMP and is_timestamp(text) else tag_of(value)
    if tag == FLOAT and found == INT and -(2**63) <= int(value or 0) < 2**63:
        return float(value or 0)
    if found != tag:
        raise TagError(f"cannot decode !!{found[len(_PREFIX) :]} `{text}` as a !!{tag[len(_PREFIX) :]}")
    return value


def tag_of(value: Scalar) -> str:
    if isinstance(value, str):
        return STR
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOL
    return INT if isinstance(value, int) else FLOAT


def needs_quotes(text: str) -> bool:
    """Whether a string written plain would be read as something else, here or by a YAML 1.1 reader."""
    if text and text[0] not in _FIRST:
        return False
    return not isinstance(resolve(text), str) or is_timestamp(text) or (":" in text and re.match(_BASE_60, text) is not None)


def is_timestamp(text: str) -> bool:
    """Whether Go's YAML takes the text for a point in time (``2006-1-2``, ``2006-1-2T15:4:5Z``, ``2006-1-2 15:4:5``)."""
    match = re.match(_DATE, text) if text[4:5] == "-" else None
    if match is None:
        return False
    year, month, day, hour, minute, second, zone_hour, zone_minute, hour2, minute2, second2 = (int(part or 0) for part in match.groups())
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS[month - 1]:
        return False
    if month == 2 and day == 29 and not (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)):
        return False
    return hour | hour2 < 24 and minute | minute2 < 60 and second | second2 < 60 and zone_hour <= 24 and zone_minute <= 60


def format_float(value: float, *, single: bool = False) -> str:
    """``strconv.FormatFloat(value, 'g', -1, 64)``, or with the precision of a float32, in YAML's spelling of infinities."""
    if single:
        value = _as_float32(value)
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    precision = next(n for n in range(17) if _same(float(f"{value:.{n}e}"), value, single=single))
    mantissa, _, exponent_text = f"{value:.{precision}e}".partition("e")
    exponent = int(exponent_text)
    if exponent < -4 or exponent >= 6:
        return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return f"{float(mantissa + 'e' + exponent_text):.{max(precision - exponent, 0)}f}"


def json_number(value: float) -> int | float:
    """What is left of a float after a passage through JSON, where 1.0 and 1e3 are integers, written with the fewest digits."""
    if not value.is_integer():
        return value
    digits, _, exponent = repr(value).partition("e")
    number = int(value) if not exponent else int(digits.replace(".", "")) * 10 ** (int(exponent) - len(digits.partition(".")[2]))
    return number if -(2**63) <= number < 2**64 else value


def _number(text: str) -> Scalar:
    # Most texts that start with a digit are addresses or versions.
    if text.strip(_NUMERIC):
        return text
    plain = text.replace("_", "")
    match = re.match(_INTEGER, plain)
    # A decimal of more than 20 digits fits no integer type, and int() refuses very long ones.
    if match and len(match[5] or "") <= 20:
        sign, hexadecimal, binary, octal, decimal = match.groups()
        if hexadecimal:
            value = int(hexadecimal, 16)
        elif binary:
            value = int(binary, 2)
        else:
            value = int(octal, 8) if octal else int(decimal)
        if sign == "-":
            value = -value
        if -(2**63) <= value < 2**63 or (not sign and value < 2**64):
            return value
    return _finite(plain, text) if re.match(_REAL, plain) else text


def _finite(number: str, text: str) -> float | str:
    # Go's ParseFloat fails on what is too large for a float64, and the scalar stays a string.
    value = float(number)
    return text if value in (float("inf"), float("-inf")) else value


def _binary(text: str) -> str:
    import base64
    import binascii

    try:
        return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True).decode("utf-8", "replace")
    except binascii.Error:
        raise TagError("!!binary value contains invalid base64 data") from None


def _as_float32(value: float) -> float:
    import struct

    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _same(candidate: float, value: float, *, single: bool) -> bool:
    return (_as_float32(candidate) if single else candidate) == value
