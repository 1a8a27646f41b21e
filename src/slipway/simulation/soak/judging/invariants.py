"""What must hold after every write, whatever goes wrong meanwhile: pure functions of what was written and of all that there is then.

What somebody did on purpose, as the operator who deletes a Machine or the hand that edits a plan, is excused by name.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    SECRET,
)
from slipway.api.cluster.names import AVAILABLE_CONDITION
from slipway.api.elemental import plan as plans
from slipway.api.elemental.names import PLAN_SECRET_TYPE
from slipway.fleet.baremetal.hosts.host import QUARANTINE_ANNOTATION
from slipway.fleet.baremetal.machine.decision import UNTOUCHED
from slipway.fleet.baremetal.machine.run import FORCE_ANNOTATION
from slipway.fleet.baremetal.plans.planfacts import plan_facts
from slipway.simulation.soak.judging.snapshot import (
    annotations_of,
    cluster_of,
    deployment_of,
    has_node,
    host_claimed,
    is_control_plane,
    is_going,
    is_true,
    name_of,
    owner_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.baremetal.plans.planfacts import PlanFacts
    from slipway.simulation.soak.judging.snapshot import Snapshot, Truth

COUNTERS = ("available", "allocated", "preparing", "reprovisioning", "unavailable")


class Broken(NamedTuple):
    """One thing that must not be, and is."""

    objects: tuple[str, ...]
    text: str


class Step(NamedTuple):
    """One write: an object before and after it, and everything as it is after it."""

    snapshot: Snapshot
    kind: Kind
    before: Manifest | None
    after: Manifest | None
    deleted_by_hand: Collection[str] = ()
    """Machines that the operator deleted."""
    edited_by_hand: Collection[str] = ()
    """Hosts whose plan Secret somebody edited or deleted."""

    @property
    def concerned(self) -> Manifest:
        found = self.after if self.after is not None else self.before
        assert found is not None
        return found


class Invariant(NamedTuple):
    name: str
    text: str
    """What holds."""
    kinds: tuple[Kind, ...]
    """Whose writes could break it."""
    check: Callable[[Step], Iterable[Broken]]


# Claims.


def claimed_once(step: Step) -> Iterator[Broken]:
    claims = Counter(host for each in step.snapshot.of(BAREMETAL_MACHINE).values() if (host := host_claimed(each)))
    for host, number in claims.items():
        if number > 1:
            who = sorted(name_of(each) for each in step.snapshot.of(BAREMETAL_MACHINE).values() if host_claimed(each) == host)
            yield Broken((host, *who), f"{host} is claimed by {', '.join(who)}")
    owners = Counter(owner for each in step.snapshot.of(MACHINE_INVENTORY).values() if (owner := owner_of(each)))
    for owner, number in owners.items():
        if number > 1:
            hosts = sorted(name_of(each) for each in step.snapshot.of(MACHINE_INVENTORY).values() if owner_of(each) == owner)
            yield Broken((owner, *hosts), f"{owner} has {number} hosts: {', '.join(hosts)}")


def never_taken_away(step: Step) -> Iterator[Broken]:
    if step.before is None or step.after is None:
        return
    before, after = owner_of(step.before), owner_of(step.after)
    if before and after and before != after:
        yield Broken((name_of(step.after), before, after), f"{name_of(step.after)} was taken from {before} for {after}")


def claims_agree(step: Step) -> Iterator[Broken]:
    """Both ways: who says that it has a host is whom the host says it is of, and the other way round."""
    snapshot = step.snapshot
    machines = [step.concerned] if step.kind == BAREMETAL_MACHINE else list(snapshot.of(BAREMETAL_MACHINE).values())
    for machine in machines:
        name, host = name_of(machine), host_claimed(machine)
        inventory = snapshot.get(MACHINE_INVENTORY, host) if host else None
        if snapshot.get(BAREMETAL_MACHINE, name) is not None and inventory is not None and owner_of(inventory) != name:
            yield Broken((name, host), f"{name} says that it has {host}, which is of {owner_of(inventory) or 'nobody'}")
    for inventory in [step.concerned] if step.kind == MACHINE_INVENTORY else snapshot.of(MACHINE_INVENTORY).values():
        owner = owner_of(inventory)
        if not owner or snapshot.get(MACHINE_INVENTORY, name_of(inventory)) is None:
            continue
        found = snapshot.get(BAREMETAL_MACHINE, owner)
        if found is None:
            yield Broken((name_of(inventory), owner), f"{name_of(inventory)} is of {owner}, which is not there")
            continue
        cluster = annotations_of(inventory).get(names.OWNER_CLUSTER_ANNOTATION, "")
        if cluster != cluster_of(found):
            yield Broken(
                (name_of(inventory), owner), f"{name_of(inventory)} is of the cluster {cluster}, and {owner} of {cluster_of(found)}"
            )


# Pools.


def counters_add_up(step: Step) -> Iterator[Broken]:
    if step.after is None:
        return
    status = step.after.get("status") or {}
    numbers = [status.get(each) or 0 for each in COUNTERS]
    if status.get("total") is not None and sum(numbers) != status["total"]:
        told = " + ".join(f"{number} {each}" for each, number in zip(COUNTERS, numbers, strict=True))
        yield Broken((name_of(step.after),), f"the counters of {name_of(step.after)} do not add up: {told} are not {status['total']}")


# Plans.


def plans_are_the_owners(step: Step) -> Iterator[Broken]:
    """A plan is written for whom the host is of, never over one that the host works on."""
    if step.before is None or step.after is None or step.after.get("type") != PLAN_SECRET_TYPE:
        return
    host, now, before = name_of(step.after), plan_facts(step.after), plan_facts(step.before)
    if now.checksum == before.checksum or not now.owner or host in step.edited_by_hand:
        return
    inventory = step.snapshot.get(MACHINE_INVENTORY, host)
    if inventory is not None and now.type == names.PLAN_CLEAN and annotations_of(inventory).get(QUARANTINE_ANNOTATION) == now.owner:
        # It was given up, whatever it was at, and comes back by this plan alone.
        return
    if before.in_flight and not _may_be_cleaned(step, before, now):
        yield Broken((host, now.owner), f"{host} got the plan {now.type} of {now.owner} while it was at {before.type} of {before.owner}")
    if inventory is not None and owner_of(inventory) != now.owner:
        yield Broken((host, now.owner), f"{host} is of {owner_of(inventory) or 'nobody'} and got a plan of {now.owner}")


def _may_be_cleaned(step: Step, before: PlanFacts, now: PlanFacts) -> bool:
    """Whether a host gets its clean plan over one that it does not work on: it is given up by the operator, or has not begun for long.

    The plan of a Secret that was made anew has nothing in it, and need not be waited for.
    """
    machine = step.snapshot.get(BAREMETAL_MACHINE, now.owner)
    if now.type != names.PLAN_CLEAN or machine is None or not is_going(machine):
        return False
    late = now.written is not None and before.written is not None and now.written - before.written >= UNTOUCHED
    nothing = before.checksum == plans.checksum(plans.EMPTY)
    return FORCE_ANNOTATION in annotations_of(machine) or (before.outcome == "pending" and (late or nothing))


# Rollouts.


def floor_is_kept(step: Step) -> Iterator[Broken]:
    """Of a MachineDeployment no Machine that is available is deleted where too few would be left."""
    machine = step.after
    if machine is None or step.before is None or is_going(step.before) or not is_going(machine):
        return
    name, deployment = deployment_of(machine), step.snapshot.get(MACHINE_DEPLOYMENT, deployment_of(machine))
    if not name or deployment is None or is_going(deployment) or _cluster_goes(step, machine) or name_of(machine) in step.deleted_by_hand:
        return
    if not is_true(step.before, AVAILABLE_CONDITION):
        return
    left = sum(is_true(each, AVAILABLE_CONDITION) and not is_going(each) for each in _machines_of(step, name))
    replicas, budget = _replicas(deployment), _budget(deployment)
    floor = replicas - budget.get("maxUnavailable", 0)
    if left < floor:
        text = f"{name_of(machine)} of {name} is deleted while {left} others are available: at least {floor} of {replicas} must be"
        yield Broken((name, name_of(machine)), text)


def ceiling_is_kept(step: Step) -> Iterator[Broken]:
    """Of a MachineDeployment no Machine is made where there would be more than its replicas and its surge."""
    machine = step.after
    if machine is None or step.before is not None:
        return
    name, deployment = deployment_of(machine), step.snapshot.get(MACHINE_DEPLOYMENT, deployment_of(machine))
    if not name or deployment is None:
        return
    number = sum(not is_going(each) for each in _machines_of(step, name))
    replicas, surge = _replicas(deployment), _budget(deployment).get("maxSurge", 0)
    if number > replicas + surge:
        text = f"{name_of(machine)} makes {number} Machines of {name}, whose replicas are {replicas} and whose maxSurge is {surge}"
        yield Broken((name, name_of(machine)), text)


def one_control_plane_at_a_time(step: Step) -> Iterator[Broken]:
    """A control plane's Machine is made or deleted only while all others of it stand."""
    machine = step.after
    if machine is None or not is_control_plane(machine) or _cluster_goes(step, machine) or name_of(machine) in step.deleted_by_hand:
        return
    made = step.before is None
    if not made and (step.before is None or is_going(step.before) or not is_going(machine)):
        return
    others = [
        each
        for each in step.snapshot.in_cluster(MACHINE, cluster_of(machine))
        if is_control_plane(each) and name_of(each) != name_of(machine)
    ]
    waiting = sorted(
        f"{name_of(each)} ({'goes' if is_going(each) else 'is no Node yet'})" for each in others if is_going(each) or not has_node(each)
    )
    if waiting:
        what = "made" if made else "deleted"
        text = f"{name_of(machine)} is {what} while another one of its control plane does not stand: {', '.join(waiting)}"
        yield Broken((cluster_of(machine), name_of(machine)), text)


