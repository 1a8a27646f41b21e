"""The watch over what must never be, at every write of a management cluster: whatever is killed, unplugged or taken away meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import Any

from simulation.estate import Estate, condition

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL, Kind
from slipway.embedded.registry.resources import bucket_of
from slipway.embedded.storage.store import ADDED, DELETED, Change, Store
from slipway.fleet.baremetal.plans.planfacts import PlanFacts, plan_facts

Manifest = dict[str, Any]
COUNTERS = ("available", "allocated", "preparing", "reprovisioning", "unavailable")
_OWNER = "baremetal.alauda.io/owner-baremetalmachine"
_PLANS = "elemental.cattle.io/plan"


class Watchman:
    """Sees what the API server stores before anybody else does."""

    def __init__(self, estate: Estate, *, clusters: int = 1) -> None:
        self._clusters = clusters
        self._world = estate.world
        self.looks = 0
        self._wrong: dict[str, None] = {}
        self.made: Counter[str] = Counter()
        """How many objects of each kind were made."""
        self.owners: dict[str, str] = {}
        """Whose each host is, by its inventory."""
        self.plans: Counter[tuple[str, str]] = Counter()
        """How many plans of each type each BaremetalMachine wrote."""
        self.most_leaving = 0
        """How many Machines were being deleted at one moment, at most."""
        self._gone: set[str] = set()
        self._claims: dict[str, str] = {}
        self._last: dict[str, PlanFacts] = {}
        self.look_at(estate.server.core.store)

    def look_at(self, store: Store) -> None:
        """Of an API server that was started anew, too."""
        for kind, look in {
            MACHINE_INVENTORY: self._inventory,
            MACHINE_INVENTORY_POOL: self._pool,
            BAREMETAL_MACHINE: self._machine,
            MACHINE: self._leaving,
        }.items():
            store.listen(self._listener(kind, look), bucket_of(kind.group, kind.plural))
        store.listen(self._secret, "secrets")

    @property
    def wrong(self) -> list[str]:
        """What was seen that must never be."""
        return list(self._wrong)

    def excuse(self, what: str) -> None:
        """Forget what was seen in such words: whoever did it said so."""
        self._wrong = {told: None for told in self._wrong if what not in told}

    def _tell(self, what: str) -> None:
        self._wrong[what] = None

    def _listener(self, kind: Kind, look: Any) -> Any:
        def listen(resource: str, change: Change) -> None:
            self.looks += 1
            if change.type == ADDED:
                self.made[kind.kind] += 1
            look(change, change.current.manifest())
            self._around()

        return listen

    def _leaving(self, change: Change, manifest: Manifest) -> None:
        if change.current.deleting and change.type != DELETED:
            self._gone.add(change.current.name)
        else:
            self._gone.discard(change.current.name)
        self.most_leaving = max(self.most_leaving, len(self._gone))

    def _inventory(self, change: Change, manifest: Manifest) -> None:
        name, owner = change.current.name, (manifest["metadata"].get("annotations") or {}).get(_OWNER, "")
        before = self.owners.get(name, "")
        if before and owner and before != owner:
            self._tell(f"{name} was taken from {before} for {owner}")
        self.owners[name] = "" if change.type == DELETED else owner
        if owner and list(self.owners.values()).count(owner) > 1:
            self._tell(f"{owner} has two hosts")

    def _pool(self, change: Change, manifest: Manifest) -> None:
        status = manifest.get("status") or {}
        if status.get("total") is not None and sum(status.get(key) or 0 for key in COUNTERS) != status["total"]:
            self._tell(f"the counters of {change.current.name} do not add up: {status}")

    def _machine(self, change: Change, manifest: Manifest) -> None:
        name, status = change.current.name, manifest.get("status") or {}
        has = condition(manifest, "InventoryAllocated").get("status") == "True"
        # One that goes names the host that it had until it is gone; whose a host is stands in the inventory alone.
        has = has and not change.current.deleting and change.type != DELETED
        self._claims[name] = (status.get("machineInventoryRef") or {}).get("name", "") if has else ""
        claimed = self._claims[name]
        if claimed and list(self._claims.values()).count(claimed) > 1:
            self._tell(f"{claimed} is claimed by {[each for each, host in self._claims.items() if host == claimed]}")

    def _secret(self, resource: str, change: Change) -> None:
        if _PLANS.encode() not in change.current.raw or change.type == DELETED:
            return
        manifest, name = change.current.manifest(), change.current.name
        if manifest.get("type") != _PLANS:
            return
        now, before = plan_facts(manifest), self._last.get(name)
        self._last[name] = now
        if before is None or now.checksum == before.checksum or not now.owner:
            return
        if before.in_flight:
            self._tell(f"{name} got the plan {now.type} of {now.owner} while it was at {before.type} of {before.owner}")
        if self.owners.get(name) != now.owner:
            self._tell(f"{name} is of {self.owners.get(name)} and got a plan of {now.owner}")
        self.plans[now.owner, now.type] += 1
        if self.plans[now.owner, now.type] > 1:
            self._tell(f"{now.owner} wrote its plan {now.type} a second time")

    def _around(self) -> None:
        """What can be seen of the hosts themselves."""
        for vip in self._world.segment.doubled:
            self._tell(f"{vip} is doubled")
        for cluster in self._world.clusters.values():
            if len(cluster.etcd.members) > 2 and not cluster.etcd.has_quorum():
                self._tell("etcd has lost its quorum")
        if len(self._world.clusters) > self._clusters:
            self._tell("one more cluster was made")
