"""One condition of many objects as one condition of their owner: MachinesReady of the Ready of each Machine.

The rules are Cluster API's (NewAggregateCondition): one issue makes an issue, one unknown makes it unknown.  The message shows at most
three different messages and, for each, at most three objects: those of control-plane Machines first, then issues before what is unknown,
then what most objects say.  Whoever is not shown is counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.names import CONTROL_PLANE_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import (
    FALSE,
    INFO,
    ISSUE,
    NOT_YET_REPORTED,
    TRUE,
    UNKNOWN,
    UNSURE,
    Condition,
    Reasons,
    indented,
    moment,
    rank,
)
from slipway.fleet.contract.mirroring import reported

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from slipway.fleet.contract.conditions import ConditionStatus, Reported

_SHOWN_MESSAGES = 3
_SHOWN_OBJECTS = 3
_OTHERS = {ISSUE: "with other issues", UNSURE: "with status unknown", INFO: "with additional info"}
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class Source(NamedTuple):
    """One of the objects; control-plane Machines have the word first.  The conditions may be those of a decoded type."""

    name: str
    conditions: Sequence[Reported]
    kind: str = "Machine"
    control_plane: bool = False

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Source:
        """An object as the API has it; raises InvalidConditionError."""
        metadata, kind = manifest["metadata"], manifest["kind"]
        control_plane = kind == "Machine" and CONTROL_PLANE_LABEL in (metadata.get("labels") or {})
        return cls(metadata["name"], reported(manifest), kind, control_plane)


class _Said(NamedTuple):
    """What one of them says."""

    source: Source
    condition: Reported
    rank: int

    @property
    def message(self) -> str:
        return self.condition.message

    @property
    def since(self) -> datetime:
        return moment(self.condition.last_transition_time) or _BEGINNING


def aggregate(
    sources: Sequence[Source],
    source_type: str,
    *,
    target_type: str = "",
    reasons: Reasons = Reasons(),  # noqa: B008 - immutable
    negative: bool = False,
) -> Condition:
    """The condition ``source_type`` of all ``sources`` as ``target_type`` (else under its own name).

    Where one does not have it, that is unknown.  ``negative``: the condition is well when it is False, and so is the one that is made.
    Nothing cannot be summed up: what that means is the caller's to say.
    """
    if not sources:
        raise OperatorError(f'the condition "{target_type or source_type}" sums up {source_type} of objects, and there are none')
    # Most are well and have nothing to say, of thousands too: nothing is made of them.
    said = [_said(source, source_type, negative) for source in sources if not _is_silent(source, source_type, negative)]
    worst = min((one.rank for one in said), default=INFO)
    status: ConditionStatus = ((TRUE, UNKNOWN, FALSE) if negative else (FALSE, UNKNOWN, TRUE))[worst]
    # While something is wrong, nobody wants to read what is well.
    shown = [one for one in said if (one.message if worst == INFO else one.rank != INFO)]
    # Issues first, then the oldest; the order of objects that changed at the same time is the caller's.
    shown.sort(key=lambda one: (one.rank, one.since))
    return Condition(type=target_type or source_type, status=status, reason=reasons[worst], message="\n".join(_messages(shown)))


def _is_silent(source: Source, condition_type: str, negative: bool) -> bool:
    for one in source.conditions:
        if one.type == condition_type:
            return not one.message and one.status == (FALSE if negative else TRUE)
    return False


def _said(source: Source, condition_type: str, negative: bool) -> _Said:
    for one in source.conditions:
        if one.type == condition_type:
            return _Said(source, one, rank(one, negative=negative))
    message = f"Condition {condition_type} not yet reported"
    return _Said(source, Condition(type=condition_type, status=UNKNOWN, reason=NOT_YET_REPORTED, message=message), UNSURE)


def _messages(said: Sequence[_Said]) -> list[str]:
    ranks: dict[str, int] = {}
    first: set[str] = set()
    saying: dict[str, dict[str, list[Source]]] = defaultdict(lambda: defaultdict(list))
    for one in said:
        # The same words may be an issue for one and unknown for another: the worse counts.
        ranks[one.message] = min(one.rank, ranks.get(one.message, one.rank))
        saying[one.source.kind][one.message].append(one.source)
        if one.source.control_plane:
            first.add(one.message)
    lines: list[str] = []
    left = _SHOWN_MESSAGES
    for kind in sorted(saying):
        by_message = saying[kind]
        order = sorted(
            by_message,
            key=lambda message: (
                message not in first,
                ranks[message],
                -len(by_message[message]),
                ",".join(source.name for source in by_message[message]),
            ),
        )
        lines += [_line(kind, by_message[message], message) for message in order[:left]]
        others = Counter[int]()
        for message in order[left:]:
            others[ranks[message]] += len(by_message[message])
        lines += [f"And {count} {_named(kind, count)} {_OTHERS[one]}" for one, count in sorted(others.items())]
        left -= min(left, len(order))
    return lines


def _line(kind: str, sources: Sequence[Source], message: str) -> str:
    names = [source.name for source in sorted(sources, key=lambda source: (not source.control_plane, source.name))]
    more = f", ... ({len(names) - _SHOWN_OBJECTS} more)" if len(names) > _SHOWN_OBJECTS else ""
    return f"* {_named(kind, len(names))} {', '.join(names[:_SHOWN_OBJECTS])}{more}:{indented(message)}"


def _named(kind: str, count: int) -> str:
    if count == 1:
        return kind
    if kind.endswith("y") and kind[-2:-1].lower() not in "aeiou":
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith(("s", "x", "z", "ch", "sh")) else f"{kind}s"
