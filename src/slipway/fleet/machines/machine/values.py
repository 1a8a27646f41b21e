"""What decisions about a Machine are made of, beside the Machine itself: values, read before, that no decision reads anew."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest


class External(NamedTuple):
    """The bootstrap config or the infrastructure machine: there, known not to be there, or (neither) not to be read."""

    manifest: Manifest | None = None
    missing: bool = False

    @property
    def is_deleting(self) -> bool:
        return self.manifest is not None and bool(self.manifest["metadata"].get("deletionTimestamp"))

    @property
    def is_unread(self) -> bool:
        return self.manifest is None and not self.missing

    @property
    def is_there(self) -> bool:
        """And stays, as far as anybody knows."""
        return self.manifest is not None and not self.is_deleting


class Found(NamedTuple):
    """The Node, where it was found; ``problem`` where nobody could look, with ``disconnected`` since there was no connection."""

    node: Manifest | None = None
    problem: str = ""
    disconnected: bool = False


class Said(NamedTuple):
    """What is to be said of a deletion."""

    reason: str
    message: str = ""


def moment(text: str | None) -> datetime | None:
    """A time of the API; None where there is none."""
    if not text:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def listed(names: list[str], most: int) -> str:
    """The first names, and how many there are besides; the form is Cluster API's."""
    more = [f"... ({len(names) - most} more)"] if len(names) > most else []
    return ", ".join([*names[:most], *more])
