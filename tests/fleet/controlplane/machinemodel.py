"""Machines and an etcd that are not there: what a planner's steps do to them, and what happens to them by itself.

Hosts come up, fail to, die and recover; health checks give machines up; people change their minds; the controller is killed in the middle
of a step.  Nothing happens that etcd could not bear: of its voters so many live that it keeps its quorum, those on their way out not
counted.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from slipway.fleet.controlplane.decisions.machines import (
    ETCD_CHECKS,
    KUBERNETES_CHECKS,
    LABELS_AND_TAINTS,
    Check,
    ControlPlane,
    Machine,
    Member,
    Remediation,
)
from slipway.fleet.controlplane.decisions.quorum import quorum
from slipway.fleet.controlplane.decisions.remediation import not_replaced_yet
from slipway.fleet.controlplane.planner import (
    CreateFirst,
    Nothing,
    Release,
    Remediate,
    RemoveMember,
    ScaleDown,
    ScaleUp,
    StartAnew,
    Step,
    Wait,
    next_step,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
ALL = (*KUBERNETES_CHECKS, *ETCD_CHECKS, LABELS_AND_TAINTS)
OLD, NEW = "v1.34.10", "v1.35.4"


@dataclass
class Host:
    name: str
    created: int
    version: str
    domain: str
    up: bool = False
    alive: bool = True
    given_up: bool = False
    deleted: int | None = None
    drained: bool = False
    hook: bool = True
    asked_to_go: bool = False
    by_us: bool = False
    """Whether its deletion was ours."""


@dataclass
class World:
    draw: random.Random
    replicas: int
    surge: int
    external: bool = False
    domains: tuple[str, ...] = ()
    hosts: dict[str, Host] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    leader: str = ""
    version: str = OLD
    initialized: bool = False
    in_progress: Remediation | None = None
    clock: int = 0
    made: int = 0

    # What the controller sees.

    def plane(self) -> ControlPlane:
        machines = tuple(self._machine(host) for host in self.hosts.values())
        known = {host.name for host in self.hosts.values() if host.up}
        well = all(name in known and self.hosts[name].alive for name in self.members)
        return ControlPlane(
            self.replicas,
            machines,
            self.now,
            max_surge=self.surge,
            version=self.version,
            failure_domains=self.domains,
            manages_etcd=not self.external,
            members=()
            if self.external
            else tuple(Member(number, name, leader=name == self.leader) for name, number in self.members.items()),
            members_healthy=well and known == set(self.members),
            initialized=self.initialized,
            cluster_initialized=self.initialized,
            in_progress=not_replaced_yet(self.in_progress, machines),
        )

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.clock)

    def _machine(self, host: Host) -> Machine:
        status = "True" if host.alive and host.deleted is None else "False"
        return Machine(
            host.name,
            START + timedelta(seconds=host.created),
            version=host.version,
            up_to_date=host.version == self.version,
            failure_domain=host.domain,
            node=host.name if host.up else "",
            checks=dict.fromkeys(ALL, Check(status)) if host.up else {},
            deleted=None if host.deleted is None else START + timedelta(seconds=host.deleted),
            has_hook=host.hook,
            waits_for_hook=host.deleted is not None and host.drained,
            delete_asked=host.asked_to_go,
            unhealthy=host.given_up,
            ours_to_remediate=host.given_up,
        )

    # What it does.

    def reconcile(self, *, killed: bool = False) -> Step:
        """One step, whose every promise is checked; ``killed`` stops it in the middle."""
        self.clock += 1
        plane = self.plane()
        if plane.in_progress is None:
            self.in_progress = None
        step = next_step(plane, self.draw.choice).step
        self._check(step)
        before = self.has_quorum()
        self._do(step, killed)
        if not isinstance(step, CreateFirst | StartAnew) and not self.external:
            assert self.has_quorum() or not before, f"{step} took the quorum away"
        return step

    def _check(self, step: Step) -> None:
        deleting = [host for host in self.hosts.values() if host.deleted is not None]
        starting = [host for host in self.hosts.values() if not host.up and not host.given_up]
        match step:
            case ScaleUp():
                assert not deleting, "one comes while another goes"
                assert not starting, "one comes while another does"
                assert len(self.hosts) < self.replicas + self.surge, "too many"
            case ScaleDown():
                assert not deleting, "one goes while another does"
                assert len(self.hosts) > 1, "the last one goes"
                assert len(self.hosts) > self.replicas - (self.surge == 0), "too few"
            case Remediate(machine):
                assert self.hosts[machine].given_up
                assert not self.initialized or not deleting, "one goes while another does"
            case CreateFirst():
                assert not self.hosts
            case Release(machine):
                released = [host for host in deleting if not host.hook]
                assert not released, "two are released"
                assert self.hosts[machine].drained

    def _do(self, step: Step, killed: bool) -> None:
        match step:
            case CreateFirst(domain) | ScaleUp(domain):
                self.made += 1
                name = f"m{self.made}"
                self.hosts[name] = Host(name, self.clock, self.version, domain)
                if not killed:
                    self.in_progress = None
            case ScaleDown(machine, leaders):
                self._lead(leaders)
                if not killed:
                    self._delete(machine)
            case Remediate(machine, started, leaders):
                self._lead(leaders)
                self.in_progress = started
                if not killed:
                    self._delete(machine)
            case RemoveMember(member):
                self._leave(member.name)
            case Release(machine, member, leaders):
                self._lead(leaders)
                if member is not None:
                    self._leave(member.name)
                if not killed:
                    self.hosts[machine].hook = False
            case Wait() | Nothing() | StartAnew():
                pass

    def _delete(self, name: str) -> None:
        self.hosts[name].deleted = self.clock
        self.hosts[name].by_us = True

    def _lead(self, candidates: tuple[str, ...]) -> None:
        if candidates:
            assert self.hosts[candidates[0]].up
            self.leader = candidates[0]

    def _leave(self, name: str) -> None:
        self.members.pop(name, None)
        if self.leader == name:
            self.leader = ""
        self._elect()

    def _elect(self) -> None:
        if not self.leader or not self._lives(self.leader):
            self.leader = next((name for name in self.members if self._lives(name)), "")

    def _lives(self, name: str) -> bool:
        host = self.hosts.get(name)
        return host is not None and host.alive

    def has_quorum(self) -> bool:
        alive = sum(map(self._lives, self.members))
        return not self.members or alive >= quorum(len(self.members))

    # What happens by itself.

    def progress(self) -> bool:
        """Something that is due; whether there was anything."""
        self.clock += 1
        due = [
            *((self._come_up, host) for host in self.hosts.values() if not host.up and host.alive and host.deleted is None),
            *((self._drain, host) for host in self.hosts.values() if host.deleted is not None and not host.drained),
            *((self._go, host) for host in self.hosts.values() if host.deleted is not None and not host.hook),
            *((self._give_up, host) for host in self.hosts.values() if not host.alive and not host.given_up and host.deleted is None),
        ]
        if not due:
            return False
        act, host = self.draw.choice(due)
        act(host)
        return True

    def _come_up(self, host: Host) -> None:
        host.up = True
        self.initialized = True
        if not self.external:
            self.members[host.name] = self.made * 10 + 1
            self._elect()

    def _drain(self, host: Host) -> None:
        host.drained = True

    def _go(self, host: Host) -> None:
        del self.hosts[host.name]
        if host.name in self.members:
            # Whoever took it down without asking left its member behind.
            assert not host.by_us or not host.up, "gone before its member was removed"

    def _give_up(self, host: Host) -> None:
        host.given_up = True

    def die(self) -> None:
        """A host dies, if etcd and the API bear it."""
        living = [host for host in self.hosts.values() if host.alive and host.deleted is None]
        if not living:
            return
        host = self.draw.choice(living)
        going = {other.name for other in self.hosts.values() if other.deleted is not None}
        voters = [name for name in self.members if name not in going]
        alive = [name for name in voters if name != host.name and self._lives(name)]
        apis = [other for other in living if other.up and other is not host]
        if host.up and (len(apis) == 0 or (voters and len(alive) < quorum(len(voters)))):
            return
        host.alive = False
        self._elect()

    def recover(self) -> None:
        dead = [host for host in self.hosts.values() if not host.alive]
        if dead:
            host = self.draw.choice(dead)
            host.alive, host.given_up = True, False

    def change_mind(self) -> None:
        match self.draw.randrange(3):
            case 0:
                self.replicas = self.draw.choice([3, 5] if self.surge == 0 else [1, 3, 5])
            case 1:
                self.version = NEW if self.version == OLD else OLD
            case 2:
                for host in self.hosts.values():
                    host.asked_to_go = self.draw.random() < 0.2
