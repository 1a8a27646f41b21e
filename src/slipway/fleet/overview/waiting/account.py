"""The whole chain of an object, whichever kind it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_SET,
)
from slipway.fleet.overview.problems import Ref
from slipway.fleet.overview.stages import condition
from slipway.fleet.overview.waiting import clusters, hosts, machines
from slipway.fleet.overview.waiting.world import Link, ref, space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.waiting.world import World


def account(world: World, of: Ref) -> list[Link]:
    """From the object to where what it waits for ends; empty where there is no such object."""
    content = world.get(of)
    return [] if content is None else list(_WALKS[of.kind](world, of, content))


def _host(world: World, of: Ref, content: Manifest) -> Iterator[Link]:
    """Where a machine has the host and is not well, that is the answer."""
    name = str((content["metadata"].get("annotations") or {}).get(names.OWNER_BAREMETAL_MACHINE_ANNOTATION) or "")
    above = Ref(BAREMETAL_MACHINE.kind, of.namespace, name)
    machine = world.get(above)
    if machine is None or (machine.get("status") or {}).get("phase") == names.RUNNING_PHASE:
        yield from hosts.host(world, of, content)
        return
    yield Link(of, f"The host {of.name} is of the BaremetalMachine {name}.")
    yield from machines.baremetal_machine(world, above, machine)


def _pool(world: World, of: Ref, content: Manifest) -> Iterator[Link]:
    """The pool, and who waits for a host of it."""
    waiting = [
        each
        for each in world.objects.baremetal_machines
        if space(each) == of.namespace
        and ((each.get("spec") or {}).get("machineInventoryPoolRef") or {}).get("name") == of.name
        and condition(each, names.INVENTORY_ALLOCATED_CONDITION).get("reason") == names.POOL_EXHAUSTED_REASON
    ]
    links = list(hosts.pool(world, of, content))
    yield from (link._replace(well=link.well and not waiting) for link in links)
    if waiting:
        above = ref(BAREMETAL_MACHINE.kind, waiting[0])
        yield from (link for link in machines.baremetal_machine(world, above, waiting[0]) if link.ref != of)


_WALKS: dict[str, Callable[[World, Ref, Manifest], Iterator[Link]]] = {
    CLUSTER.kind: clusters.cluster,
    KUBEADM_CONTROL_PLANE.kind: clusters.group,
    MACHINE_DEPLOYMENT.kind: clusters.group,
    MACHINE_SET.kind: clusters.machine_set,
    MACHINE.kind: machines.machine,
    BAREMETAL_CLUSTER.kind: clusters.baremetal_cluster,
    BAREMETAL_MACHINE.kind: machines.baremetal_machine,
    MACHINE_INVENTORY.kind: _host,
    MACHINE_INVENTORY_POOL.kind: _pool,
}
