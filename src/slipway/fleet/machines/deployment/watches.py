"""Whose changes concern which MachineDeployments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster.core.machinedeployment import MachineDeployment
from slipway.api.cluster.kinds import CLUSTER, MACHINE_DEPLOYMENT, MACHINE_SET
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.fleet.contract import selectors
from slipway.fleet.contract.facts import cluster_from, read
from slipway.fleet.contract.references import changed, clusters_of_control_plane, members
from slipway.fleet.machines.deployment.order import ORDER_ANNOTATION
from slipway.fleet.machines.machineset import watches as of_sets
from slipway.runtime.controller import Watch
from slipway.runtime.objects import Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object


def by_template(found: Object) -> Iterable[str]:
    spec = read(found, MachineDeployment).spec.template.spec
    references = (spec.bootstrap.config_ref, spec.infrastructure_ref)
    return [of_sets.template_key(found.namespace, each) for each in references if each.name]


async def of_set(found: Object, cache: Cache) -> Iterable[Request]:
    """The MachineDeployment that controls a MachineSet; of one that nobody does, those that may adopt it."""
    controller = next((owner for owner in found.metadata.owner_references if owner.controller), None)
    if controller is not None:
        return [Request(found.namespace, controller.name)] if controller.kind == MACHINE_DEPLOYMENT.kind else []
    labels = found.metadata.labels
    deployments = await cache.list(MACHINE_DEPLOYMENT, found.namespace) if labels else []
    wanted = [(one, read(one, MachineDeployment).spec.selector) for one in deployments]
    return [one.request for one, selector in wanted if selector and selectors.matches(selector, labels)]


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    return [one.request for one in await members(cache, MACHINE_DEPLOYMENT, found.namespace, found.name)]


async def of_sibling(found: Object, cache: Cache) -> Iterable[Request]:
    """Those that may wait for this one."""
    cluster = found.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    if not cluster or ORDER_ANNOTATION not in found.metadata.annotations:
        return []
    others = await members(cache, MACHINE_DEPLOYMENT, found.namespace, cluster)
    return [one.request for one in others if one.name != found.name and ORDER_ANNOTATION in one.metadata.annotations]


async def of_template(found: Object, cache: Cache) -> Iterable[Request]:
    cache.add_index(MACHINE_DEPLOYMENT, of_sets.TEMPLATE, by_template)
    key = f"{found.namespace}/{found.kind.group}/{found.kind.kind}/{found.name}"
    return [one.request for one in await cache.list(MACHINE_DEPLOYMENT, index=(of_sets.TEMPLATE, key))]


async def of_control_plane(found: Object, cache: Cache) -> Iterable[Request]:
    clusters = await clusters_of_control_plane(found, cache)
    return [one.request for cluster in clusters for one in await members(cache, MACHINE_DEPLOYMENT, found.namespace, cluster)]


def templates(kind: Kind) -> Watch:
    return of_sets.templates(kind, of_template)


def control_planes(kind: Kind) -> Watch:
    return of_sets.control_planes(kind, of_control_plane)


def _progress(found: Object) -> Any:
    status = found.content().get("status") or {}
    return (
        found.metadata.generation,
        found.metadata.annotations,
        [status.get(key) for key in ("replicas", "availableReplicas", "upToDateReplicas")],
    )


WATCHES = (
    Watch(MACHINE_DEPLOYMENT),
    Watch(MACHINE_SET, of_set),
    Watch(CLUSTER, of_cluster, changed(cluster_from)),
    Watch(MACHINE_DEPLOYMENT, of_sibling, changed(_progress)),
)
