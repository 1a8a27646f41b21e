"""Whoever pulls plugs and kills agents in the middle of plans, and lets hosts come back afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import product
from typing import Literal

from simulation.clusters import Bare

from slipway.embedded.storage.store import Change
from slipway.fleet.baremetal.plans import planfacts
from slipway.simulation.boot import Life
from slipway.simulation.host.faults import Interruption

Fault = Literal["power", "agent"]
Place = tuple[str, Interruption]
CLEAN, REPROVISION = "clean", "reprovision"
INSTRUCTIONS = {CLEAN: 4, REPROVISION: 8}
# From here on a host that boots becomes a node at once, and another cut would be one in its join.
_PLACE_SEED = 6


def everywhere(what: Fault, plan: str) -> list[list[Interruption]]:
    """All places of a plan, before and after each instruction: those of a list can happen to one plan, one after the other."""
    places = [Interruption(what, number, done) for number, done in product(range(1, INSTRUCTIONS[plan] + 1), (False, True))]
    if what == "agent" or plan == CLEAN:
        return [places]
    first = [place for place in places if (place.instruction, place.done) <= (_PLACE_SEED, False)]
    return [first, *([place] for place in places[len(first) :])]


class Saboteur:
    """Arms each plan of a type, when it is written, with what is next; switches on again what lost its power."""

    def __init__(self, bare: Bare, **planned: list[list[Interruption]]) -> None:
        self._hosts = {bare.estate.name_of(host): host for host in bare.hosts}
        self._planned: dict[str, Iterator[list[Interruption]]] = {plan: iter(places) for plan, places in planned.items()}
        self._plans: dict[str, str] = {}
        self.armed: list[tuple[Life, list[Interruption]]] = []
        self._task: asyncio.Task[None] | None = None
        bare.estate.server.core.store.listen(self._look, "secrets")

    async def __aenter__(self) -> Saboteur:
        self._task = asyncio.create_task(self._switch_on())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._planned = {}
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    @property
    def left(self) -> list[Interruption]:
        """What was to happen, and has not; empty where all of it did."""
        waiting = [place for places in self._planned.values() for each in places for place in each]
        return [*(place for _, armed in self.armed for place in armed), *waiting]

    def _look(self, resource: str, change: Change) -> None:
        host = self._hosts.get(change.current.name)
        if host is None or not self._planned:
            return
        facts = planfacts.plan_facts(change.current.manifest())
        before = self._plans.get(change.current.name, "")
        self._plans[change.current.name] = facts.checksum
        if facts.checksum == before or facts.outcome != "pending":
            return
        places = next(self._planned.get(facts.type, iter(())), None)
        if places is not None:
            host.machine.faults.interruptions = armed = list(places)
            self.armed.append((host, armed))

    async def _switch_on(self) -> None:
        while True:
            await asyncio.sleep(0.02)
            for host, _ in self.armed:
                if not host.machine.powered:
                    await host.power_on()