INVARIANTS = (
    Invariant(
        "claimed-once", "a host is claimed by one machine, and a machine has one host", (MACHINE_INVENTORY, BAREMETAL_MACHINE), claimed_once
    ),
    Invariant("never-taken-away", "a host goes to another machine only once it was released", (MACHINE_INVENTORY,), never_taken_away),
    Invariant("claims-agree", "hosts and machines agree whose a host is", (MACHINE_INVENTORY, BAREMETAL_MACHINE), claims_agree),
    Invariant("counters-add-up", "the five counters of a pool are its total", (MACHINE_INVENTORY_POOL,), counters_add_up),
    Invariant(
        "plans-are-the-owners", "a plan is its host's owner's, and is never written over one in flight", (SECRET,), plans_are_the_owners
    ),
    Invariant("floor", "a MachineDeployment keeps replicas less maxUnavailable available", (MACHINE,), floor_is_kept),
    Invariant("ceiling", "a MachineDeployment has at most replicas and maxSurge Machines", (MACHINE,), ceiling_is_kept),
    Invariant("one-control-plane", "one Machine of a control plane is made or deleted at a time", (MACHINE,), one_control_plane_at_a_time),
)


# What is true of hosts, looked at as often as anything changes there.


def quorum_is_kept(truth: Truth) -> Iterator[Broken]:
    """More than half of the voters run; those whose power the soak has cut would, too."""
    for cluster, found in truth.clusters.items():
        etcd = found.etcd
        if etcd.voters and etcd.running + etcd.unplugged <= etcd.voters // 2:
            yield Broken((cluster,), f"etcd of {cluster} has lost its quorum: {etcd.running} of {etcd.voters} voters run")


