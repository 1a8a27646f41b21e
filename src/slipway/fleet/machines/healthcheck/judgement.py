"""Whether a Machine is well, when to look again, and how many that are not may be remediated: pure functions of what was seen.

A Machine whose Node is not well yet for long enough is neither well nor not: it counts as not well, and nothing is done about it.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import TRUE, moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from slipway.fleet.contract.conditions import Reported

DEFAULT_STARTUP = 600
"""How many seconds a Machine may take to have its Node where the health check does not say."""
ALL = "100%"

# An expiry is looked at this much after it.
_AFTER = timedelta(seconds=1)
_RANGE = re.compile(r"\[([0-9]+)-([0-9]+)\]")
_PERCENTAGE = re.compile(r"([0-9]+)%")


class Unhealthy(NamedTuple):
    """A condition that makes a Machine unhealthy when it has this status for longer than so many seconds."""

    type: str
    status: str
    seconds: int = 0


class Checks(NamedTuple):
    """What a health check looks at; a startup of 0 seconds is for ever."""

    node: tuple[Unhealthy, ...] = ()
    machine: tuple[Unhealthy, ...] = ()
    startup: int = DEFAULT_STARTUP


class Target(NamedTuple):
    """A Machine, with what was seen of its Node and of its Cluster."""

    conditions: Sequence[Reported]
    created: datetime | None
    cluster: Sequence[Reported]
    """The conditions of the Cluster."""
    node: Sequence[Reported] | None = None
    """The conditions of the Node; None where there is none, or where it was not looked for."""
    node_name: str = ""
    node_missing: bool = False
    """The Machine had a Node, and there is none of its name."""
    control_plane: bool = False
    deleting: bool = False
    marked: bool = False
    """By the annotation that has a Machine remediated at once."""


class Verdict(NamedTuple):
    """``next_check`` is in how many seconds the Machine may have become unhealthy by the mere passing of time; 0: never."""

    healthy: bool = False
    unhealthy: bool = False
    next_check: float = 0.0
    reason: str = ""
    message: str = ""
    deprecated_reason: str = ""
    deprecated_message: str = ""


class _Finding(NamedTuple):
    reason: str = ""
    deprecated_reason: str = ""
    messages: tuple[str, ...] = ()
    next_checks: tuple[timedelta, ...] = ()


class Allowed(NamedTuple):
    """Whether remediation is allowed at all, and how many more Machines may become unhealthy until it is not."""

    allowed: bool
    more: int


def judge(target: Target, checks: Checks, now: datetime) -> Verdict:
    if target.marked:
        return Verdict(
            unhealthy=True,
            reason=names.HAS_REMEDIATE_ANNOTATION_REASON,
            message="Health check failed: marked for remediation via cluster.x-k8s.io/remediate-machine annotation",
            deprecated_reason="HasRemediateMachineAnnotation",
            deprecated_message="Marked for remediation via remediate-machine annotation",
        )
    well = Verdict(healthy=target.node is not None and not target.deleting)
    initialized = _is_true(target.cluster, names.CONTROL_PLANE_INITIALIZED_CONDITION)
    if not initialized and not target.control_plane:
        # The first control-plane machine may be remediated; nobody else is to blame before it is there.
        return well
    if not _is_true(target.cluster, names.INFRASTRUCTURE_READY_CONDITION):
        return well
    machine = _expired(target.conditions, checks.machine, "Machine", now)
    node = _node(target, checks, now)
    messages = (*machine.messages, *node.messages)
    if not messages:
        soon = min((*machine.next_checks, *node.next_checks), default=None)
        return well if soon is None else Verdict(next_check=soon.total_seconds())
    worst = machine if machine.messages else node
    return Verdict(
        unhealthy=True,
        reason=worst.reason,
        message="Health check failed:\n" + "\n".join(f"  * {message}" for message in messages),
        deprecated_reason=worst.deprecated_reason,
        # The older condition of a Node that went never had a message.
        deprecated_message="" if worst.deprecated_reason == "NodeNotFound" else "; ".join(messages),
    )


def allowed(expected: int, healthy: int, at_most: int | str | None = None, within: str = "") -> Allowed:
    """``expected`` Machines are watched, of which so many are healthy; ``within`` is a range such as [3-5] and beats ``at_most``.

    A Machine that is still starting counts as not healthy; a share of all is rounded down.
    """
    unhealthy = expected - healthy
    if within:
        least, most = _range(within)
        return Allowed(least <= unhealthy <= most, most - unhealthy)
    most = _scaled(ALL if at_most is None else at_most, expected)
    return Allowed(unhealthy <= most, most - unhealthy)


def _node(target: Target, checks: Checks, now: datetime) -> _Finding:
    if target.node_missing:
        return _Finding(names.NODE_DELETED_REASON, "NodeNotFound", (f"Node {target.node_name} has been deleted",))
    if target.node is not None:
        return _expired(target.node, checks.node, "Node", now)
    if not checks.startup:
        return _Finding()
    patience = timedelta(seconds=checks.startup)
    began = _began(target)
    if began is not None and began + patience < now:
        message = f"Node failed to report startup in {Duration.of(seconds=checks.startup)}"
        return _Finding(names.NODE_STARTUP_TIMEOUT_REASON, "NodeStartupTimeout", (message,))
    return _Finding(next_checks=(patience - (now - (began or now)) + _AFTER,))


def _began(target: Target) -> datetime | None:
    """Since when the Node could have come: the Machine, the infrastructure of both, and the control plane were there."""
    sources = (
        (target.cluster, names.CONTROL_PLANE_INITIALIZED_CONDITION),
        (target.cluster, names.INFRASTRUCTURE_READY_CONDITION),
        (target.conditions, names.INFRASTRUCTURE_READY_CONDITION),
    )
    since = [moment(one.last_transition_time) for found, name in sources for one in found if one.type == name and one.status == TRUE]
    return max((one for one in (target.created, *since) if one is not None), default=None)


def _expired(found: Iterable[Reported], wanted: Iterable[Unhealthy], whose: str, now: datetime) -> _Finding:
    """Which conditions have been bad for too long, and when others will have been."""
    by_type = {one.type: one for one in found}
    messages: list[str] = []
    next_checks: list[timedelta] = []
    for bad in wanted:
        one = by_type.get(bad.type)
        if one is None or one.status != bad.status:
            continue
        since, patience = moment(one.last_transition_time) or now, timedelta(seconds=bad.seconds)
        if since + patience < now:
            told = f"Condition {bad.type} on {whose} is reporting status {bad.status} with reason {one.reason}"
            messages.append(f"{told} for more than {Duration.of(seconds=bad.seconds)}")
            continue
        left = patience - (now - since) + _AFTER
        if left > timedelta():
            next_checks.append(left)
    reason = names.UNHEALTHY_MACHINE_REASON if whose == "Machine" else names.UNHEALTHY_NODE_REASON
    return _Finding(reason, reason, tuple(messages), () if messages else tuple(next_checks))


def _is_true(found: Iterable[Reported], name: str) -> bool:
    return any(one.type == name and one.status == TRUE for one in found)


def _range(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise OperatorError(f'unhealthyInRange "{text}" is no range such as [3-5]')
    least, most = int(match[1]), int(match[2])
    if most < least:
        raise OperatorError(f'unhealthyInRange "{text}" ends before it begins: a range such as [{most}-{least}] is wanted')
    return least, most


def _scaled(value: int | str, of: int) -> int:
    if isinstance(value, int):
        return value
    match = _PERCENTAGE.fullmatch(value)
    if match is None:
        raise OperatorError(f'unhealthyLessThanOrEqualTo "{value}" is neither a number nor a share such as 40%')
    return int(match[1]) * of // 100
