"""Whatever happens to machines, the planner keeps its promises, and in the end there is what was wanted."""

from __future__ import annotations

import random

from fleet.controlplane.machinemodel import World
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.fleet.controlplane.planner import Nothing

STEPS = 60
ENOUGH = 400


def lived(draw: random.Random, *, external: bool) -> World:
    """A control plane after a hard time; every step on the way was checked."""
    surge = draw.choice([0, 1])
    replicas = draw.choice([3, 5] if surge == 0 else [1, 3, 5])
    world = World(draw, replicas, surge, external, draw.choice([(), ("x", "y"), ("x", "y", "z")]))
    for _ in range(STEPS):
        match draw.randrange(12):
            case 0:
                world.die()
            case 1:
                world.recover()
            case 2:
                world.change_mind()
            case 3 | 4 | 5 | 6:
                world.progress()
            case place:
                world.reconcile(killed=place == 7)
    return world


def at_peace(world: World) -> None:
    """Nothing happens any more but what is due, until nothing is."""
    for _ in range(ENOUGH):
        step = world.reconcile()
        if not world.progress() and isinstance(step, Nothing):
            return
    raise AssertionError(f"it does not end: {step}, {world}")


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_run_ends_with_what_was_wanted_and_etcd_never_loses_its_quorum(draw: random.Random, external: bool) -> None:
    world = lived(draw, external=external)
    at_peace(world)
    assert len(world.hosts) == world.replicas
    assert all(host.up and host.alive and host.version == world.version for host in world.hosts.values()), world
    assert external or set(world.members) == set(world.hosts)
