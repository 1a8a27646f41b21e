"""What a Machine waits for, and the BaremetalMachine under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names as core
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import MACHINE_INVENTORY_POOL
from slipway.fleet.overview.hosts import pool_view
from slipway.fleet.overview.problems import Ref
from slipway.fleet.overview.stages import condition, host_of
from slipway.fleet.overview.waiting import hosts, sentences
from slipway.fleet.overview.waiting.causes import cause
from slipway.fleet.overview.waiting.world import Link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.waiting.causes import Cause
    from slipway.fleet.overview.waiting.world import World

NOT_TRUE = ("False", "Unknown")
# In the order in which a machine gets there.
_OF_BAREMETAL_MACHINE = (
    names.INVENTORY_ALLOCATED_CONDITION,
    names.BOOTSTRAP_READY_CONDITION,
    names.IMAGE_RESOLVED_CONDITION,
    names.PLAN_APPLIED_CONDITION,
    names.NODE_JOINED_CONDITION,
)
_OF_NODE = (
    core.NODE_HEALTHY_CONDITION,
    "NodeKubeadmLabelsAndTaintsSet",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
    core.OWNER_REMEDIATED_CONDITION,
    core.HEALTH_CHECK_SUCCEEDED_CONDITION,
    core.READY_CONDITION,
)
# What a BaremetalMachine repeats of its cluster's infrastructure.
_OF_CLUSTER = frozenset(
    (
        names.VIP_INVALID_REASON,
        names.VIP_IS_HOST_ADDRESS_REASON,
        names.VRID_IN_USE_REASON,
        names.VIP_PEERS_UNKNOWN_REASON,
        names.WAITING_FOR_CLUSTER_INFRASTRUCTURE_REASON,
    )
)
_ADDRESS = (
    "Look whether the virtual address is held: kubectl -n kube-system get lease alive, ipvsadm -Ln, and the log of keepalived's static Pod."
)
_SURGE = "Set maxSurge to 0: a pool of hosts has none to make one more machine from. To replace more at a time, raise maxUnavailable."
_COMES_BACK = "Wait: a host of the pool is being cleaned, and comes back."


def machine(world: World, ref: Ref, content: Manifest) -> Iterator[Link]:
    below = world.baremetal_machine(content)
    if core.PAUSED_ANNOTATION in (content["metadata"].get("annotations") or {}):
        yield world.paused(ref, content)
        return
    if content["metadata"].get("deletionTimestamp"):
        deleting = condition(content, core.DELETING_CONDITION) or {"type": core.DELETING_CONDITION}
        if below is not None and deleting.get("reason") == core.WAITING_FOR_INFRASTRUCTURE_DELETION_REASON:
            yield Link(ref, f"The Machine {ref.name} is being deleted, and waits for its host.")
            yield from _under(world, below)
        else:
            yield world.caused(ref, content, deleting)
        return
    bootstrap = condition(content, core.BOOTSTRAP_CONFIG_READY_CONDITION)
    infrastructure = condition(content, core.INFRASTRUCTURE_READY_CONDITION)
    if bootstrap.get("status") in NOT_TRUE:
        yield world.caused(ref, content, bootstrap)
    elif not ((content.get("status") or {}).get("nodeRef") or {}).get("name") or infrastructure.get("status") in NOT_TRUE:
        yield from _on_its_way(world, ref, content, below, infrastructure)
    else:
        wrong = next((each for name in _OF_NODE if (each := condition(content, name)).get("status") in NOT_TRUE), None)
        yield world.caused(ref, content, wrong) if wrong is not None else _node(world, ref, content, below)


def _on_its_way(world: World, ref: Ref, content: Manifest, below: Ref | None, infrastructure: Manifest) -> Iterator[Link]:
    if below is not None:
        yield Link(ref, f"The Machine {ref.name}, to be {(content.get('spec') or {}).get('version')}, waits for its host.")
        yield from _under(world, below)
    elif infrastructure.get("status") in NOT_TRUE:
        yield world.caused(ref, content, infrastructure)
    else:
        yield world.caused(ref, content, condition(content, core.NODE_HEALTHY_CONDITION) or {"type": core.NODE_HEALTHY_CONDITION})


def _node(world: World, ref: Ref, content: Manifest, below: Ref | None) -> Link:
    spec, status = content.get("spec") or {}, content.get("status") or {}
    infrastructure = None if below is None else world.get(below)
    host = host_of(infrastructure) if infrastructure is not None else ""
    place = f" on the host {host}" if host else ""
    well = f"The Machine {ref.name} is well: the Node {(status.get('nodeRef') or {}).get('name')} at {spec.get('version')}{place}."
    current = condition(content, core.UP_TO_DATE_CONDITION)
    if current.get("status") == "False":
        why = sentences.one_line(str(current.get("message") or ""))
        return Link(ref, f"{well} It is to be replaced{f' ({why})' if why else ''}, and its turn has not come.")
    return Link(ref, well, well=True)


def _under(world: World, below: Ref) -> Iterator[Link]:
    content = world.get(below)
    if content is not None:
        yield from baremetal_machine(world, below, content)


def baremetal_machine(world: World, ref: Ref, content: Manifest) -> Iterator[Link]:
    host = world.host(ref, content)
    if content["metadata"].get("deletionTimestamp"):
        cleaned = condition(content, names.HOST_CLEANED_CONDITION)
        yield world.caused(ref, content, cleaned) if cleaned else Link(ref, f"The BaremetalMachine {ref.name} is being deleted.")
        yield from _host(world, host)
        return
    wrong = next((each for name in _OF_BAREMETAL_MACHINE if (each := condition(content, name)).get("status") in NOT_TRUE), None)
    if wrong is not None:
        yield from _not_there_yet(world, ref, content, wrong, host)
        return
    phase = (content.get("status") or {}).get("phase") or names.PENDING_PHASE
    place = f"on the host {host.name}" if host is not None else "its controller has not said more yet"
    yield Link(ref, f"The BaremetalMachine {ref.name} is {phase}, {place}.", well=phase == names.RUNNING_PHASE)


def _not_there_yet(world: World, ref: Ref, content: Manifest, wrong: Manifest, host: Ref | None) -> Iterator[Link]:
    link, reason = world.caused(ref, content, wrong), str(wrong.get("reason") or "")
    if reason == names.POOL_EXHAUSTED_REASON:
        yield from _exhausted(world, link, cause(ref.kind, content, wrong), content)
        return
    if reason == names.JOIN_DEADLINE_EXCEEDED_REASON and core.CONTROL_PLANE_LABEL in (content["metadata"].get("labels") or {}):
        link = link._replace(to_do=(_ADDRESS,))
    yield link
    base = world.baremetal_cluster(ref, content) if reason in _OF_CLUSTER else None
    if base is not None:
        yield from infrastructure_troubles(world, base)
    elif wrong.get("type") in (names.PLAN_APPLIED_CONDITION, names.NODE_JOINED_CONDITION):
        yield from _host(world, host)


def _exhausted(world: World, link: Link, why: Cause, content: Manifest) -> Iterator[Link]:
    """A host that is being cleaned comes back by itself; for a surge there is none to come."""
    name = str(((content.get("spec") or {}).get("machineInventoryPoolRef") or {}).get("name") or "")
    pool = Ref(MACHINE_INVENTORY_POOL.kind, link.ref.namespace, name)
    found = world.get(pool)
    counted = None if found is None else pool_view(found, world.now)
    if counted is not None and counted.preparing:
        why = why._replace(patience=None, to_do=_COMES_BACK)
    elif world.surges(link.ref, content):
        why = why._replace(to_do=_SURGE)
    yield link._replace(cause=why)
    if counted is not None:
        yield Link(pool, sentences.pool(counted))


def _host(world: World, host: Ref | None) -> Iterator[Link]:
    content = None if host is None else world.get(host)
    if host is not None and content is not None:
        yield from hosts.host(world, host, content)


def infrastructure_troubles(world: World, ref: Ref) -> Iterator[Link]:
    """What a BaremetalCluster says is not well."""
    content = world.get(ref)
    told = [
        condition(content or {}, each)
        for each in (names.ENDPOINT_READY_CONDITION, names.VIP_READY_CONDITION, names.ROLLOUT_GUARDED_CONDITION)
    ]
    yield from (world.caused(ref, content, each) for each in told if content is not None and each.get("status") in NOT_TRUE)
