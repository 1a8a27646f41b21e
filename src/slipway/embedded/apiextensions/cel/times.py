"""Moments and durations, read and printed as Go does."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from slipway.api.machinery import duration as go_duration
from slipway.embedded.apiextensions.cel.values import Duration, EvaluationError, Timestamp

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d))?")
_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST, _MOST = -62135596800, 253402300799


def timestamp(text: str) -> Timestamp:
    """A moment from RFC 3339, or the beginning of a day."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(f"parsing time {text!r}")
    day, time, fraction, zone = found.groups()
    zone = "+00:00" if zone is None or zone in "Zz" else zone
    moment = datetime.fromisoformat(f"{day}T{time or '00:00:00'}{zone}")
    nanoseconds = int((fraction or "0")[:9].ljust(9, "0"))
    return bounded((moment - _EPOCH) // timedelta(seconds=1) * _SECOND + nanoseconds)


def bounded(nanoseconds: int) -> Timestamp:
    if not _LEAST <= nanoseconds // _SECOND <= _MOST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds)


def span(nanoseconds: int) -> Duration:
    if not -(2**63) <= nanoseconds < 2**63:
        raise EvaluationError("duration overflow")
    return Duration(nanoseconds)


def duration(text: str) -> Duration:
    return Duration(int(go_duration.Duration.parse(text)))


def moment_text(moment: Timestamp) -> str:
    whole, fraction = divmod(moment.nanoseconds, _SECOND)
    text = (_EPOCH + timedelta(seconds=whole)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{text}.{fraction:09d}".rstrip("0").rstrip(".") + "Z" if fraction else f"{text}Z"


def duration_text(value: Duration) -> str:
    text = f"{abs(value.nanoseconds) // _SECOND}.{abs(value.nanoseconds) % _SECOND:09d}".rstrip("0").rstrip(".")
    return f"{'-' if value.nanoseconds < 0 else ''}{text}s"


def calendar(moment: Timestamp, zone: str = "") -> datetime:
    """The date and time of a moment, in UTC or in the zone that is named."""
    whole, fraction = divmod(moment.nanoseconds, _SECOND)
    in_utc = _EPOCH + timedelta(seconds=whole, microseconds=fraction // 1000)
    if not zone or zone == "UTC":
        return in_utc
    if found := re.fullmatch(r"([+-]?)(\d\d):(\d\d)", zone):
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return in_utc - offset if found[1] == "-" else in_utc + offset
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return in_utc.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError):
        raise EvaluationError(f"unknown time zone {zone}") from None
