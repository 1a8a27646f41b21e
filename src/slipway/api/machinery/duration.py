"""Durations as Go writes and reads them: ``24h0m0s``, ``1.5h``, ``300ms``."""

from __future__ import annotations

import re

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,  # U+03BC, Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_LIMIT = 1 << 63
_TERM = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^.0-9]*)")
_UNQUOTABLE = re.compile(r"[\"\\]|[^\x20-\x7f]")

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


class Duration(int):
    """A span of time in nanoseconds, as Go's ``time.Duration``; ``str()`` gives Go's text."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Read Go's notation; ValueError has the text that Go's ``time.ParseDuration`` gives."""
        negative, position = text[:1] == "-", 1 if text[:1] in ("-", "+") else 0
        if text[position:] == "0":
            return cls(0)
        total = 0
        while True:
            match = _TERM.match(text, position)
            # More than 20 digits are too many for 64 bits, and for int() at some point.
            if match is None or not (match["whole"] or match["fraction"]) or len(match["whole"].lstrip("0")) > 20:
                raise _invalid(text)
            whole = int(match["whole"].lstrip("0") or "0")
            if whole > _LIMIT:
                raise _invalid(text)
            if not match["unit"]:
                raise ValueError(f"time: missing unit in duration {_quoted(text)}")
            unit = _UNITS.get(match["unit"])
            if unit is None:
                raise ValueError(f"time: unknown unit {_quoted(match['unit'])} in duration {_quoted(text)}")
            total += whole * unit + _part_of(match["fraction"] or "", unit)
            if total > _LIMIT:
                raise _invalid(text)
            position = match.end()
            if position == len(text):
                break
        if total == _LIMIT and not negative:
            raise _invalid(text)
        return cls(-total if negative else total)

    @classmethod
    def of(cls, *, hours: int = 0, minutes: int = 0, seconds: int = 0) -> Duration:
        return cls(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000)

    @property
    def seconds(self) -> float:
        return int(self) / 1_000_000_000

    def __str__(self) -> str:
        if self == 0:
            return "0s"
        sign, value = ("-", -int(self)) if self < 0 else ("", int(self))
        if value < 1_000_000_000:
            for unit, size in (("ns", 1_000), ("µs", 1_000_000), ("ms", 1_000_000_000)):
                if value < size:
                    return f"{sign}{_decimal(value, size // 1_000)}{unit}"
        minutes, nanoseconds = divmod(value, _UNITS["m"])
        text = f"{_decimal(nanoseconds, 1_000_000_000)}s"
        if minutes:
            hours, minutes = divmod(minutes, 60)
            text = f"{minutes}m{text}"
            if hours:
                text = f"{hours}h{text}"
        return sign + text

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).rjust(len(str(unit)) - 1, '0').rstrip('0')}"


def _part_of(fraction: str, unit: int) -> int:
    """A decimal fraction of a unit, with the digits and the rounding of Go: more than 18 digits may be cut."""
    value, scale = 0, 1.0
    for digit in fraction:
        if value > (_LIMIT - 1) // 10 or value * 10 + int(digit) > _LIMIT:
            break
        value = value * 10 + int(digit)
        scale *= 10
    return int(float(value) * (float(unit) / scale))


def _invalid(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {_quoted(text)}")


def _quoted(text: str) -> str:
    """Go's quotes around a duration: what is not printable ASCII is escaped byte by byte."""
    return f'"{_UNQUOTABLE.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    return f"\\{character}" if character in '"\\' else "".join(f"\\x{byte:02x}" for byte in character.encode())


def human_duration(seconds: int) -> str:
    """A span with two or three significant figures, as kubectl shows ages: ``364d``, ``7h30m``, ``5m10s``."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s", 60)
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m", 60)
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h", 24)
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d", 365)
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str, ratio: int) -> str:
    rest = seconds // small % ratio
    return f"{seconds // large}{large_name}" + (f"{rest}{small_name}" if rest else "")
