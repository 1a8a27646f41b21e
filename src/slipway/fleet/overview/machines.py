"""Groups of machines, as they stand: a control plane, the MachineDeployments and MachineSets of a cluster, and the Machines of each."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads it
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, KUBEADM_CONTROL_PLANE, MACHINE, MACHINE_DEPLOYMENT
from slipway.fleet.contract.conditions import moment
from slipway.fleet.overview.problems import Problem, problems_of, worst_first
from slipway.fleet.overview.stages import FAILED, MEMBER, condition, host_of, joined, machine_stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.machinery.objects import Manifest


class MachineView(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    version: str
    """What it is to have."""
    phase: str
    node: str
    host: str
    """The inventory; empty where there is none, or none yet."""
    age_seconds: int
    stage: str
    since: datetime | None
    """When the stage began."""
    problem: Problem | None = None
    """The worst of what is not well."""
    up_to_date: bool = True
    """Whether it is as its group wants machines to be."""
    deleting: bool = False
    kubelet_version: str = ""
    """What its Node runs."""
    joined: datetime | None = None
    """Since when it is a Node."""


class GroupView(msgspec.Struct, frozen=True, rename="camel"):
    """A control plane, a MachineDeployment, or a MachineSet that is nobody's."""

    kind: str
    name: str
    version: str
    replicas: int
    desired: int
    ready: int
    available: int
    up_to_date: int
    machines: tuple[MachineView, ...] = ()
    rolling_since: datetime | None = None
    """Since when its machines are being replaced or made; None while they are not."""
    settled: datetime | None = None
    """Since when they are not, where that is known."""
    target: str = ""
    """The version after further steps, where an upgrade goes over several minor versions."""


def group_view(kind: str, owner: Manifest, machines: Sequence[MachineView]) -> GroupView:
    """The counters are those that the object itself has, as kubectl shows them."""
    spec, status = owner.get("spec") or {}, owner.get("status") or {}
    version = spec.get("version") if kind == KUBEADM_CONTROL_PLANE.kind else ((spec.get("template") or {}).get("spec") or {}).get("version")
    target = str((owner["metadata"].get("annotations") or {}).get(names.UPGRADE_TARGET_ANNOTATION) or "")
    rolling, settled = _rolling(owner)
    return GroupView(
        kind=kind,
        name=str(owner["metadata"]["name"]),
        version=str(version or ""),
        replicas=_number(status, "replicas"),
        desired=1 if spec.get("replicas") is None else int(spec["replicas"]),
        ready=_number(status, "readyReplicas"),
        available=_number(status, "availableReplicas"),
        up_to_date=_number(status, "upToDateReplicas"),
        machines=tuple(machines),
        rolling_since=rolling,
        settled=settled,
        target="" if target == version else target,
    )


def reported_group(cluster: Manifest, machines: Sequence[MachineView]) -> GroupView | None:
    """A control plane of a kind that is not known here, as the Cluster reports it; None where there is none."""
    reference = (cluster.get("spec") or {}).get("controlPlaneRef") or {}
    status = (cluster.get("status") or {}).get("controlPlane") or {}
    if not reference.get("name"):
        return None
    versions = [str(each.get("version") or "") for each in status.get("versions") or ()]
    return GroupView(
        kind=str(reference.get("kind") or ""),
        name=str(reference["name"]),
        version=versions[0] if len(versions) == 1 else "",
        replicas=_number(status, "replicas"),
        desired=_number(status, "desiredReplicas"),
        ready=_number(status, "readyReplicas"),
        available=_number(status, "availableReplicas"),
        up_to_date=_number(status, "upToDateReplicas"),
        machines=tuple(machines),
    )


def loose_group(kind: str, name: str, machines: Sequence[MachineView]) -> GroupView:
    """Machines whose group is not known here, or that are in none: counted one by one."""
    well = sum(machine.stage == MEMBER and machine.problem is None for machine in machines)
    versions = {machine.version for machine in machines}
    return GroupView(
        kind=kind or MACHINE.kind,
        name=name or "(in no group)",
        version=versions.pop() if len(versions) == 1 else "",
        replicas=len(machines),
        desired=len(machines),
        ready=well,
        available=well,
        up_to_date=sum(machine.up_to_date for machine in machines),
        machines=tuple(machines),
    )


def machine_view(machine: Manifest, infrastructure: Manifest | None, wanted: str, now: datetime) -> MachineView:
    """``wanted`` is the version of its group; empty where that is not known."""
    metadata, spec, status = machine["metadata"], machine.get("spec") or {}, machine.get("status") or {}
    made = moment(metadata.get("creationTimestamp"))
    stage, since = machine_stage(machine, infrastructure)
    version = str(spec.get("version") or "")
    found = problems_of(MACHINE.kind, machine, now)
    if infrastructure is not None:
        # The Machine repeats what its infrastructure says, in fewer words.
        found = [each for each in found if each.condition != names.INFRASTRUCTURE_READY_CONDITION]
        found += problems_of(BAREMETAL_MACHINE.kind, infrastructure, now)
    ordered = worst_first(found)
    is_current = condition(machine, names.UP_TO_DATE_CONDITION).get("status") != "False"
    return MachineView(
        name=str(metadata["name"]),
        version=version,
        phase=str((infrastructure or machine).get("status", {}).get("phase") or "") if stage == FAILED else str(status.get("phase") or ""),
        node=str((status.get("nodeRef") or {}).get("name") or ""),
        host=host_of(infrastructure) if infrastructure is not None else "",
        age_seconds=0 if made is None else max(0, int((now - made).total_seconds())),
        stage=stage,
        since=moment(since),
        problem=ordered[0] if ordered else None,
        up_to_date=is_current and (not wanted or version == wanted),
        deleting=bool(metadata.get("deletionTimestamp")),
        kubelet_version=str((status.get("nodeInfo") or {}).get("kubeletVersion") or ""),
        joined=moment(joined(machine, infrastructure)),
    )


def group_of(machine: Manifest) -> tuple[str, str]:
    """The kind and name of the group that a Machine is of, by its labels or its owner; empty where it is in none."""
    labels = machine["metadata"].get("labels") or {}
    owner: Manifest = next((each for each in machine["metadata"].get("ownerReferences") or () if each.get("controller")), {})
    if names.CONTROL_PLANE_LABEL in labels:
        return KUBEADM_CONTROL_PLANE.kind, str(labels.get(names.CONTROL_PLANE_NAME_LABEL) or owner.get("name") or "")
    if labels.get(names.DEPLOYMENT_NAME_LABEL):
        return MACHINE_DEPLOYMENT.kind, str(labels[names.DEPLOYMENT_NAME_LABEL])
    return str(owner.get("kind") or ""), str(owner.get("name") or "")


def _rolling(owner: Manifest) -> tuple[datetime | None, datetime | None]:
    """Since when a group rolls, and since when it does not: by what it says of itself."""
    told = [condition(owner, each) for each in (names.ROLLING_OUT_CONDITION, names.SCALING_UP_CONDITION, names.SCALING_DOWN_CONDITION)]
    known: list[tuple[Mapping[str, object], datetime]] = [
        (each, at) for each in told if (at := moment(each.get("lastTransitionTime"))) is not None
    ]
    busy = [at for each, at in known if each.get("status") == "True"]
    if busy:
        return min(busy), None
    return None, max((at for _, at in known), default=None)


def _number(status: Mapping[str, object], name: str) -> int:
    value = status.get(name)
    return value if isinstance(value, int) else 0
