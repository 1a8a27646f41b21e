"""Objects of built-in kinds that clients send in protobuf, as typed Go clients and so ``kubectl create`` do.

Answers are JSON always, which those clients accept as well.  ``protobuf.json`` is made by tests/oracles/protobuf_record.py from
the Go declarations: field numbers, JSON names, and which fields are pointers, since only there a zero is a value.
"""

from __future__ import annotations

import base64
import functools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest


MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_TABLE = Path(__file__).with_name("protobuf.json")
_META = ("DeleteOptions", "Status", "WatchEvent")


class ProtobufError(ValueError):
    """Bytes that cannot be read; the text says why."""


def decode(body: bytes) -> Manifest:
    """The object in a body, which is wrapped with its apiVersion and kind."""
    try:
        return _unwrapped(body)
    except UnicodeDecodeError:
        raise ProtobufError("proto: string field contains invalid UTF-8") from None
    except RecursionError:
        raise ProtobufError("proto: exceeded max recursion depth") from None


def _unwrapped(body: bytes) -> Manifest:
    if not body.startswith(_MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version = kind = ""
    raw = b""
    for number, value in _fields(body[len(_MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            named = {inner: text.decode() for inner, text in _fields(value) if isinstance(text, bytes)}
            api_version, kind = named.get(1, ""), named.get(2, "")
        elif number == 2 and isinstance(value, bytes):
            raw = value
    message = _message_of(api_version, kind)
    if message not in _table():
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **_message(raw, message)}


def _message_of(api_version: str, kind: str) -> str:
    if kind in _META:
        return f"meta/v1.{kind}"
    group, _, version = api_version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}/{version}.{kind}"


@functools.cache
def _table() -> dict[str, dict[int, tuple[str, str]]]:
    written: dict[str, dict[str, str]] = msgspec.json.decode(_TABLE.read_bytes())
    return {
        name: {int(number): (field.partition(" ")[0], field.partition(" ")[2]) for number, field in fields.items()}
        for name, fields in written.items()
    }


def _message(data: bytes, name: str) -> Manifest:
    known = _table()[name]
    found: Manifest = {}
    for number, value in _fields(data):
        if number not in known:
            continue
        field, type_ = known[number]
        if type_.startswith("[]"):
            # Numbers may come packed into one.
            items = _unpacked(value) if type_[2:] in ("int32", "int64") and isinstance(value, bytes) else [value]
            found.setdefault(field, []).extend(_value(item, type_[2:]) for item in items)
        elif type_.startswith("map "):
            key, item = _entry(value)
            found.setdefault(field, {})[key] = _value(item, type_[4:])
        elif not field:
            found |= _message(_bytes(value), type_)
        else:
            decoded = _value(value, type_.removeprefix("*"))
            # Go writes zeros that its JSON leaves out, unless a pointer says that they are meant.
            if type_.startswith("*") or decoded not in ("", 0, False, None):
                found[field] = decoded
    return found


def _value(value: int | bytes, type_: str) -> Any:
    if type_ == "bool":
        return bool(value)
    if type_ in ("int32", "int64"):
        return _signed(value)
    if type_ == "float64":
        return msgspec.json.decode(msgspec.json.encode(_double(_bytes(value))))
    data = _bytes(value)
    if type_ == "string":
        return data.decode()
    if type_ == "bytes":
        return base64.b64encode(data).decode()
    if type_ in _WRAPPED:
        return _WRAPPED[type_](dict(_fields(data)))
    if type_.startswith("items "):
        return [_value(item, type_[6:]) for number, item in _fields(data) if number == 1]
    return _message(data, type_)


def _time(fields: dict[int, int | bytes], *, micro: bool = False) -> str | None:
    if not fields:
        return None
    moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=_signed(fields.get(1, 0)), microseconds=_signed(fields.get(2, 0)) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _int_or_string(fields: dict[int, int | bytes]) -> int | str:
    return _bytes(fields.get(3, b"")).decode() if fields.get(1) else _signed(fields.get(2, 0))


def _raw(fields: dict[int, int | bytes]) -> Any:
    text = _bytes(fields.get(1, b""))
    return msgspec.json.decode(text) if text else None


_WRAPPED: dict[str, Callable[[dict[int, int | bytes]], Any]] = {
    "Time": _time,
    "MicroTime": functools.partial(_time, micro=True),
    "Duration": lambda fields: str(Duration(_signed(fields.get(1, 0)))),
    "Quantity": lambda fields: _bytes(fields.get(1, b"")).decode(),
    "IntOrString": _int_or_string,
    "Raw": _raw,
}


def _entry(value: int | bytes) -> tuple[str, int | bytes]:
    fields = dict(_fields(_bytes(value)))
    return _bytes(fields.get(1, b"")).decode(), fields.get(2, b"")


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a message: number and varint, or number and bytes."""
    found: list[tuple[int, int | bytes]] = []
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            found.append((number, value))
            continue
        size = 8 if wire == 1 else 4 if wire == 5 else -1
        if wire == 2:
            size, position = _varint(data, position)
        if size < 0 or position + size > len(data):
            raise ProtobufError("unexpected EOF" if size >= 0 else f"proto: illegal wireType {wire}")
        found.append((number, data[position : position + size]))
        position += size
    return found


def _unpacked(data: bytes) -> list[int | bytes]:
    numbers: list[int | bytes] = []
    position = 0
    while position < len(data):
        number, position = _varint(data, position)
        numbers.append(number)
    return numbers


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ProtobufError("unexpected EOF" if shift <= 63 else "proto: integer overflow")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _signed(value: int | bytes) -> int:
    """Negative numbers are written in 64 bits."""
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType for a number")
    return value - (1 << 64) if value >> 63 else value


def _double(data: bytes) -> float:
    import struct

    number: float = struct.unpack("<d", data)[0]
    return number


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType for a message")
    return value
