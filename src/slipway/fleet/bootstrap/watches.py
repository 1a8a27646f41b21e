"""Which changes of other objects concern a KubeadmConfig: those of its Machine or MachinePool, of its Cluster, of the control plane and of
its data Secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONFIG, MACHINE, MACHINE_POOL, SECRET
from slipway.fleet.contract.facts import cluster_from, owner_from
from slipway.fleet.contract.watches import changed, clusters_of_control_plane, controllers, members
from slipway.runtime.controller import Watch
from slipway.runtime.objects import Object, Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache


def config_of(found: Object) -> str:
    """The name of the KubeadmConfig that a Machine or the machines of a MachinePool boot with; empty where it is something else."""
    reference = owner_from(found).config_ref
    if reference is None or (reference.api_group, reference.kind) != (KUBEADM_CONFIG.group, KUBEADM_CONFIG.kind):
        return ""
    return reference.name


def _version(found: Object) -> Any:
    return (found.content().get("spec") or {}).get("version")


owner_changed = changed(owner_from)
cluster_changed = changed(cluster_from)
# One that is made again may have another version; one that was missing was waited for.
control_plane_changed = changed(_version)


async def of_owner(found: Object, cache: Cache) -> Iterable[Request]:
    name = config_of(found)
    return [Request(found.namespace, name)] if name else []


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    """The KubeadmConfigs of all machines of a Cluster."""
    return await _of_cluster_name(found.namespace, found.name, cache)


async def of_control_plane(found: Object, cache: Cache) -> Iterable[Request]:
    clusters = await clusters_of_control_plane(found, cache)
    return [request for cluster in clusters for request in await _of_cluster_name(found.namespace, cluster, cache)]


async def _of_cluster_name(namespace: str, cluster: str, cache: Cache) -> list[Request]:
    owners = [owner for kind in (MACHINE, MACHINE_POOL) for owner in await members(cache, kind, namespace, cluster)]
    return [Request(namespace, name) for name in map(config_of, owners) if name]


of_secret = controllers(KUBEADM_CONFIG)

WATCHES = (
    Watch(KUBEADM_CONFIG),
    Watch(MACHINE, of_owner, owner_changed),
    Watch(MACHINE_POOL, of_owner, owner_changed),
    Watch(CLUSTER, of_cluster, cluster_changed),
    Watch(SECRET, of_secret),
)


def control_planes(kind: Kind) -> Watch:
    """The watch of a kind of control planes, which is known when a Cluster refers to one."""
    return Watch(kind, of_control_plane, control_plane_changed)
