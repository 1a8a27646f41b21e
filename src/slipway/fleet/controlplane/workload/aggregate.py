"""One condition of the control plane from those of its Machines: what is wrong first, then what is unknown, then what is well."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.controlplane.workload.verdicts import Said, older_false, older_true, older_unknown, said

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.fleet.contract.status import DeprecatedCondition
    from slipway.fleet.controlplane.workload.view import MachineFacts

# How many Machines a line names.
_NAMED = 3


class Subject(NamedTuple):
    """What is summed up, and the words for it."""

    condition_type: str
    of: tuple[str, ...]
    note: str
    older_unhealthy: str
    older_unknown: str


def summed_up(subject: Subject, machines: Sequence[MachineFacts], told: Mapping[str, Sequence[Said]], problems: Sequence[str]) -> Said:
    """``told`` are the conditions of each Machine, ``problems`` what is wrong with no Machine in particular."""
    relevant = {
        machine.name: [item for item in told[machine.name] if item.condition is not None and item.condition.type in subject.of]
        for machine in machines
    }
    statuses = {
        _seen(item.condition.status, machine) for machine in machines for item in relevant[machine.name] if item.condition is not None
    }
    message = "\n".join([*_lines(machines, relevant), *(f"* {problem}" for problem in problems)])
    older = _older(subject, told, problems)
    if problems or FALSE in statuses:
        return said(subject.condition_type, FALSE, "NotHealthy", message, older=older)
    if UNKNOWN in statuses:
        return said(subject.condition_type, UNKNOWN, "HealthUnknown", message, older=older)
    if statuses:
        return said(subject.condition_type, TRUE, "Healthy", older=older)
    return said(subject.condition_type, UNKNOWN, "HealthUnknown", f"No Machines reporting {subject.note} status", older=older)


def _seen(status: str, machine: MachineFacts) -> str:
    # Of a Machine without a host nothing can be known yet: that is no news while a control plane grows.
    return TRUE if status == UNKNOWN and not machine.provider_id else status


def _lines(machines: Sequence[MachineFacts], relevant: Mapping[str, Sequence[Said]]) -> list[str]:
    """What is not well, each with the Machines that say it: what most of them say first."""
    by_message: dict[str, list[str]] = defaultdict(list)
    for machine in machines:
        conditions = [item.condition for item in relevant[machine.name] if item.condition is not None]
        bad = [condition for condition in conditions if _seen(condition.status, machine) != TRUE]
        if not bad:
            continue
        messages = {condition.message for condition in conditions}
        if len(conditions) > 1 and len(messages) == 1:
            by_message[f"  * Control plane components: {messages.pop()}"].append(machine.name)
            continue
        lines = [f"  * {condition.type}: {condition.message or f'condition is {condition.status}'}" for condition in bad]
        by_message["\n".join(lines)].append(machine.name)
    groups = [(sorted(names), message) for message, names in by_message.items()]
    groups.sort(key=lambda group: (-len(group[0]), ",".join(group[0])))
    return [f"* Machine{'s' if len(names) > 1 else ''} {_listed(names)}:\n{message}" for names, message in groups]


def _listed(names: Sequence[str]) -> str:
    more = [f"... ({len(names) - _NAMED} more)"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])


def _older(subject: Subject, told: Mapping[str, Sequence[Said]], problems: Sequence[str]) -> DeprecatedCondition | None:
    """As v1beta1 sums up: by severity, then True before Unknown; None where no Machine says anything."""
    by_state: dict[str, set[str]] = defaultdict(set)
    for name, items in told.items():
        for item in items:
            if item.deprecated is not None and item.deprecated.type in subject.of:
                by_state[item.deprecated.severity if item.deprecated.status == FALSE else item.deprecated.status].add(name)
    errors = [*problems, *([_following(subject, "errors", by_state["Error"])] if by_state["Error"] else [])]
    kind = subject.condition_type
    if errors:
        return older_false(kind, subject.older_unhealthy, "Error", "; ".join(errors))
    if by_state["Info"]:
        return older_false(kind, subject.older_unhealthy, "Info", _following(subject, "info", by_state["Info"]))
    if by_state[TRUE]:
        return older_true(kind)
    if by_state[UNKNOWN]:
        names = ", ".join(sorted(by_state[UNKNOWN]))
        return older_unknown(kind, subject.older_unknown, f"Following Machines are reporting unknown {subject.note} status: {names}")
    return None


def _following(subject: Subject, what: str, names: set[str]) -> str:
    return f"Following Machines are reporting {subject.note} {what}: {', '.join(sorted(names))}"
