"""Watches what happens to machines in a rehearsal, at the very write that makes it so, and tells the legs of its course."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE
from slipway.embedded.storage.store import ADDED, DELETED
from slipway.fleet.overview.machines import group_of
from slipway.fleet.overview.stages import BOOTING, CLEANING, MEANINGS, MEMBER, host_of, machine_of, stage
from slipway.simulation.rehearsal.course import Leg

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.server import Core
    from slipway.embedded.storage.store import Change


class Life(msgspec.Struct, kw_only=True):
    """What was seen of one machine; None for what has not happened."""

    machine: str
    group: str
    version: str
    host: str = ""
    stage: str = ""
    made: float | None = None
    made_in: int = 0
    claimed: float | None = None
    running: float | None = None
    deleted: float | None = None
    deleted_in: int = 0
    gone: float | None = None
    held: float = 0.0


class Observer:
    """``tell`` is told each thing that happens, in words.  ``step`` is the number of the patch that everything follows from, now."""

    def __init__(self, core: Core, tell: Callable[[str], None]) -> None:
        self.lives: dict[str, Life] = {}
        self.step = 0
        self.replaced = 0
        self._tell = tell
        self._began = time.monotonic()
        self.moves = 0
        """How much has happened."""
        self._kinds: dict[str, Kind] = {}
        for kind in (MACHINE, BAREMETAL_MACHINE):
            resource = core.catalog.find(kind.group, kind.version, kind.plural)
            assert resource is not None, kind
            self._kinds[resource.bucket] = kind
            for stored in core.store.bucket(resource.bucket).within(""):
                self._take_in(kind, stored.manifest(), is_new=False)
        core.store.listen(self._observe, *self._kinds)

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def move(self) -> None:
        """Something happened that no machine tells."""
        self.moves += 1

    def groups(self) -> dict[str, int]:
        """How many machines each group has that are Nodes and stay so."""
        found: dict[str, int] = {}
        for life in self.lives.values():
            if life.running is not None and life.deleted is None:
                found[life.group] = found.get(life.group, 0) + 1
        return found

    def legs(self) -> list[Leg]:
        found = []
        for life in self.lives.values():
            who = (life.machine, life.group, life.version)
            if life.made is not None:
                found.append(Leg("comes", *who, life.made_in, life.made, life.host, life.claimed, life.running))
            if life.deleted is not None:
                found.append(Leg("leaves", *who, life.deleted_in, life.deleted, life.host, ended=life.gone, held=life.held))
        return found

    def _observe(self, bucket: str, change: Change) -> None:
        kind, manifest = self._kinds[bucket], change.current.manifest()
        if change.type == DELETED:
            self._gone(kind, manifest)
        else:
            self._take_in(kind, manifest, is_new=change.type == ADDED)

    def _take_in(self, kind: Kind, manifest: Manifest, *, is_new: bool) -> None:
        if kind == MACHINE:
            self._machine(manifest, is_new=is_new)
        elif machine_of(manifest) in self.lives:
            self._host(self.lives[machine_of(manifest)], manifest)

    def _machine(self, manifest: Manifest, *, is_new: bool) -> None:
        name = str(manifest["metadata"]["name"])
        life = self.lives.get(name)
        if life is None:
            life = self.lives[name] = Life(machine=name, group=group_of(manifest)[1], version=str(manifest["spec"].get("version") or ""))
            if is_new:
                life.made, life.made_in = self.now, self.step
                self._say(f"Machine {name} is made, for Kubernetes {life.version}")
            else:
                life.running = 0.0
        if manifest["metadata"].get("deletionTimestamp") and life.deleted is None:
            life.deleted, life.deleted_in = self.now, self.step
            self._say(f"{life.host or name} is drained: Machine {name} is deleted")

    def _host(self, life: Life, manifest: Manifest) -> None:
        host, found = host_of(manifest), stage(manifest)
        if host and not life.host:
            life.host = host
            if life.made is not None:
                life.claimed = self.now
        if found == life.stage:
            return
        life.stage = found
        if life.made is None and life.deleted is None:
            return
        if found == MEMBER and life.running is None:
            life.running = self.now
            self.replaced += 1
            self._say(f"{host} is a Node of Kubernetes {life.version}")
        elif found in (BOOTING, CLEANING):
            self._say(f"{host} {MEANINGS[found]}")
        self.move()

    def _gone(self, kind: Kind, manifest: Manifest) -> None:
        name = machine_of(manifest) if kind == BAREMETAL_MACHINE else str(manifest["metadata"]["name"])
        life = self.lives.get(name)
        if life is not None and life.gone is None and kind == BAREMETAL_MACHINE:
            life.gone = self.now
            self._say(f"{life.host} is free in its pool")
        self.move()

    def _say(self, text: str) -> None:
        self.move()
        self._tell(text)
