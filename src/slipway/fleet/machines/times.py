"""Times of the API: RFC 3339 texts, as moments that can be compared."""

from __future__ import annotations

from datetime import UTC, datetime

from slipway.api.machinery.errors import OperatorError


def moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise OperatorError(f'"{text}" is not a time') from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def seconds_since(text: str | None, now: datetime) -> float:
    """How long ago that was; for ever where it is not known."""
    return (now - moment(text)).total_seconds() if text else float("inf")
