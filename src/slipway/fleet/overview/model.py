"""The clusters, pools and hosts of a management cluster as they stand at a moment: a pure function of its objects.

Everything here can be written as JSON as it is; nothing knows how it is shown.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import mean
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.infrastructure.names import OWNER_MACHINE_ANNOTATION
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY_POOL,
    MACHINE_SET,
)
from slipway.api.elemental import cycles
from slipway.api.kubeadm.addresses import join_host_port
from slipway.fleet.overview.hosts import HostView, PlanView, PoolView, host_view, pool_view
from slipway.fleet.overview.machines import GroupView, MachineView, group_of, group_view, loose_group, machine_view, reported_group
from slipway.fleet.overview.problems import Problem, Ref, problems_of, worst_first
from slipway.fleet.overview.rollout import RolloutView, replacements, rollout
from slipway.fleet.overview.stages import condition, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from slipway.api.elemental.cycles import Cycle
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.objects import Objects

__all__ = [
    "ClusterView",
    "GroupView",
    "HostView",
    "MachineView",
    "Overview",
    "PlanView",
    "PoolView",
    "Problem",
    "Ref",
    "RolloutView",
    "overview",
]


_Place = tuple[str, str]
"""Namespace and name."""


class ClusterView(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    name: str
    phase: str
    endpoint: str
    available: bool | None
    """None while that is not known."""
    control_plane: GroupView | None
    workers: tuple[GroupView, ...]
    rollout: RolloutView | None
    problems: tuple[Problem, ...]
    """Of all of its objects, the worst first."""
    paused: bool = False
    deleting: bool = False
    bare_metal: bool = False
    """Whether its machines are hosts of ours."""

    @property
    def groups(self) -> tuple[GroupView, ...]:
        return (*(() if self.control_plane is None else (self.control_plane,)), *self.workers)


class Overview(msgspec.Struct, frozen=True, rename="camel"):
    clusters: tuple[ClusterView, ...]
    pools: tuple[PoolView, ...]
    hosts: tuple[HostView, ...]
    problems: tuple[Problem, ...]
    """Of what belongs to no cluster."""
    missing: dict[str, str] = {}
    """By kind: why there is nothing of it."""


class _Fleet:
    """The objects by where they are, so that what belongs together is found."""

    def __init__(self, objects: Objects, now: datetime) -> None:
        self._now = now
        self._planes = {place(each): each for each in objects.control_planes}
        self._bases = {place(each): each for each in objects.baremetal_clusters}
        self._infrastructure = {place(each): each for each in objects.baremetal_machines}
        self._secrets = {place(each): each for each in objects.plan_secrets}
        self._deployments, self._sets = _by_cluster(objects.machine_deployments), _by_cluster(objects.machine_sets)
        self._pools = _by_cluster(objects.pools)
        self._past = _past(objects.inventories)
        self._machines: dict[_Place, dict[tuple[str, str], list[Manifest]]] = {}
        """By cluster, and by the kind and name of the group; the oldest first."""
        for cluster, found in _by_cluster(objects.machines).items():
            groups = self._machines[cluster] = defaultdict(list)
            for machine in sorted(found, key=lambda each: str(each["metadata"].get("creationTimestamp") or "")):
                groups[group_of(machine)].append(machine)
        self._views: dict[_Place, MachineView] = {}

    def cluster(self, cluster: Manifest) -> ClusterView:
        at, spec, status = place(cluster), cluster.get("spec") or {}, cluster.get("status") or {}
        control_plane, workers = self._control_plane(cluster), self._workers(cluster)
        groups = [*([control_plane] if control_plane is not None else []), *workers]
        endpoint = spec.get("controlPlaneEndpoint") or {}
        deleting = bool(cluster["metadata"].get("deletionTimestamp"))
        return ClusterView(
            namespace=at[0],
            name=at[1],
            phase=str(status.get("phase") or ""),
            endpoint=_endpoint(str(endpoint.get("host") or ""), str(endpoint.get("port") or "")),
            available={"True": True, "False": False}.get(str(condition(cluster, names.AVAILABLE_CONDITION).get("status"))),
            control_plane=control_plane,
            workers=tuple(workers),
            rollout=None if deleting else rollout(groups, self._now, self._past.get(at)),
            problems=tuple(worst_first(self._problems(cluster, groups))),
            paused=bool(spec.get("paused")) or names.PAUSED_ANNOTATION in (cluster["metadata"].get("annotations") or {}),
            deleting=deleting,
            bare_metal=_is_ours(cluster),
        )

    def host(self, inventory: Manifest) -> HostView:
        """To be asked when the clusters have been looked at, as their Machines are known then."""
        at, annotations = place(inventory), inventory["metadata"].get("annotations") or {}
        return host_view(inventory, self._secrets.get(at), self._views.get((at[0], str(annotations.get(OWNER_MACHINE_ANNOTATION) or ""))))

    def _control_plane(self, cluster: Manifest) -> GroupView | None:
        at, name = place(cluster), _plane_name(cluster)
        plane = self._planes.get((at[0], name))
        if plane is None:
            return reported_group(cluster, self._members(at, KUBEADM_CONTROL_PLANE.kind, name))
        version = str((plane.get("spec") or {}).get("version") or "")
        return group_view(KUBEADM_CONTROL_PLANE.kind, plane, self._members(at, KUBEADM_CONTROL_PLANE.kind, name, version))

    def _workers(self, cluster: Manifest) -> list[GroupView]:
        """MachineDeployments, MachineSets that are nobody's, and then what Machines there are in none of them."""
        at = place(cluster)
        alone = [each for each in self._sets.get(at, ()) if not (each["metadata"].get("labels") or {}).get(names.DEPLOYMENT_NAME_LABEL)]
        owners = [(MACHINE_DEPLOYMENT.kind, each) for each in self._deployments.get(at, ())] + [(MACHINE_SET.kind, each) for each in alone]
        found = []
        for kind, owner in owners:
            template = ((owner.get("spec") or {}).get("template") or {}).get("spec") or {}
            members = self._members(at, kind, place(owner)[1], str(template.get("version") or ""))
            found.append(group_view(kind, owner, members))
        shown = {(KUBEADM_CONTROL_PLANE.kind, _plane_name(cluster)), *((group.kind, group.name) for group in found)}
        left = sorted(set(self._machines.get(at, ())) - shown)
        return [*found, *(loose_group(kind, name, self._members(at, kind, name)) for kind, name in left)]

    def _members(self, cluster: _Place, kind: str, name: str, wanted: str = "") -> list[MachineView]:
        found = []
        for machine in self._machines.get(cluster, {}).get((kind, name), ()):
            reference = (machine.get("spec") or {}).get("infrastructureRef") or {}
            at = (cluster[0], str(reference.get("name") or ""))
            infrastructure = self._infrastructure.get(at) if reference.get("kind") == BAREMETAL_MACHINE.kind else None
            view = self._views[place(machine)] = machine_view(machine, infrastructure, wanted, self._now)
            found.append(view)
        return found

    def _problems(self, cluster: Manifest, groups: Sequence[GroupView]) -> list[Problem]:
        """Of the cluster, of all that belongs to it, and the worst one of each of its machines."""
        at = place(cluster)
        plane = self._planes.get((at[0], _plane_name(cluster)))
        base = self._bases.get((at[0], str(_infrastructure_of(cluster).get("name") or ""))) if _is_ours(cluster) else None
        parts = [(CLUSTER.kind, cluster)]
        parts += [(KUBEADM_CONTROL_PLANE.kind, plane)] if plane is not None else []
        parts += [(MACHINE_DEPLOYMENT.kind, each) for each in self._deployments.get(at, ())]
        parts += [(MACHINE_SET.kind, each) for each in self._sets.get(at, ())]
        found = [problem for kind, part in parts for problem in problems_of(kind, part, self._now)]
        if base is not None:
            # The Cluster repeats what its infrastructure says, in fewer words.
            found = [each for each in found if each.condition != names.INFRASTRUCTURE_READY_CONDITION]
            found += problems_of(BAREMETAL_CLUSTER.kind, base, self._now)
        found += [problem for pool in self._pools.get(at, ()) for problem in problems_of(MACHINE_INVENTORY_POOL.kind, pool, self._now)]
        return found + [machine.problem for group in groups for machine in group.machines if machine.problem is not None]


