"""Whose changes concern which MachineSets, and how Machines and clones are found from their owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.core.machineset import MachineSet
from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from slipway.api.cluster.names import DEPLOYMENT_NAME_LABEL, SKIP_PREFLIGHT_CHECKS_ANNOTATION, TEMPLATE_SUFFIX
from slipway.fleet.contract import selectors
from slipway.fleet.contract.facts import cluster_from, read
from slipway.fleet.contract.references import changed, clusters_of_control_plane, members
from slipway.fleet.machines.machineset.preflight import control_plane_from
from slipway.runtime.controller import Watch
from slipway.runtime.objects import Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any

    from slipway.api.cluster.kinds import Kind
    from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

    Mapping = Callable[[Object, Cache], Awaitable[Iterable[Request]]]

CONTROLLER = "controller"
"""The index of objects by the uid of their controller; those without one are under their namespace."""
TEMPLATE = "template"
"""The index of MachineSets by the templates that they refer to."""


def by_controller(found: Object) -> Iterable[str]:
    return [next((owner.uid for owner in found.metadata.owner_references if owner.controller), f"namespace/{found.namespace}")]


def template_key(namespace: str, reference: Reference) -> str:
    return f"{namespace}/{reference.api_group}/{reference.kind}/{reference.name}"


def by_template(found: Object) -> Iterable[str]:
    spec = read(found, MachineSet).spec.template.spec
    return [template_key(found.namespace, each) for each in (spec.bootstrap.config_ref, spec.infrastructure_ref) if each.name]


async def controlled(cache: Cache, kind: Kind, uid: str) -> list[Object]:
    cache.add_index(kind, CONTROLLER, by_controller)
    return await cache.list(kind, index=(CONTROLLER, uid))


async def uncontrolled(cache: Cache, kind: Kind, namespace: str) -> list[Object]:
    cache.add_index(kind, CONTROLLER, by_controller)
    return await cache.list(kind, index=(CONTROLLER, f"namespace/{namespace}"))


async def of_machine(found: Object, cache: Cache) -> Iterable[Request]:
    """The MachineSet that controls a Machine; of one that nobody does, those that may adopt it."""
    controller = next((owner for owner in found.metadata.owner_references if owner.controller), None)
    if controller is not None:
        return [Request(found.namespace, controller.name)] if controller.kind == MACHINE_SET.kind else []
    labels = found.metadata.labels
    sets = await cache.list(MACHINE_SET, found.namespace) if labels else []
    return [one.request for one in sets if selectors.matches(read(one, MachineSet).spec.selector, labels)]


async def of_deployment(found: Object, cache: Cache) -> Iterable[Request]:
    sets = await cache.list(MACHINE_SET, found.namespace, labels={DEPLOYMENT_NAME_LABEL: found.name})
    return [one.request for one in sets]


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    return [one.request for one in await members(cache, MACHINE_SET, found.namespace, found.name)]


async def of_template(found: Object, cache: Cache) -> Iterable[Request]:
    cache.add_index(MACHINE_SET, TEMPLATE, by_template)
    key = f"{found.namespace}/{found.kind.group}/{found.kind.kind}/{found.name}"
    return [one.request for one in await cache.list(MACHINE_SET, index=(TEMPLATE, key))]


async def of_control_plane(found: Object, cache: Cache) -> Iterable[Request]:
    clusters = await clusters_of_control_plane(found, cache)
    return [one.request for cluster in clusters for one in await members(cache, MACHINE_SET, found.namespace, cluster)]


def _skips(found: Object) -> Any:
    """All that MachineSets read of a template while they make no Machine of it."""
    return found.metadata.annotations.get(SKIP_PREFLIGHT_CHECKS_ANNOTATION)


def _versions(found: Object) -> Any:
    return control_plane_from(found.content())


_template_changed, _control_plane_changed = changed(_skips), changed(_versions)


def templates(kind: Kind, requests: Mapping = of_template) -> Watch:
    """The watch of a kind of templates, or of what is cloned from them: clones change all the time, which concerns no MachineSet."""
    is_template = kind.kind.endswith(TEMPLATE_SUFFIX)
    return Watch(kind, requests, _template_changed if is_template else lambda old, new: False)


def control_planes(kind: Kind, requests: Mapping = of_control_plane) -> Watch:
    """The watch of a kind of control planes, which is known when a Cluster refers to one."""
    return Watch(kind, requests, _control_plane_changed)


def _deployment_facts(found: Object) -> Any:
    return found.metadata.generation, found.metadata.annotations


WATCHES = (
    Watch(MACHINE_SET),
    Watch(MACHINE, of_machine),
    Watch(MACHINE_DEPLOYMENT, of_deployment, changed(_deployment_facts)),
    Watch(CLUSTER, of_cluster, changed(cluster_from)),
)
