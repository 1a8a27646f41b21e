"""How a MachineDeployment goes on: the sizes of its MachineSets, from what they are now.

:func:`next_step` is asked after every change and knows no past.  It holds two bounds, ``replicas - unavailable`` machines that are
available and ``replicas + surge`` machines at all: no step makes a breach of one worse, but for two, as in Cluster API 1.14.  A
MachineDeployment that is scaled down shrinks its current MachineSet whatever is available of it, and a rollout that nothing else moves
gives up one old machine where there is one that is not available.

Beyond Cluster API: a hold (the current MachineSet may not create machines) keeps the old machines, of which otherwise as many go as may be
unavailable and then wait for successors that do not come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DISABLE_CREATE = names.DISABLE_MACHINE_CREATE_ANNOTATION
DESIRED_REPLICAS = names.DESIRED_REPLICAS_ANNOTATION
MAX_REPLICAS = names.MAX_REPLICAS_ANNOTATION
DEADLOCK = "the rollout cannot go on: a machine of the old template is not available, and one is given up"


class Goal(NamedTuple):
    """What the MachineDeployment asks for.  ``surge`` and ``unavailable`` are numbers of machines; both are 0 with ``on_delete``."""

    replicas: int
    surge: int = 0
    unavailable: int = 0
    on_delete: bool = False
    paused: bool = False
    held: bool = False
    """The current MachineSet may not create machines now."""
    observed: bool = True
    """The status is that of the latest spec."""

    @property
    def floor(self) -> int:
        return max(self.replicas - self.unavailable, 0)

    @property
    def ceiling(self) -> int:
        return self.replicas + self.surge


class Sized(NamedTuple):
    """A MachineSet; ``status`` counts machines that are being deleted too.  The greater ``created``, the younger."""

    name: str
    created: str = ""
    spec: int = 0
    status: int = 0
    available: int = 0
    up_to_date: int = 0
    desired_replicas: int | None = None
    """The replicas of the MachineDeployment when this one was last written, and the most that there could be then."""
    max_replicas: int | None = None
    observed: bool = True
    deleting: bool = False


class Size(NamedTuple):
    replicas: int
    annotations: Mapping[str, str]
    reason: str = ""


class Step(NamedTuple):
    sizes: Mapping[str, Size]
    """Of every MachineSet, the current one included."""
    delete: Sequence[str] = ()
    """Old MachineSets that nobody needs any more."""


class _Plan:
    """The sizes that change."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.reasons: dict[str, str] = {}

    def of(self, one: Sized) -> int:
        return self.sizes.get(one.name, one.spec)

    def set(self, one: Sized, replicas: int, reason: str) -> None:
        if replicas != self.of(one):
            self.sizes[one.name], self.reasons[one.name] = replicas, reason


def next_step(goal: Goal, new: Sized | None, old: Iterable[Sized]) -> Step:
    """``new`` is the MachineSet of today's template; while paused there may be none."""
    oldest_first = sorted(old, key=lambda one: (one.created, one.name))
    plan = _Plan()
    if goal.paused:
        _scale_paused(goal, new, oldest_first, plan)
    elif new is not None:
        _scale_new(goal, new, oldest_first, plan)
        if goal.on_delete:
            _follow_deletions(goal, new, oldest_first, plan)
        else:
            _scale_old_down(goal, new, oldest_first, plan)
            _break_deadlock(goal, new, oldest_first, plan)
    sets = [*oldest_first, *([new] if new is not None else [])]
    sizes = {one.name: Size(plan.of(one), step_annotations(goal, old=one is not new), plan.reasons.get(one.name, "")) for one in sets}
    return Step(sizes, () if goal.paused else _unneeded(goal, sets, oldest_first))


def step_annotations(goal: Goal, *, old: bool) -> Mapping[str, str]:
    """What a MachineSet is told with its size.  With OnDelete an old one makes no machine for one that somebody deleted."""
    return {
        DISABLE_CREATE: "true" if old and goal.on_delete else "false",
        DESIRED_REPLICAS: str(goal.replicas),
        MAX_REPLICAS: str(goal.ceiling),
    }


def _scale_new(goal: Goal, new: Sized, old: Sequence[Sized], plan: _Plan) -> None:
    if new.spec >= goal.replicas:
        plan.set(new, goal.replicas, f"the MachineDeployment has {goal.replicas} replicas")
        return
    # A machine that is to come counts, and so does one that is still there.
    machines = sum(max(one.spec, one.status) for one in (*old, new))
    room = goal.ceiling - machines
    if room > 0:
        grown = new.spec + min(room, goal.replicas - new.spec)
        plan.set(new, grown, f"{machines} machines, {goal.replicas} replicas and {goal.surge} more are allowed")


