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
    MACHINE_SET,
)
from slipway.api.elemental import cycles
from slipway.fleet.overview.hosts import HostView, PlanView, PoolView, host_view, pool_view
from slipway.fleet.overview.machines import GroupView, MachineView, group_of, group_view, loose_group, machine_view, reported_group
from slipway.fleet.overview.problems import Problem, Ref, problems_of, worst_first
from slipway.fleet.overview.rollout import RolloutView, replacements, rollout
from slipway.fleet.overview.stages import condition

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


class _Machines:
    """The Machines with what belongs to them, found by name."""

    def __init__(self, objects: Objects, now: datetime) -> None:
        self._now = now
        self._infrastructure = {_place(each): each for each in objects.baremetal_machines}
        self._by_group: dict[tuple[str, str, str, str], list[Manifest]] = defaultdict(list)
        self.by_cluster: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        self.views: dict[tuple[str, str], MachineView] = {}
        for machine in sorted(objects.machines, key=lambda each: str(each["metadata"].get("creationTimestamp") or "")):
            namespace, cluster, group = _space(machine), str((machine.get("spec") or {}).get("clusterName") or ""), group_of(machine)
            self._by_group[(namespace, cluster, *group)].append(machine)
            self.by_cluster[namespace, cluster].add(group)

    def of(self, cluster: tuple[str, str], kind: str, name: str, wanted: str) -> list[MachineView]:
        """Those of a group of a cluster, the oldest first."""
        namespace, found = cluster[0], []
        for machine in self._by_group.get((*cluster, kind, name), ()):
            reference = (machine.get("spec") or {}).get("infrastructureRef") or {}
            place = (namespace, str(reference.get("name") or ""))
            infrastructure = self._infrastructure.get(place) if reference.get("kind") == BAREMETAL_MACHINE.kind else None
            view = machine_view(machine, infrastructure, wanted, self._now)
            self.views[namespace, view.name] = view
            found.append(view)
        return found


def overview(objects: Objects, now: datetime) -> Overview:
    """Where everything stands, in the order of the names."""
    machines = _Machines(objects, now)
    deployments, sets = _by_cluster(objects.machine_deployments), _by_cluster(objects.machine_sets)
    planes = {_place(each): each for each in objects.control_planes}
    infrastructure = {_place(each): each for each in objects.baremetal_clusters}
    past = _past(objects.inventories)
    clusters = []
    for each in sorted(objects.clusters, key=_place):
        place = _place(each)
        own = deployments.get(place, ()), sets.get(place, ())
        clusters.append(_cluster(each, planes, infrastructure, *own, machines, past.get(place), now))
    known = {(view.namespace, view.name) for view in clusters}
    secrets = {_place(each): each for each in objects.plan_secrets}
    pools = tuple(pool_view(each, now) for each in sorted(objects.pools, key=_place))
    hosts = tuple(_host(each, secrets, machines) for each in sorted(objects.inventories, key=_place))
    problems = [problem for pool in pools if (pool.namespace, pool.cluster) not in known for problem in pool.problems]
    problems += [host.problem for host in hosts if host.problem is not None and (host.namespace, host.cluster) not in known]
    own_pools: dict[tuple[str, str], list[PoolView]] = defaultdict(list)
    for pool in pools:
        own_pools[pool.namespace, pool.cluster].append(pool)
    clusters = [_with_pools(view, own_pools.get((view.namespace, view.name), ())) for view in clusters]
    return Overview(tuple(clusters), pools, hosts, tuple(worst_first(problems)), dict(objects.missing))