def overview(objects: Objects, now: datetime) -> Overview:
    """Where everything stands, in the order of the names."""
    fleet = _Fleet(objects, now)
    clusters = tuple(fleet.cluster(each) for each in sorted(objects.clusters, key=place))
    pools = tuple(pool_view(each, now) for each in sorted(objects.pools, key=place))
    hosts = tuple(fleet.host(each) for each in sorted(objects.inventories, key=place))
    known = {(view.namespace, view.name) for view in clusters}
    problems = [problem for pool in pools if (pool.namespace, pool.cluster) not in known for problem in pool.problems]
    problems += [host.problem for host in hosts if host.problem is not None and (host.namespace, host.cluster) not in known]
    return Overview(clusters, pools, hosts, tuple(worst_first(problems)), dict(objects.missing))


def _past(inventories: Sequence[Manifest]) -> dict[_Place, float]:
    """What the replacement of a machine took in the past, in seconds, by cluster: the mean of what hosts remember."""
    records: dict[_Place, list[Sequence[Cycle]]] = defaultdict(list)
    for each in inventories:
        lives = cycles.read(each["metadata"].get("annotations") or {})
        if len(lives) > 1:
            records[place(each)[0], lives[-1].cluster].append(lives)
    return {at: mean(took) for at, found in records.items() if (took := replacements(found))}


def _by_cluster(manifests: Iterable[Manifest]) -> dict[_Place, list[Manifest]]:
    """By the cluster that their spec names, in the order of their names."""
    found: dict[_Place, list[Manifest]] = defaultdict(list)
    for each in sorted(manifests, key=place):
        found[place(each)[0], str((each.get("spec") or {}).get("clusterName") or "")].append(each)
    return found


def _endpoint(host: str, port: str) -> str:
    return join_host_port(host, port) if host and port else host


def _plane_name(cluster: Manifest) -> str:
    return str(((cluster.get("spec") or {}).get("controlPlaneRef") or {}).get("name") or "")


def _infrastructure_of(cluster: Manifest) -> Manifest:
    return (cluster.get("spec") or {}).get("infrastructureRef") or {}


def _is_ours(cluster: Manifest) -> bool:
    return _infrastructure_of(cluster).get("kind") == BAREMETAL_CLUSTER.kind