def address_is_held_once(truth: Truth) -> Iterator[Broken]:
    if truth.doubled:
        yield Broken((), f"a virtual address was on two hosts, {truth.doubled} times")


TRUTHS: tuple[tuple[str, str, Callable[[Truth], Iterable[Broken]]], ...] = (
    ("quorum", "etcd keeps its quorum, but for hosts whose power was cut", quorum_is_kept),
    ("address-once", "a virtual address is on one host", address_is_held_once),
)


def _machines_of(step: Step, deployment: str) -> list[Manifest]:
    return [each for each in step.snapshot.of(MACHINE).values() if deployment_of(each) == deployment]


def _cluster_goes(step: Step, machine: Manifest) -> bool:
    cluster = step.snapshot.get(CLUSTER, cluster_of(machine))
    if cluster is None or is_going(cluster):
        return True
    return any(is_going(each) for each in step.snapshot.in_cluster(KUBEADM_CONTROL_PLANE, cluster_of(machine)))


def _replicas(deployment: Manifest) -> int:
    return int((deployment.get("spec") or {}).get("replicas") or 0)


def _budget(deployment: Manifest) -> dict[str, int]:
    rollout = (deployment.get("spec") or {}).get("rollout") or {}
    found = (rollout.get("strategy") or {}).get("rollingUpdate") or {}
    return {key: int(found.get(key) or 0) for key in ("maxSurge", "maxUnavailable")}
