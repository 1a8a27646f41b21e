"""Times as the plan Secret has them: Go's ``time.UnixDate``, such as ``Mon Nov  2 15:04:05 UTC 2026``."""

from __future__ import annotations

from datetime import UTC, datetime

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def text(moment: datetime) -> str:
    moment = moment.astimezone(UTC)
    return f"{_DAYS[moment.weekday()]} {_MONTHS[moment.month - 1]} {moment.day:2d} {moment:%H:%M:%S} UTC {moment.year}"


def parse(written: str) -> datetime | None:
    """The moment; None where that is no such time.  A zone other than UTC is known by its letters only, so it is taken for UTC."""
    words = written.split()
    if len(words) != 6 or words[1] not in _MONTHS:
        return None
    try:
        hour, minute, second = map(int, words[3].split(":"))
        return datetime(int(words[5]), _MONTHS.index(words[1]) + 1, int(words[2]), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
