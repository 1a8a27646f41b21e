"""The failure domains of a cluster on bare metal: where the hosts of its pools are, by their labels.

A control plane is spread over those that a pool of its machines has hosts in; a worker may name any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
)
from slipway.fleet.baremetal.cluster.lookup import of_cluster_name, of_inventory, of_pool, pools_of
from slipway.fleet.baremetal.rollouts import guards
from slipway.fleet.contract.facts import read
from slipway.fleet.contract.references import changed, control_plane_members
from slipway.runtime.controller import Watch
from slipway.runtime.rbac import rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object, Request

RULES = tuple(
    rule(kind, "list", "watch") for kind in (MACHINE_INVENTORY, MACHINE_INVENTORY_POOL, KUBEADM_CONTROL_PLANE, BAREMETAL_MACHINE_TEMPLATE)
)


def domains(pools: Iterable[MachineInventoryPool], of_planes: Collection[str], located: Mapping[str, str]) -> list[Manifest]:
    """As the contract has them, by name; ``located`` has the domain of each host that is labelled with one."""
    planes: dict[str, bool] = {}
    for pool in pools:
        for member in pool.members:
            if domain := located.get(member.name):
                planes[domain] = planes.get(domain, False) or pool.metadata.get("name") in of_planes
    return [{"name": name, "controlPlane": planes[name]} for name in sorted(planes)]


async def found_domains(cache: Cache, cluster: ClusterFacts) -> list[Manifest]:
    own = [read(each, MachineInventoryPool) for each in await pools_of(cache, cluster.namespace, cluster.name)]
    located = {}
    for name in {member.name for pool in own for member in pool.members}:
        inventory = await cache.get(MACHINE_INVENTORY, name, cluster.namespace)
        if inventory is not None and (domain := _domain(inventory)):
            located[name] = domain
    return domains(own, await _control_plane_pools(cache, cluster), located) if located else []


async def _control_plane_pools(cache: Cache, cluster: ClusterFacts) -> set[str]:
    """Those that control-plane machines are of, and the one that the next will be."""
    machines = await control_plane_members(cache, BAREMETAL_MACHINE, cluster.namespace, cluster.name)
    found = {read(each, BaremetalMachine).spec.machine_inventory_pool_ref.name for each in machines}
    reference = cluster.control_plane_ref
    if reference is None or reference.kind != KUBEADM_CONTROL_PLANE.kind:
        return found
    plane = await cache.get(KUBEADM_CONTROL_PLANE, reference.name, cluster.namespace)
    rollout = guards.rollout(plane.content()) if plane is not None else None
    template = await cache.get(BAREMETAL_MACHINE_TEMPLATE, rollout.template, cluster.namespace) if rollout is not None else None
    return found | set(guards.template_pools([template.content()] if template is not None else []).values())


def _domain(found: Object) -> str:
    return found.metadata.labels.get(names.FAILURE_DOMAIN_LABEL, "")


async def of_plane(found: Object, cache: Cache) -> Iterable[Request]:
    rollout = guards.rollout(found.content())
    return await of_cluster_name(found.namespace, rollout.cluster, cache) if rollout is not None else []


WATCHES = (
    Watch(MACHINE_INVENTORY_POOL, of_pool, changed(lambda found: read(found, MachineInventoryPool).members)),
    Watch(MACHINE_INVENTORY, of_inventory, changed(lambda found: (_domain(found), found.metadata.annotations.get(names.POOL_ANNOTATION)))),
    Watch(KUBEADM_CONTROL_PLANE, of_plane, changed(lambda found: found.metadata.generation)),
)
