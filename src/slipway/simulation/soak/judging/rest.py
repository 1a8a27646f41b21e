"""What must hold where nothing is under way: everything stands as it was asked for, and nothing is left over.  Pure functions."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONFIG,
    MACHINE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_SET,
    SECRET,
)
from slipway.api.cluster.names import DELETING_CONDITION, READY_CONDITION, SECRET_TYPE
from slipway.api.elemental.names import PLAN_SECRET_TYPE
from slipway.fleet.contract.conditions import moment
from slipway.fleet.overview.problems import problems_of
from slipway.fleet.overview.stages import condition, conditions, host_of
from slipway.simulation.soak.judging.invariants import COUNTERS, Broken
from slipway.simulation.soak.judging.snapshot import (
    cluster_of,
    is_control_plane,
    is_going,
    is_true,
    name_of,
    owner_of,
    state_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.simulation.soak.judging.snapshot import Snapshot, Truth


_OWNED = (MACHINE, MACHINE_SET, BAREMETAL_MACHINE, KUBEADM_CONFIG)
"""Kinds of which nothing may be without an owner here."""


class Wanted(NamedTuple):
    """What a cluster was asked to be."""

    planes: int
    workers: int
    version: str
    workers_version: str


class Rest(NamedTuple):
    """Everything that a look at a state of rest needs."""

    snapshot: Snapshot
    truth: Truth
    wanted: Mapping[str, Wanted]
    """By the names of the clusters that there are to be."""


class AtRest(NamedTuple):
    name: str
    text: str
    check: Callable[[Rest], Iterable[Broken]]


def everything_stands(rest: Rest) -> Iterator[Broken]:
    for cluster, wanted in rest.wanted.items():
        found = Counter(
            (is_control_plane(each), str((each.get("spec") or {}).get("version")))
            for each in rest.snapshot.in_cluster(MACHINE, cluster)
            if not is_going(each) and is_true(each, READY_CONDITION)
        )
        expected = Counter({(True, wanted.version): wanted.planes})
        expected[False, wanted.workers_version] += wanted.workers
        if +expected != found:
            yield Broken((cluster,), f"{cluster} has {_counted(found)} Ready, and was asked for {_counted(+expected)}")
        for each in rest.snapshot.in_cluster(BAREMETAL_MACHINE, cluster):
            phase = (each.get("status") or {}).get("phase")
            if phase != names.RUNNING_PHASE:
                yield Broken((cluster, name_of(each)), f"{name_of(each)} is {phase or 'without a phase'}: {_waits_for(each)}")
    for kind in rest.snapshot.kinds():
        for name, each in rest.snapshot.of(kind).items():
            if is_going(each):
                yield Broken((name,), f"{kind.kind} {name} is deleted and does not go")
            elif kind in (CLUSTER, MACHINE) and (name if kind == CLUSTER else cluster_of(each)) not in rest.wanted:
                yield Broken((name,), f"{kind.kind} {name} is of no cluster that there is to be")


def counters_are_the_sums(rest: Rest) -> Iterator[Broken]:
    inventories = rest.snapshot.of(MACHINE_INVENTORY)
    for name, pool in rest.snapshot.of(MACHINE_INVENTORY_POOL).items():
        members = [str(each.get("name")) for each in (pool.get("spec") or {}).get("machineInventories") or ()]
        found = Counter(state_of(inventories[each]).lower() if each in inventories else "unavailable" for each in members)
        status = pool.get("status") or {}
        told = {each: int(status.get(each) or 0) for each in COUNTERS}
        if told != {each: found[each] for each in COUNTERS} or status.get("total") != len(members):
            yield Broken(
                (name,), f"{name} says {_counters(told)} of {status.get('total')}, and its hosts are {_counters(found)} of {len(members)}"
            )
        elif told["preparing"] or told["reprovisioning"]:
            yield Broken((name,), f"{name} is at rest and says {_counters(told)}")


def nothing_is_orphaned(rest: Rest) -> Iterator[Broken]:
    snapshot = rest.snapshot
    uids = {each["metadata"].get("uid") for kind in snapshot.kinds() for each in snapshot.of(kind).values()}
    known = {kind.kind for kind in snapshot.kinds()}
    for kind in snapshot.kinds():
        for name, each in snapshot.of(kind).items():
            owners = each["metadata"].get("ownerReferences") or ()
            lost = [owner for owner in owners if owner.get("kind") in known and owner.get("uid") not in uids]
            if lost:
                yield Broken((name,), f"{kind.kind} {name} is of {lost[0].get('kind')} {lost[0].get('name')}, which is gone")
            elif kind in _OWNED and not owners:
                yield Broken((name,), f"{kind.kind} {name} is of nobody")
    for name, secret in snapshot.of(SECRET).items():
        if secret.get("type") == SECRET_TYPE and snapshot.get(CLUSTER, cluster_of(secret)) is None:
            yield Broken((name,), f"Secret {name} is of the cluster {cluster_of(secret)}, which is gone")
        if secret.get("type") == PLAN_SECRET_TYPE and snapshot.get(MACHINE_INVENTORY, name) is None:
            yield Broken((name,), f"the plan Secret {name} is of a host that is gone")
    for name in snapshot.of(MACHINE_INVENTORY):
        if snapshot.get(SECRET, name) is None:
            yield Broken((name,), f"the host {name} has no plan Secret")


def hosts_are_whose_they_say(rest: Rest) -> Iterator[Broken]:
    used = {host_of(each): name_of(each) for each in rest.snapshot.of(BAREMETAL_MACHINE).values() if host_of(each)}
    for name, inventory in rest.snapshot.of(MACHINE_INVENTORY).items():
        if owner_of(inventory) != used.get(name, ""):
            yield Broken((name,), f"{name} is of {owner_of(inventory) or 'nobody'}, and {used.get(name) or 'nobody'} has it")
        host = rest.truth.hosts.get(name)
        if host is None:
            continue
        if not used.get(name) and host.kubelet:
            yield Broken((name,), f"{name} is nobody's ({state_of(inventory) or 'in no pool'}), and its kubelet runs")
        if used.get(name) and not host.powered:
            yield Broken((name,), f"{name} is of {used[name]}, and is off")


def nodes_are_machines(rest: Rest) -> Iterator[Broken]:
    for cluster in rest.wanted:
        truth = rest.truth.clusters.get(cluster)
        if truth is None:
            yield Broken((cluster,), f"{cluster} has no control plane that runs")
            continue
        hosts = {host_of(each) for each in rest.snapshot.in_cluster(BAREMETAL_MACHINE, cluster)}
        nodes = {names.inventory_of(provider) or node for node, provider in truth.nodes.items()}
        for left in sorted(nodes - hosts):
            yield Broken((cluster, left), f"{cluster} has a Node of {left}, which is not its host")
        for missing in sorted(hosts - nodes):
            yield Broken((cluster, missing), f"{cluster} has no Node of its host {missing}")


def etcd_is_whole(rest: Rest) -> Iterator[Broken]:
    for cluster, wanted in rest.wanted.items():
        truth = rest.truth.clusters.get(cluster)
        if truth is not None and (truth.etcd.voters, truth.etcd.running, truth.etcd.learners) != (wanted.planes, wanted.planes, 0):
            etcd = truth.etcd
            text = f"etcd of {cluster} has {etcd.voters} voters, of which {etcd.running} run, and {etcd.learners} learners"
            yield Broken((cluster,), f"{text}: it should have {wanted.planes}")


AT_REST = (
    AtRest("stands", "every cluster is what was asked for, and nothing is under way", everything_stands),
    AtRest("counters-are-the-sums", "the counters of pools are what their hosts are", counters_are_the_sums),
    AtRest("no-orphan", "no object is left of what is gone", nothing_is_orphaned),
    AtRest("hosts-are-whose", "hosts are whose they say they are, and those of nobody run no kubelet", hosts_are_whose_they_say),
    AtRest("nodes-are-machines", "the Nodes of a cluster are its machines", nodes_are_machines),
    AtRest("etcd-whole", "the members of etcd are the control planes", etcd_is_whole),
)


def broken_at_rest(rest: Rest) -> list[tuple[str, Broken]]:
    return [(each.name, found) for each in AT_REST for found in each.check(rest)]


# From one rest to the next.


def census(snapshot: Snapshot) -> dict[str, int]:
    """How many objects there are of each kind; Secrets by their types."""
    found: Counter[str] = Counter()
    for kind in snapshot.kinds():
        for each in snapshot.of(kind).values():
            found[f"Secret {each.get('type')}" if kind == SECRET else kind.kind] += 1
    return dict(sorted(found.items()))


def grown(before: Mapping[str, int], after: Mapping[str, int], allowed: Mapping[str, int]) -> Iterator[Broken]:
    """Kinds of which there are more objects at a rest of the same size; ``allowed`` is how many more there may be of one."""
    for kind, number in after.items():
        if number > before.get(kind, 0) + allowed.get(kind, 0):
            yield Broken((kind,), f"there were {before.get(kind, 0)} × {kind} and are {number}, in clusters of the same size")


# Always.


def says_what_to_do(snapshot: Snapshot, now: datetime, deadline: timedelta) -> Iterator[Broken]:
    """Who waits for longer than anything may take says what for, and what to do about it."""
    for name, machine in snapshot.of(BAREMETAL_MACHINE).items():
        phase = (machine.get("status") or {}).get("phase")
        since = _last_change(machine)
        if phase == names.RUNNING_PHASE or since is None or now - since <= deadline:
            continue
        told = [each for each in problems_of(BAREMETAL_MACHINE.kind, machine, now) if each.message and each.to_do]
        if not told:
            yield Broken((name,), f"{name} is {phase} for {_spoken(now - since)} and does not say what to do: {_waits_for(machine)}")
    for name, machine in snapshot.of(MACHINE).items():
        since = moment(machine["metadata"].get("deletionTimestamp"))
        if since is None or now - since <= deadline:
            continue
        if not condition(machine, DELETING_CONDITION).get("message"):
            yield Broken((name,), f"{name} is deleted for {_spoken(now - since)} and does not say what it waits for")


def _last_change(manifest: Manifest) -> datetime | None:
    moments = [moment(each.get("lastTransitionTime")) for each in conditions(manifest)]
    moments.append(moment(manifest["metadata"].get("deletionTimestamp")) or moment(manifest["metadata"].get("creationTimestamp")))
    return max((each for each in moments if each is not None), default=None)


def _waits_for(machine: Manifest) -> str:
    told = [each for each in conditions(machine) if each.get("status") == "False" and each.get("type") != READY_CONDITION]
    return "; ".join(f"{each.get('type')}: {each.get('reason')}: {each.get('message')}" for each in told) or "it says nothing"


def _counted(found: Mapping[tuple[bool, str], int]) -> str:
    words = (f"{number} {'control planes' if plane else 'workers'} at {version}" for (plane, version), number in sorted(found.items()))
    return ", ".join(words) or "none"


def _counters(found: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {each}" for each in COUNTERS if (number := found.get(each, 0))) or "none"


def _spoken(time: timedelta) -> str:
    return f"{time.total_seconds():.0f} s"


def utc_now() -> datetime:
    return datetime.now(UTC)
