"""Whatever happens, in whatever order: no step of a rollout makes a breach of its bounds worse, and every rollout ends."""

from __future__ import annotations

from fleet.machines.deployment.rollout import Rollout
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.fleet.machines.deployment.planner import DEADLOCK, Goal, Sized, Step

# What may happen, with a number that chooses whom it happens to.
EVENTS = st.tuples(
    st.sampled_from(
        (
            "plan",
            "plan",
            "reconcile",
            "reconcile",
            "ready",
            "ready",
            "gone",
            "sick",
            "lost",
            "new template",
            "scale",
            "hold",
            "status is late",
        )
    ),
    st.integers(0, 30),
)


@st.composite
def goals(draw: st.DrawFn) -> Goal:
    replicas = draw(st.integers(0, 8))
    surge, unavailable = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    if surge == unavailable == 0:
        unavailable = 1
    return Goal(replicas, surge=surge, unavailable=min(unavailable, replicas))


@st.composite
def rollouts(draw: st.DrawFn) -> Rollout:
    rollout = Rollout(draw(goals()), lingers=True, ready_at_once=False)
    rollout.template = 9
    for number in range(draw(st.integers(1, 3))):
        count = draw(st.integers(0, 5))
        # The last one may be of the new template already.
        template = 9 if number == 2 and draw(st.booleans()) else number
        made = rollout.add(f"ms{number + 1}", template, [f"m{number * 10 + each}" for each in range(count)], draw(st.integers(0, 6)))
        for machine in made.machines:
            machine.available = draw(st.booleans())
        made.count()
    return rollout


def surely_available(sets: list[Sized], sizes: dict[str, int]) -> int:
    """How many stay available when each MachineSet deletes the machines that are."""
    return sum(max(one.available - max(one.status - sizes[one.name], 0), 0) for one in sets)


def check(rollout: Rollout) -> Step:
    """Plan, and hold the step to the bounds by what the planner could know."""
    before = {name: one.spec for name, one in rollout.sets.items()}
    step = rollout.plan()
    sets = [rollout.sized(one) for one in rollout.sets.values()]
    specs = {name: before.get(name, 0) for name in rollout.sets}
    sizes = {name: size.replicas for name, size in step.sizes.items()}
    new = rollout.current
    assert new is not None
    goal = rollout.goal

    ceiling_before = sum(max(specs[one.name], one.status) for one in sets)
    ceiling_after = sum(max(sizes[one.name], one.status) for one in sets)
    assert ceiling_after <= max(ceiling_before, goal.ceiling)

    # The first exception: a MachineDeployment that is scaled down.  The second: a rollout that nothing else moves.
    scaled_down = specs[new.name] > goal.replicas
    deadlock = any(size.reason == DEADLOCK for size in step.sizes.values())
    available_before, available_after = surely_available(sets, specs), surely_available(sets, sizes)
    if not scaled_down and not deadlock:
        assert available_after >= min(available_before, goal.floor)
    if deadlock:
        assert available_before - available_after <= 1
    if goal.held and not scaled_down:
        left = sum(min(sizes[one.name], one.status) for one in sets)
        assert left >= min(goal.replicas, sum(min(specs[one.name], one.status) for one in sets))
    return step


def happen(rollout: Rollout, event: str, number: int) -> None:
    sets = list(rollout.sets.values())
    machines = [machine for one in sets for machine in one.machines]
    machine = machines[number % len(machines)] if machines else None
    match event:
        case "plan":
            check(rollout)
        case "reconcile":
            rollout.reconcile(sets[number % len(sets)].name)
        case "ready" if machine is not None:
            machine.available = True
        case "sick" if machine is not None:
            machine.available = False
        case "gone" if machine is not None and machine.deleting:
            rollout.gone(machine.name)
        case "lost" if machine is not None:
            machine.deleting = True
        case "new template":
            rollout.template = 10 + number % 3
        case "scale":
            unavailable = min(rollout.goal.unavailable, number % 9) or int(rollout.goal.surge == 0)
            rollout.goal = rollout.goal._replace(replicas=number % 9, unavailable=unavailable)
        case "hold":
            rollout.goal = rollout.goal._replace(held=not rollout.goal.held)
        case "status is late":
            # A MachineSet acts and is killed before it writes its status.
            one = sets[number % len(sets)]
            status, available = one.status, one.available
            rollout.reconcile(one.name)
            one.status, one.available = status, available


def settle(rollout: Rollout) -> None:
    """From now on what is new gets well and what is deleted goes; sick machines of an old template stay sick."""
    rollout.goal = rollout.goal._replace(held=False)
    for _ in range(200):
        check(rollout)
        for name in list(rollout.sets):
            rollout.reconcile(name)
        for one in rollout.sets.values():
            one.machines = [machine for machine in one.machines if not machine.deleting]
            for machine in one.machines:
                machine.available = machine.available or one is rollout.current
            one.count()
        if rollout.finished():
            return
    raise AssertionError("the rollout does not end")


@settings(max_examples=200, deadline=None)
@given(rollouts(), st.lists(EVENTS, max_size=40))
def test_no_step_worsens_a_bound_and_every_rollout_ends(rollout: Rollout, events: list[tuple[str, int]]) -> None:
    for event, number in events:
        happen(rollout, event, number)
    settle(rollout)


@settings(max_examples=100, deadline=None)
@given(rollouts(), st.lists(EVENTS, max_size=20))
def test_with_on_delete_no_machine_goes_that_nobody_deleted_but_by_a_scale_down(rollout: Rollout, events: list[tuple[str, int]]) -> None:
    rollout.goal = rollout.goal._replace(on_delete=True, surge=0, unavailable=0)
    for event, number in events:
        if event == "plan":
            machines = sum(len(one.machines) for one in rollout.sets.values())
            before = {name: one.spec for name, one in rollout.sets.items()}
            rollout.plan()
            total = sum(max(before.get(one.name, 0), one.status) for one in rollout.sets.values())
            if total <= rollout.goal.replicas:
                going = sum(max(one.status - one.spec, 0) for one in rollout.sets.values() if one.spec < before.get(one.name, 0))
                assert going == 0, machines
        else:
            happen(rollout, event, number)


@settings(max_examples=50, deadline=None)
@given(rollouts())
def test_without_news_the_planner_comes_to_rest(rollout: Rollout) -> None:
    before: dict[str, int] = {}
    for _ in range(30):
        check(rollout)
        sizes = {name: one.spec for name, one in rollout.sets.items()}
        if sizes == before:
            return
        before = sizes
    raise AssertionError("the planner wants something else every time")