def _cluster(
    cluster: Manifest,
    planes: dict[tuple[str, str], Manifest],
    infrastructure: dict[tuple[str, str], Manifest],
    deployments: Sequence[Manifest],
    sets: Sequence[Manifest],
    machines: _Machines,
    past: float | None,
    now: datetime,
) -> ClusterView:
    namespace, name = _place(cluster)
    spec, status = cluster.get("spec") or {}, cluster.get("status") or {}
    plane_name = str((spec.get("controlPlaneRef") or {}).get("name") or "")
    plane = planes.get((namespace, plane_name))
    found = problems_of(CLUSTER.kind, cluster, now)
    control_plane: GroupView | None
    if plane is not None:
        members = machines.of(
            (namespace, name), KUBEADM_CONTROL_PLANE.kind, plane_name, str((plane.get("spec") or {}).get("version") or "")
        )
        control_plane = group_view(KUBEADM_CONTROL_PLANE.kind, plane, members)
        found += problems_of(KUBEADM_CONTROL_PLANE.kind, plane, now)
    else:
        control_plane = reported_group(cluster, machines.of((namespace, name), KUBEADM_CONTROL_PLANE.kind, plane_name, ""))
    workers = []
    for each in sorted(deployments, key=_place):
        template = ((each.get("spec") or {}).get("template") or {}).get("spec") or {}
        members = machines.of((namespace, name), MACHINE_DEPLOYMENT.kind, _place(each)[1], str(template.get("version") or ""))
        workers.append(group_view(MACHINE_DEPLOYMENT.kind, each, members))
        found += problems_of(MACHINE_DEPLOYMENT.kind, each, now)
    for each in sorted(sets, key=_place):
        found += problems_of(MACHINE_SET.kind, each, now)
        if not (each["metadata"].get("labels") or {}).get(names.DEPLOYMENT_NAME_LABEL):
            template = ((each.get("spec") or {}).get("template") or {}).get("spec") or {}
            members = machines.of((namespace, name), MACHINE_SET.kind, _place(each)[1], str(template.get("version") or ""))
            workers.append(group_view(MACHINE_SET.kind, each, members))
    shown = {(KUBEADM_CONTROL_PLANE.kind, plane_name), *((group.kind, group.name) for group in workers)}
    for kind, owner in sorted(machines.by_cluster.get((namespace, name), set()) - shown):
        workers.append(loose_group(kind, owner, machines.of((namespace, name), kind, owner, "")))
    base = infrastructure.get((namespace, str((spec.get("infrastructureRef") or {}).get("name") or "")))
    bare_metal = (spec.get("infrastructureRef") or {}).get("kind") == BAREMETAL_CLUSTER.kind
    if base is not None and bare_metal:
        # The Cluster repeats what its infrastructure says, in fewer words.
        found = [each for each in found if each.condition != names.INFRASTRUCTURE_READY_CONDITION]
        found += problems_of(BAREMETAL_CLUSTER.kind, base, now)
    groups = [*([control_plane] if control_plane is not None else []), *workers]
    found += [machine.problem for group in groups for machine in group.machines if machine.problem is not None]
    endpoint = spec.get("controlPlaneEndpoint") or {}
    available = {"True": True, "False": False}.get(_status_of(cluster, names.AVAILABLE_CONDITION))
    deleting = bool(cluster["metadata"].get("deletionTimestamp"))
    return ClusterView(
        namespace=namespace,
        name=name,
        phase=str(status.get("phase") or ""),
        endpoint=f"{endpoint['host']}:{endpoint.get('port') or ''}".rstrip(":") if endpoint.get("host") else "",
        available=available,
        control_plane=control_plane,
        workers=tuple(workers),
        rollout=None if deleting else rollout(groups, now, past),
        problems=tuple(worst_first(found)),
        paused=bool(spec.get("paused")) or names.PAUSED_ANNOTATION in (cluster["metadata"].get("annotations") or {}),
        deleting=deleting,
        bare_metal=bare_metal,
    )


def _past(inventories: Sequence[Manifest]) -> dict[tuple[str, str], float]:
    """What the replacement of a machine took in the past, in seconds, by cluster: the mean of what hosts remember."""
    records: dict[tuple[str, str], list[Sequence[Cycle]]] = defaultdict(list)
    for each in inventories:
        lives = cycles.read(each["metadata"].get("annotations") or {})
        if len(lives) > 1:
            records[_space(each), lives[-1].cluster].append(lives)
    return {place: mean(took) for place, found in records.items() if (took := replacements(found))}


def _host(inventory: Manifest, secrets: dict[tuple[str, str], Manifest], machines: _Machines) -> HostView:
    namespace, _ = _place(inventory)
    owner = str((inventory["metadata"].get("annotations") or {}).get(OWNER_MACHINE_ANNOTATION) or "")
    return host_view(inventory, secrets.get(_place(inventory)), machines.views.get((namespace, owner)))


def _with_pools(view: ClusterView, pools: Sequence[PoolView]) -> ClusterView:
    own = [each for pool in pools for each in pool.problems]
    return msgspec.structs.replace(view, problems=tuple(worst_first([*view.problems, *own]))) if own else view


def _by_cluster(manifests: Iterable[Manifest]) -> dict[tuple[str, str], list[Manifest]]:
    found: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
    for each in manifests:
        found[_space(each), str((each.get("spec") or {}).get("clusterName") or "")].append(each)
    return found


def _place(manifest: Manifest) -> tuple[str, str]:
    return _space(manifest), str(manifest["metadata"]["name"])


def _space(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("namespace") or "")


def _status_of(manifest: Manifest, type_: str) -> str:
    return str(condition(manifest, type_).get("status") or "")
