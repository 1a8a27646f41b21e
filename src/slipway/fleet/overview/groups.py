"""What rolls Machines, and how far it is: the control plane of a cluster and its MachineDeployments, read from manifests as they are.

The kinds are Cluster API's, so whose managers reconcile them makes no difference, nor what the machines are made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.admission import with_prefix
from slipway.fleet.contract.conditions import moment
from slipway.fleet.machines.deployment import order
from slipway.fleet.machines.limits import limits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.limits import Limits

_ON_DELETE = "OnDelete"


class Member(NamedTuple):
    """A Machine."""

    name: str
    version: str
    well: bool = True
    """Whether it is Ready."""
    current: bool = True
    """Whether nothing of it is to be another way: what is not current is replaced."""
    leaving: bool = False
    made: datetime | None = None
    since: datetime | None = None
    """When it became well, where it is."""


class Group(NamedTuple):
    """What rolls Machines: a control plane or a MachineDeployment."""

    kind: str
    name: str
    version: str
    replicas: int
    members: tuple[Member, ...] = ()
    observed: bool = True
    """Whether its manager has acted on what its spec says now."""
    paused: bool = False
    by_hand: bool = False
    """Whether Machines are replaced only when somebody deletes them."""
    at_once: int = 1
    """How many are replaced at a time."""
    heading: str = ""
    """The version that it goes to by itself, one minor at a time, beyond that of its spec."""

    @property
    def is_control_plane(self) -> bool:
        return self.kind == KUBEADM_CONTROL_PLANE.kind

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def done(self) -> tuple[Member, ...]:
        """Those that are as they are to be."""
        return tuple(each for each in self.members if each.version == self.version and each.current and each.well and not each.leaving)

    @property
    def left(self) -> int:
        """How many are still to come."""
        return max(self.replicas - len(self.done), 0)

    @property
    def settled(self) -> bool:
        """Whether its manager has nothing left to do."""
        return self.observed and not self.heading and len(self.members) == self.replicas == len(self.done)


class Standing(NamedTuple):
    """Where a cluster is; workers in the order in which they are to be rolled."""

    namespace: str
    cluster: str
    plane: Group
    workers: tuple[Group, ...] = ()
    left_alone: tuple[str, ...] = ()
    """What has machines that an upgrade does not reach, a sentence each."""
    paused: bool = False

    @property
    def groups(self) -> tuple[Group, ...]:
        return (self.plane, *self.workers)


def standing(
    cluster: Manifest,
    planes: Iterable[Manifest],
    deployments: Iterable[Manifest],
    sets: Iterable[Manifest],
    machines: Iterable[Manifest],
) -> Standing:
    """Of a cluster; an OperatorError where it is none that can be upgraded by patches of its parts."""
    metadata, spec = cluster["metadata"], cluster.get("spec") or {}
    namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
    if (spec.get("topology") or {}).get("classRef") or (spec.get("topology") or {}).get("class"):
        raise OperatorError(
            f"the Cluster {name} has a topology, whose controller owns the versions of all parts: patch spec.topology.version of it"
        )
    if metadata.get("deletionTimestamp"):
        raise OperatorError(f"the Cluster {name} is being deleted: nothing of it can be upgraded any more")
    reference = spec.get("controlPlaneRef") or {}
    if reference.get("kind") != KUBEADM_CONTROL_PLANE.kind:
        told = f"a {reference['kind']}" if reference.get("kind") else "none"
        raise OperatorError(f"the control plane of the Cluster {name} is {told}: only a KubeadmControlPlane can be upgraded from here")
    plane = next((each for each in planes if _is(each, str(reference.get("name")), namespace)), None)
    if plane is None:
        raise OperatorError(f"there is no KubeadmControlPlane {reference.get('name')}, which the Cluster {name} refers to: make it")
    own = [each for each in machines if _labels(each).get(names.CLUSTER_NAME_LABEL) == name and _namespace(each) == namespace]
    workers = [each for each in deployments if (each.get("spec") or {}).get("clusterName") == name and _namespace(each) == namespace]
    leaving = [each for each in workers if each["metadata"].get("deletionTimestamp")]
    unversioned = [each for each in workers if each not in leaving and not _of_machines(each).get("version")]
    rolled = [deployment(each, own) for each in sorted(workers, key=_place) if each not in (*leaving, *unversioned)]
    lone = [
        f"the MachineSet {_name(each)} is not of a MachineDeployment"
        for each in sets
        if (each.get("spec") or {}).get("clusterName") == name and _namespace(each) == namespace and not _owner(each)
    ]
    return Standing(
        namespace,
        name,
        control_plane(plane, own),
        tuple(rolled),
        (
            *(f"the MachineDeployment {_name(each)} is being deleted" for each in leaving),
            *(f"the MachineDeployment {_name(each)} names no version" for each in unversioned),
            *lone,
        ),
        spec.get("paused") is True,
    )


def control_plane(content: Manifest, machines: Iterable[Manifest]) -> Group:
    """A KubeadmControlPlane with those of the cluster's ``machines`` that are its own."""
    spec = content.get("spec") or {}
    version = with_prefix(str(spec.get("version") or ""))
    heading = with_prefix(str(_annotations(content).get(names.UPGRADE_TARGET_ANNOTATION) or ""))
    return Group(
        KUBEADM_CONTROL_PLANE.kind,
        _name(content),
        version,
        _replicas(spec),
        _members(each for each in machines if names.CONTROL_PLANE_LABEL in _labels(each)),
        _observed(content),
        names.PAUSED_ANNOTATION in _annotations(content),
        heading="" if heading == version else heading,
    )


