"""Rows of the page with the revision at which each last changed: who has seen everything up to a revision gets what came after it.

A reader has a cursor and no queue.  However slowly somebody reads, what waits for them is never more than the rows that there are, and a
row that changed ten times meanwhile is sent once.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Reversible

_Entry = TypeVar("_Entry")

# So many rows that are gone are remembered; who comes back from before that gets everything anew.
_MOST_GONE = 5000


class Delta(NamedTuple):
    """What a reader does not have yet: rows as JSON, and the keys of those that are gone."""

    rows: list[bytes]
    gone: list[str]

    def __bool__(self) -> bool:
        return bool(self.rows or self.gone)


class Revisions:
    """One count for all feeds, so that a single number says what somebody has seen of several."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        self.last += 1
        return self.last


class Feed:
    """The rows of several parts, each of which is made anew as a whole."""

    def __init__(self, revisions: Revisions) -> None:
        self._revisions = revisions
        self._parts: dict[object, set[str]] = {}
        self._rows: OrderedDict[str, tuple[int, bytes]] = OrderedDict()
        """In the order in which they changed."""
        self._gone: OrderedDict[str, int] = OrderedDict()
        self._floor = revisions.last

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def parts(self) -> set[object]:
        return set(self._parts)

    def replace(self, part: object, rows: Mapping[str, bytes]) -> bool:
        """Take a part's rows for what was there of it; whether anything changed.  A row may go from one part to another."""
        before, changed = self._parts.get(part, set()), False
        for key, row in rows.items():
            known = self._rows.get(key)
            if known is None or known[1] != row:
                self._rows[key] = self._revisions.next(), row
                self._rows.move_to_end(key)
                self._gone.pop(key, None)
                changed = True
        if rows:
            self._parts[part] = set(rows)
        else:
            self._parts.pop(part, None)
        missing = before - rows.keys()
        if missing:
            elsewhere = set().union(*(missing & keys for keys in self._parts.values()))
            for key in sorted(missing - elsewhere):
                self._remove(key)
                changed = True
        return changed

    def since(self, revision: int) -> Delta | None:
        """What changed after a revision; None where that is not remembered any more."""
        if revision < self._floor:
            return None
        return Delta(
            [row for _, row in _after(revision, self._rows.values(), lambda entry: entry[0])],
            [key for key, _ in _after(revision, self._gone.items(), lambda entry: entry[1])],
        )

    def all(self) -> list[bytes]:
        return [row for _, row in self._rows.values()]

    def _remove(self, key: str) -> None:
        del self._rows[key]
        self._gone[key] = self._revisions.next()
        while len(self._gone) > _MOST_GONE:
            self._floor = self._gone.popitem(last=False)[1]


def _after(revision: int, entries: Reversible[_Entry], revision_of: Callable[[_Entry], int]) -> list[_Entry]:
    """The newest entries, those that came first before the others."""
    found = list(takewhile(lambda entry: revision_of(entry) > revision, reversed(entries)))
    return found[::-1]
