"""Which changes of other objects concern a KubeadmConfig: those of its Machine or MachinePool, of its Cluster and of the control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONFIG, MACHINE, MACHINE_POOL
from slipway.fleet.contract.facts import CLUSTER_NAME_LABEL, cluster_from, owner_from
from slipway.runtime.controller import Watch
from slipway.runtime.objects import Object, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache


def config_of(kind: Kind, manifest: Mapping[str, Any]) -> str:
    """The name of the KubeadmConfig that a Machine or the machines of a MachinePool boot with; empty where it is something else."""
    spec = manifest.get("spec") or {}
    if kind == MACHINE_POOL:
        spec = (spec.get("template") or {}).get("spec") or {}
    reference = (spec.get("bootstrap") or {}).get("configRef") or {}
    if reference.get("kind") != KUBEADM_CONFIG.kind or reference.get("apiGroup") != KUBEADM_CONFIG.group:
        return ""
    return str(reference.get("name") or "")


def owner_changed(old: Object | None, new: Object | None) -> bool:
    """Whether anything changed that bootstrap data depends on.  A Machine changes often, and most of it does not concern us."""
    if old is None or new is None or old is new:
        return new is not None
    before, after = old.content(), new.content()
    return owner_from(new.kind, before) != owner_from(new.kind, after) or config_of(new.kind, before) != config_of(new.kind, after)


def cluster_changed(old: Object | None, new: Object | None) -> bool:
    if old is None or new is None or old is new:
        return new is not None
    before, after = old.content(), new.content()
    return cluster_from(before) != cluster_from(after) or _paused(before) != _paused(after)


def control_plane_changed(old: Object | None, new: Object | None) -> bool:
    """Another version; one that is new to us concerns nobody who has data for it already."""
    if old is None or new is None:
        return False
    return bool(_version(old) != _version(new))


async def of_owner(found: Object, cache: Cache) -> Iterable[Request]:
    name = config_of(found.kind, found.content())
    return [Request(found.namespace, name)] if name else []


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    """The KubeadmConfigs of all machines of a Cluster."""
    return await _of_cluster_name(found.namespace, found.name, cache)


async def of_control_plane(found: Object, cache: Cache) -> Iterable[Request]:
    name = found.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    if name:
        return await _of_cluster_name(found.namespace, name, cache)
    # Nothing obliges a control plane to have the label.
    clusters = [
        cluster.name
        for cluster in await cache.list(CLUSTER, found.namespace)
        if (reference := cluster_from(cluster.content()).control_plane_ref) is not None
        and (reference.api_group, reference.kind, reference.name) == (found.kind.group, found.kind.kind, found.name)
    ]
    return [request for cluster in clusters for request in await _of_cluster_name(found.namespace, cluster, cache)]


async def _of_cluster_name(namespace: str, cluster: str, cache: Cache) -> list[Request]:
    owners = [
        *await cache.list(MACHINE, namespace, labels={CLUSTER_NAME_LABEL: cluster}),
        *await cache.list(MACHINE_POOL, namespace, labels={CLUSTER_NAME_LABEL: cluster}),
    ]
    names = (config_of(owner.kind, owner.content()) for owner in owners)
    return [Request(namespace, name) for name in names if name]


def _paused(cluster: Mapping[str, Any]) -> bool:
    return bool((cluster.get("spec") or {}).get("paused"))


def _version(found: Object) -> Any:
    return (found.content().get("spec") or {}).get("version")


WATCHES = (
    Watch(KUBEADM_CONFIG),
    Watch(MACHINE, of_owner, owner_changed),
    Watch(MACHINE_POOL, of_owner, owner_changed),
    Watch(CLUSTER, of_cluster, cluster_changed),
)


def control_planes(kind: Kind) -> Watch:
    """The watch of a kind of control planes, which is known when a Cluster refers to one."""
    return Watch(kind, of_control_plane, control_plane_changed)