def deployment(content: Manifest, machines: Iterable[Manifest]) -> Group:
    """A MachineDeployment with those of the cluster's ``machines`` that are its own."""
    spec = content.get("spec") or {}
    budget = _limits(content)
    return Group(
        MACHINE_DEPLOYMENT.kind,
        _name(content),
        with_prefix(str(_of_machines(content).get("version") or "")),
        _replicas(spec),
        _members(each for each in machines if _labels(each).get(names.DEPLOYMENT_NAME_LABEL) == _name(content)),
        _observed(content),
        names.PAUSED_ANNOTATION in _annotations(content) or spec.get("paused") is True,
        _strategy(content).get("type") == _ON_DELETE,
        max(budget.surge + budget.unavailable, 1),
    )


def surge(content: Manifest) -> int:
    """How many Machines beyond its replicas a MachineDeployment may have."""
    return _limits(content).surge


def _limits(content: Manifest) -> Limits:
    strategy = _strategy(content)
    rolling = strategy.get("rollingUpdate") or {}
    return limits(
        rolling=strategy.get("type") != _ON_DELETE,
        surge=rolling.get("maxSurge"),
        unavailable=rolling.get("maxUnavailable"),
        replicas=_replicas(content.get("spec") or {}),
    )


def _strategy(content: Manifest) -> Manifest:
    found: Manifest = ((content.get("spec") or {}).get("rollout") or {}).get("strategy") or {}
    return found


def _members(machines: Iterable[Manifest]) -> tuple[Member, ...]:
    return tuple(sorted(map(member, machines), key=lambda each: each.name))


def member(machine: Manifest) -> Member:
    status = machine.get("status") or {}
    told = {str(each.get("type")): each for each in status.get("conditions") or ()}
    ready = told.get(names.READY_CONDITION) or {}
    # Managers that do not tell Ready yet tell the phase.
    well = ready.get("status") == "True" if ready else status.get("phase") == "Running"
    since = moment(str(ready.get("lastTransitionTime") or "")) if well else None
    return Member(
        _name(machine),
        with_prefix(str((machine.get("spec") or {}).get("version") or "")),
        well,
        (told.get(names.UP_TO_DATE_CONDITION) or {}).get("status") != "False",
        bool(machine["metadata"].get("deletionTimestamp")),
        moment(str(machine["metadata"].get("creationTimestamp") or "")),
        since,
    )


def _observed(content: Manifest) -> bool:
    return bool((content.get("status") or {}).get("observedGeneration", 0) >= content["metadata"].get("generation", 0))


def _place(content: Manifest) -> tuple[float, str]:
    """Those with a number in the order first, as their controller does it."""
    try:
        number = order.position(_annotations(content))
    except OperatorError:
        number = None
    return (float("inf") if number is None else number, _name(content))


def _of_machines(content: Manifest) -> Manifest:
    found: Manifest = ((content.get("spec") or {}).get("template") or {}).get("spec") or {}
    return found


def _replicas(spec: Manifest) -> int:
    replicas = spec.get("replicas")
    return 1 if replicas is None else int(replicas)


def _is(content: Manifest, name: str, namespace: str) -> bool:
    return _name(content) == name and _namespace(content) == namespace


def _owner(content: Manifest) -> bool:
    return any(each.get("kind") == MACHINE_DEPLOYMENT.kind for each in content["metadata"].get("ownerReferences") or ())


def _name(content: Manifest) -> str:
    return str(content["metadata"]["name"])


def _namespace(content: Manifest) -> str:
    return str(content["metadata"].get("namespace") or "")


def _labels(content: Manifest) -> Manifest:
    return content["metadata"].get("labels") or {}


def _annotations(content: Manifest) -> Manifest:
    return content["metadata"].get("annotations") or {}
