"""One condition that sums up others of the same object, by the rules of Cluster API's ``Ready`` and ``Available``.

Issues come before what is unknown, and that before what is well; the message names every condition that is not well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, Condition, find

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.conditions import ConditionStatus

_ISSUE, _UNKNOWN, _INFO = 0, 1, 2
NOT_YET_REPORTED = "NotYetReported"
_BULLET = re.compile(r"\s*\*\s+", re.ASCII)


class Reasons(NamedTuple):
    """The reason of a summary, by the worst that it sums up.  These defaults are Cluster API's."""

    issue: str = "IssuesReported"
    unknown: str = "UnknownReported"
    info: str = "InfoReported"


def summary(
    conditions: Sequence[Manifest],
    condition_type: str,
    of: Sequence[str],
    reasons: Reasons = Reasons(),  # noqa: B008 - immutable
    *,
    negative: Collection[str] = (),
    ignored_if_missing: Collection[str] = (),
) -> Condition:
    """The condition ``condition_type`` of the conditions ``of``, whose order is that of their relevance.

    Those in ``negative`` are well when they are False.  One that is missing counts as unknown, unless it may be missing.
    """
    if not of or condition_type in of:
        raise OperatorError(f'the condition "{condition_type}" needs other conditions that it sums up, and has {list(of)}')
    found = [(name, find(conditions, name)) for name in of if name not in ignored_if_missing or find(conditions, name)]
    scope = [condition or _missing(name) for name, condition in found]
    if not scope:
        raise OperatorError(f'the condition "{condition_type}" has nothing to sum up: none of {list(of)} is there')
    ranks = [_rank(condition, condition.type in negative) for condition in scope]
    worst = min(ranks)
    status: ConditionStatus = (FALSE, UNKNOWN, TRUE)[worst]
    shown = [condition for condition, rank in zip(scope, ranks, strict=True) if rank < _INFO or (worst == _INFO and condition.message)]
    return Condition(type=condition_type, status=status, reason=reasons[worst], message="\n".join(map(_line, shown)))


def _rank(condition: Condition, negative: bool) -> int:
    if condition.status == (TRUE if negative else FALSE):
        return _ISSUE
    return _INFO if condition.status == (FALSE if negative else TRUE) else _UNKNOWN


def _missing(condition_type: str) -> Condition:
    return Condition(type=condition_type, status=UNKNOWN, reason=NOT_YET_REPORTED, message="Condition not yet reported")


def _line(condition: Condition) -> str:
    return f"* {condition.type}:{_indented(condition.message) if condition.message else f' {condition.reason}'}"


def _indented(message: str) -> str:
    """A single line stays on its line; several, or a list, are nested one level deeper, every line with a bullet."""
    lines = message.split("\n")
    if len(lines) == 1 and not _BULLET.search(message):
        return f" {message}"
    listed = [bool(_BULLET.search(line)) for line in lines]
    # A list stays one; beside lines of text, its lines belong to the text above.
    prefixes = ["  "] * len(lines) if all(listed) else ["    " if bullet else "  * " for bullet in listed]
    return "\n" + "\n".join(prefix + line for prefix, line in zip(prefixes, lines, strict=True))
