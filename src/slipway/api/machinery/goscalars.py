"""The leaves of Go's API types: what JSON they accept, and what they print.

A normalised value is what a decoded Go value would print; an absent one (None) is Go's zero value.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from slipway.api.machinery.duration import Duration

Place = tuple[str | int, ...]


class BadValueError(Exception):
    """A value that Go could not decode into the type; the text says why."""


class GoType(Protocol):
    """A Go type, as far as JSON goes."""

    name: str
    """The word for the type in messages and tables."""
    kind: str
    """What Go's reflection calls it: ``struct``, ``map``, ``slice``, ``ptr``, ``string`` …"""

    def decode(self, value: Any, place: Place, findings: list[Finding]) -> Any:
        """The normalised form of a value that is not null; BadValueError or a finding where it does not fit."""

    def null(self) -> Any:
        """What Go makes of an explicit null: the zero value, or BadValueError where the type has a decoder that refuses it."""

    def encode(self, value: Any) -> Any:
        """What Go prints for a normalised value; None stands for the zero value."""

    def is_empty(self, value: Any) -> bool:
        """Whether ``omitempty`` leaves the value out."""

    def is_zero(self, value: Any) -> bool:
        """Whether ``omitzero`` leaves the value out."""


class Finding:
    """One thing that is wrong with a document: an unknown field, or a value of the wrong type."""

    __slots__ = ("kind", "message", "place")

    def __init__(self, kind: str, place: Place, message: str) -> None:
        self.kind, self.place, self.message = kind, place, message

    def __repr__(self) -> str:
        return f"Finding({self.kind!r}, {self.place!r}, {self.message!r})"


def json_word(value: object) -> str:
    """What Go's decoder calls a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def mismatch(value: object, name: str) -> BadValueError:
    return BadValueError(f"cannot unmarshal {json_word(value)} into a value of type {name}")


class Scalar:
    """The common part of the leaves: a plain Go scalar, which omitempty leaves out when it is zero."""

    def __init__(self, name: str, zero: Any, *, kind: str = "", is_struct: bool = False) -> None:
        self.name, self._zero, self._is_struct = name, zero, is_struct
        self.kind = "struct" if is_struct else kind or name

    def decode(self, value: Any, place: Place, findings: list[Finding]) -> Any:
        return self.read(value)

    def read(self, value: Any) -> Any:
        raise NotImplementedError

    def null(self) -> Any:
        return self._zero

    def encode(self, value: Any) -> Any:
        return self._zero if value is None else value

    def is_empty(self, value: Any) -> bool:
        # Go never takes a struct for empty, so a zero Duration or Quantity is printed in spite of omitempty.
        return not self._is_struct and (value is None or value == self._zero)

    def is_zero(self, value: Any) -> bool:
        return value is None or value == self._zero


class Boolean(Scalar):
    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise mismatch(value, self.name)
        return value


class String(Scalar):
    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise mismatch(value, self.name)
        return value


class Integer(Scalar):
    def __init__(self, name: str, bits: int, *, signed: bool = True) -> None:
        super().__init__(name, 0)
        self._lowest = -(1 << (bits - 1)) if signed else 0
        self._highest = (1 << (bits - 1 if signed else bits)) - 1

    def read(self, value: Any) -> int:
        # JSON has one kind of number, and Go writes a float without fraction as an integer.
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise mismatch(value, self.name)
        if not self._lowest <= value <= self._highest:
            raise BadValueError(f"cannot unmarshal number {value} into a value of type {self.name}: it does not fit")
        return value


class Float(Scalar):
    def __init__(self, name: str, *, single: bool) -> None:
        super().__init__(name, 0)
        self._single = single

    def read(self, value: Any) -> int | float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise mismatch(value, self.name)
        number = _single_precision(value) if self._single else float(value)
        return int(number) if number.is_integer() and abs(number) < 1e21 else number


def _single_precision(value: float) -> float:
    """The shortest decimal that is the same float32, which is what Go prints."""
    import struct

    packed = struct.pack("f", value)
    for digits in range(1, 10):
        shortest = float(f"{value:.{digits}g}")
        if struct.pack("f", shortest) == packed:
            return shortest
    return float(value)


class DurationString(Scalar):
    """metav1.Duration: a string such as ``1h30m0s``."""

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise mismatch(value, "string")
        try:
            return str(Duration.parse(value))
        except ValueError as error:
            raise BadValueError(str(error)) from None

    def null(self) -> Any:
        # metav1.Duration takes null for an empty string.
        return self.read("")


class DurationOrNanoseconds(DurationString):
    """The logging configuration's flushFrequency: a string, or a number of nanoseconds; each is written as it was read."""

    def read(self, value: Any) -> Any:
        return super().read(value) if isinstance(value, str) else _INT64.read(value)

    def null(self) -> Any:
        return 0


