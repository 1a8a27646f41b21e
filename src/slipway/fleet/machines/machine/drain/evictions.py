"""Which Pods are evicted at once and which later, and what is said of a drain that is not finished.

Only the Pods of the lowest order are evicted; the next ones when they are gone.  The texts are Cluster API's, by which people, and the
Ready conditions of owners, know what a drain waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.fleet.machines.machine.drain.filters import Behavior
from slipway.fleet.machines.machine.values import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.machine.drain.filters import Verdict

_BUDGET = "annot evict pod as it would violate the pod's disruption budget."
_SHOWN = 3
_PROBLEMS = 5


class Plan(NamedTuple):
    """The Pods of a Node by what is done with them, each list by name."""

    now: list[Manifest]
    later: list[Manifest]
    going: list[Manifest]
    """They have a deletionTimestamp."""
    skipped: list[Manifest]
    waited_for: list[Manifest]
    waited_for_later: list[Manifest]
    held: list[tuple[Manifest, str]]
    """With what must be mended first."""


class Outcome(msgspec.Struct):
    """How far a drain has come."""

    plan: Plan
    going: list[Manifest] = msgspec.field(default_factory=list)
    failed: dict[str, list[Manifest]] = msgspec.field(default_factory=dict)
    """By why they could not be evicted."""

    @property
    def is_complete(self) -> bool:
        plan = self.plan
        return not any((self.going, self.failed, plan.later, plan.waited_for, plan.waited_for_later))

    def fail(self, pod: Manifest, why: str) -> None:
        self.failed.setdefault(why, []).append(pod)


def plan(pods: Iterable[tuple[Manifest, Verdict]]) -> Plan:
    found = sorted(pods, key=lambda each: name_of(each[0]))
    lowest = min((verdict.order for _, verdict in found if verdict.behavior in (Behavior.DRAIN, Behavior.WAIT)), default=0)
    made = Plan([], [], [], [], [], [], [])
    for pod, verdict in found:
        first = verdict.order == lowest
        match verdict.behavior:
            case Behavior.HOLD:
                made.held.append((pod, verdict.problem))
            case Behavior.SKIP:
                made.skipped.append(pod)
            case Behavior.WAIT:
                (made.waited_for if first else made.waited_for_later).append(pod)
            case Behavior.DRAIN if pod["metadata"].get("deletionTimestamp"):
                made.going.append(pod)
            case Behavior.DRAIN:
                (made.now if first else made.later).append(pod)
    return made


def begun(made: Plan) -> Outcome:
    """The outcome before any eviction: what is on its way stays so, and what is held failed."""
    outcome = Outcome(made, list(made.going))
    for pod, problem in made.held:
        outcome.fail(pod, problem)
    return outcome


def message(outcome: Outcome, started: str) -> str:
    """What the Deleting condition says; empty when the drain is complete."""
    if outcome.is_complete:
        return ""
    plan, lines = outcome.plan, [f"Drain not completed yet (started at {started}):"]
    if outcome.going:
        lines.append(f"* {_named(outcome.going)}: deletionTimestamp set, but still not removed from the Node")
    problems = sorted(outcome.failed)
    lines += [f"* {_named(outcome.failed[problem])}: {_failure(problem)}" for problem in problems[:_PROBLEMS]]
    others = sum(len(outcome.failed[problem]) for problem in problems[_PROBLEMS:])
    if others:
        lines.append(f"* {others} Pod{'s' if others > 1 else ''} with other issues")
    if plan.waited_for:
        lines.append(f"* {_named(plan.waited_for)}: waiting for completion")
    after = "After above Pods have been removed from the Node,"
    if plan.later:
        lines.append(f"{after} the following Pods will be evicted: {_names(plan.later)}")
    if plan.waited_for_later:
        lines.append(f"{after} waiting for the following Pods to complete without eviction: {_names(plan.waited_for_later)}")
    return "\n".join(lines)


def refusal(message: str, causes: Iterable[str] | None) -> str:
    """What the API server says of an eviction that would break a budget, with which budget that is."""
    return message if causes is None else f"{message} {','.join(causes)}"


def name_of(pod: Manifest) -> str:
    metadata = pod["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _failure(problem: str) -> str:
    problem = problem.replace(f"C{_BUDGET}", f"c{_BUDGET}")
    return problem if problem.startswith(f"c{_BUDGET}") else f"failed to evict Pod, {problem}"


def _named(pods: list[Manifest]) -> str:
    return f"Pod{'s' if len(pods) > 1 else ''} {_names(pods)}"


def _names(pods: list[Manifest]) -> str:
    return listed([name_of(pod) for pod in pods], _SHOWN)