def _scale_old_down(goal: Goal, new: Sized, old: Sequence[Sized], plan: _Plan) -> None:
    sets = (*old, new)
    going = sum(max(one.status - min(one.spec, plan.of(one)), 0) for one in sets)
    # While machines of the new template fail, no more are given up for it.
    failing = max(new.spec - new.available, 0)
    budget = sum(one.spec for one in sets) - going - goal.floor - failing
    if goal.held:
        budget = min(budget, sum(min(plan.of(one), one.status) for one in sets) - goal.replicas)
    for unavailable_only in (True, False):
        for one in old:
            size = plan.of(one)
            down = min(max(size - one.available, 0) if unavailable_only else size, budget)
            if one.available > 0:
                spare = sum(_surely_available(each, plan.of(each)) for each in sets) - goal.floor
                smallest = min(size, one.status) - max(spare, 0)
                down = min(down, size - smallest)
            if down > 0:
                plan.set(one, size - down, f"{goal.floor} machines must be available, and are without {down} of these")
                budget -= down


def _surely_available(one: Sized, size: int) -> int:
    """Which machines the MachineSet deletes is not known here: at worst, those that are available."""
    return max(one.available - max(one.status - size, 0), 0)


def _break_deadlock(goal: Goal, new: Sized, old: Sequence[Sized], plan: _Plan) -> None:
    """Nothing is scaled, nothing is to be, all of the new is available: then what holds up the rollout is a sick old machine."""
    sets = (*old, new)
    if goal.held or plan.sizes or any(one.spec != one.status for one in sets) or new.available != new.status:
        return
    for one in old:
        if one.available != one.status and one.spec > 0:
            plan.set(one, one.spec - 1, DEADLOCK)
            return


def _follow_deletions(goal: Goal, new: Sized, old: Sequence[Sized], plan: _Plan) -> None:
    """OnDelete: an old MachineSet is as large as what is left of it, and shrinks by itself only with the MachineDeployment."""
    surplus = sum(one.spec for one in old) + plan.of(new) - goal.replicas
    for one in old:
        if one.status < one.spec:
            plan.set(one, one.status, "machines were deleted")
            surplus -= one.spec - one.status
    for one in old:
        down = min(plan.of(one), max(surplus, 0))
        plan.set(one, plan.of(one) - down, f"the MachineDeployment has {goal.replicas} replicas")
        surplus -= down


def _scale_paused(goal: Goal, new: Sized | None, old: Sequence[Sized], plan: _Plan) -> None:
    """No rollout, but the number of replicas still counts: each MachineSet has its share of a change."""
    why = f"the MachineDeployment has {goal.replicas} replicas, and its rollout rests"
    sets = [*old, *([new] if new is not None else [])]
    active = [one for one in sets if one.spec > 0]
    if len(active) <= 1:
        for one in active or sets[-1:]:
            plan.set(one, goal.replicas, why)
        return
    if new is not None and new.spec == new.available == new.desired_replicas == goal.replicas:
        for one in old:
            plan.set(one, 0, why)
        return
    if goal.on_delete:
        return
    change = (goal.ceiling if goal.replicas > 0 else 0) - sum(one.spec for one in active)
    if change == 0:
        return
    # Large ones first; of the same size, the youngest grows and the oldest shrinks first.
    by_age = sorted(active, key=lambda one: one.created, reverse=change > 0)
    by_size = sorted(by_age, key=lambda one: -one.spec)
    left, shares = change, {}
    for one in by_size:
        part = share(goal, one, sum(each.status for each in sets))
        shares[one.name] = min(part, left) if change > 0 else max(part, left)
        left -= shares[one.name]
    shares[by_size[0].name] += left
    for one in by_size:
        plan.set(one, max(one.spec + shares[one.name], 0), why)


def share(goal: Goal, one: Sized, machines: int) -> int:
    """By how much the MachineSet changes when the MachineDeployment goes from what it could be at most to what it can be now."""
    if goal.replicas == 0:
        return -one.spec
    before = one.max_replicas if one.max_replicas is not None else machines
    if before <= 0:
        return 0
    grown = one.spec * goal.ceiling / before
    # Go rounds halves away from zero.
    return int(grown + 0.5) - one.spec


def _unneeded(goal: Goal, sets: Sequence[Sized], old: Sequence[Sized]) -> Sequence[str]:
    """The empty ones of a rollout that is complete."""
    counts = [sum(one.status for one in sets), sum(one.up_to_date for one in sets), sum(one.available for one in sets)]
    if not goal.observed or any(count != goal.replicas for count in counts):
        return ()
    return [one.name for one in old if one.spec == one.status == 0 and one.observed and not one.deleting]