class QuantityText(Scalar):
    """resource.Quantity: a string or number, printed in its canonical form."""

    def read(self, value: Any) -> str:
        from slipway.api.machinery.quantity import canonical

        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise mismatch(value, f"{self.name}, such as 100m or 2Gi")
        try:
            return canonical(value if isinstance(value, str) else _json_number(value))
        except ValueError as error:
            raise BadValueError(str(error)) from None


def _json_number(value: int | float) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


class IntOrString(Scalar):
    def read(self, value: Any) -> int | str:
        return value if isinstance(value, str) else _INT32.read(value)


_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)([.,]\d+)?(Z|[+-]\d\d:\d\d)\Z")
_ZERO_TIME = "0001-01-01T00:00:00Z"


class Time(Scalar):
    """metav1.Time and MicroTime: RFC 3339 in UTC; the zero time is printed as null."""

    def __init__(self, name: str, *, micro: bool = False) -> None:
        super().__init__(name, None, is_struct=True)
        self._micro = micro

    def read(self, value: Any) -> str:
        from datetime import UTC, datetime

        if not isinstance(value, str):
            raise mismatch(value, "string")
        match = _RFC3339.match(value)
        if match is None or (self._micro and len(match[3] or "") != 7):
            raise BadValueError(f'parsing time "{value}": a time such as 2006-01-02T15:04:05{".000000" if self._micro else ""}Z is needed')
        try:
            moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{(match[4]).replace('Z', '+00:00')}").astimezone(UTC)
        except (ValueError, OverflowError):
            raise BadValueError(f'parsing time "{value}": there is no such time') from None
        text = moment.replace(tzinfo=None).isoformat(timespec="seconds")
        return f"{text}{match[3] if self._micro else ''}Z"

    def encode(self, value: Any) -> Any:
        return None if self.is_zero(value) else value

    def is_zero(self, value: Any) -> bool:
        return value is None or value == _ZERO_TIME


class Bytes(Scalar):
    """[]byte: base64 text; a slice, so a nil one is null and an empty one is left out by omitempty."""

    def read(self, value: Any) -> str:
        import base64
        import binascii

        if not isinstance(value, str):
            raise mismatch(value, self.name)
        try:
            return base64.b64encode(base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)).decode()
        except binascii.Error as error:
            raise BadValueError(f"illegal base64 data: {error}") from None

    def is_empty(self, value: Any) -> bool:
        return not value


class Raw(Scalar):
    """Any JSON, kept as it is."""

    def read(self, value: Any) -> Any:
        return value


_INT32 = Integer("int32", 32)
_INT64 = Integer("int64", 64)

SCALARS: dict[str, GoType] = {
    "bool": Boolean("bool", False),
    "string": String("string", ""),
    "int": Integer("int", 64),
    "int32": _INT32,
    "int64": _INT64,
    "uint8": Integer("uint8", 8, signed=False),
    "uint32": Integer("uint32", 32, signed=False),
    "uint64": Integer("uint64", 64, signed=False),
    "float32": Float("float32", single=True),
    "float64": Float("float64", single=False),
    "duration": DurationString("duration", "0s", is_struct=True),
    "duration-or-nanoseconds": DurationOrNanoseconds("duration", 0, is_struct=True),
    "quantity": QuantityText("quantity", "0", is_struct=True),
    "intorstring": IntOrString("int32 or string", 0, is_struct=True),
    "time": Time("time"),
    "microtime": Time("time", micro=True),
    "bytes": Bytes("base64 string", None, kind="slice"),
    "raw": Raw("any", None, is_struct=True),
}
"""The leaves by the words that the tables use."""
