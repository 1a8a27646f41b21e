"""A MachineDeployment, its MachineSets and Machines as plain values, with controllers that a test runs one by one in any order.

What a MachineSet reports is what it saw in its last reconcile, as in a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from slipway.fleet.machines.deployment.planner import DISABLE_CREATE, Goal, Sized, Step, next_step


@dataclass
class Machine:
    name: str
    available: bool = True
    deleting: bool = False


@dataclass
class MachineSet:
    name: str
    template: int
    created: str
    spec: int = 0
    machines: list[Machine] = field(default_factory=list)
    may_create: bool = True
    status: int = 0
    available: int = 0

    def count(self) -> None:
        self.status = len(self.machines)
        self.available = sum(machine.available and not machine.deleting for machine in self.machines)


class Rollout:
    """``lingers``: a machine that is deleted is there until the test lets it go."""

    def __init__(self, goal: Goal, *, lingers: bool = False, ready_at_once: bool = True) -> None:
        self.goal = goal
        self.template = 0
        self.sets: dict[str, MachineSet] = {}
        self.number = 0
        self.lingers, self.ready_at_once = lingers, ready_at_once

    def add(self, name: str, template: int, machines: Iterable[str] = (), spec: int | None = None) -> MachineSet:
        made = MachineSet(name, template, created=f"{len(self.sets):03}", machines=[Machine(each) for each in machines])
        made.spec = len(made.machines) if spec is None else spec
        made.count()
        self.sets[name] = made
        self.number = max([self.number, *(int(each.name[1:]) for each in made.machines)])
        return made

    @property
    def current(self) -> MachineSet | None:
        return next((each for each in self.sets.values() if each.template == self.template), None)

    def sized(self, one: MachineSet) -> Sized:
        up_to_date = one.status if one.template == self.template else 0
        return Sized(one.name, one.created, one.spec, one.status, one.available, up_to_date)

    def plan(self) -> Step:
        """A reconcile of the MachineDeployment."""
        new = self.current or self.add(f"ms{len(self.sets) + 1}", self.template)
        step = next_step(self.goal, self.sized(new), [self.sized(each) for each in self.sets.values() if each is not new])
        for name, size in step.sizes.items():
            self.sets[name].spec = size.replicas
            self.sets[name].may_create = size.annotations[DISABLE_CREATE] != "true"
        return step

    def reconcile(self, name: str) -> tuple[list[str], list[str]]:
        """A reconcile of a MachineSet: the names of the machines that it made and deleted, the first ones first."""
        one = self.sets[name]
        made: list[str] = []
        deleted: list[str] = []
        missing = one.spec - len(one.machines)
        if missing > 0 and one.may_create:
            for _ in range(missing):
                self.number += 1
                made.append(f"m{self.number}")
                one.machines.append(Machine(made[-1], available=self.ready_at_once))
        elif missing < 0:
            doomed = sorted(one.machines, key=lambda machine: (not machine.deleting, int(machine.name[1:])))[:-missing]
            for machine in doomed:
                if not machine.deleting:
                    machine.deleting = True
                    deleted.append(machine.name)
            if not self.lingers:
                one.machines = [machine for machine in one.machines if not machine.deleting]
        one.count()
        return made, deleted

    def machine(self, name: str) -> tuple[MachineSet, Machine]:
        return next((one, machine) for one in self.sets.values() for machine in one.machines if machine.name == name)

    def gone(self, name: str) -> None:
        one, machine = self.machine(name)
        one.machines.remove(machine)

    def finished(self) -> bool:
        """Every machine is of today's template, available, and as many as wanted."""
        new = self.current
        others = [each for each in self.sets.values() if each is not new]
        if new is None or any(each.spec or each.machines for each in others):
            return False
        return new.spec == len(new.machines) == self.goal.replicas and all(each.available and not each.deleting for each in new.machines)
