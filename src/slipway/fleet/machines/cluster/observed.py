"""What one reconcile of a Cluster sees, as values: the Cluster, the two objects that it refers to, and all that belongs to it.

Of Machines and of what makes them only the few fields are read that the status counts: a Cluster may have thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from slipway.api.cluster.kinds import CLUSTER
from slipway.api.cluster.names import (
    AVAILABLE_CONDITION,
    CONTROL_PLANE_LABEL,
    HEALTH_CHECK_SUCCEEDED_CONDITION,
    OWNER_REMEDIATED_CONDITION,
    POOL_NAME_LABEL,
    READY_CONDITION,
    UP_TO_DATE_CONDITION,
)
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.aggregation import Source
from slipway.fleet.contract.conditions import FALSE, TRUE, Condition
from slipway.fleet.contract.versions import StatusVersion  # noqa: TC001 - msgspec reads it
from slipway.fleet.liveclusters import Probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.conditions import Reported
    from slipway.runtime.objects import Metadata, Object

B = TypeVar("B", bound=msgspec.Struct)

_TOLD = frozenset(
    {AVAILABLE_CONDITION, READY_CONDITION, UP_TO_DATE_CONDITION, HEALTH_CHECK_SUCCEEDED_CONDITION, OWNER_REMEDIATED_CONDITION}
)


class _MachineSpec(msgspec.Struct, frozen=True, gc=False):
    version: str = ""


class _NodeRef(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _NodeInfo(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    kubelet_version: str = ""


class _MachineStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    conditions: list[Condition] = []
    node_ref: _NodeRef = _NodeRef()
    node_info: _NodeInfo | None = None


class _MachineBody(msgspec.Struct, gc=False):
    spec: _MachineSpec = _MachineSpec()
    status: _MachineStatus = _MachineStatus()


class _GroupSpec(msgspec.Struct, frozen=True, gc=False):
    replicas: int | None = None


class _GroupStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    conditions: list[Condition] = []
    replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    up_to_date_replicas: int | None = None
    versions: list[StatusVersion] = []


class _GroupBody(msgspec.Struct, gc=False):
    spec: _GroupSpec = _GroupSpec()
    status: _GroupStatus = _GroupStatus()


class Machine(NamedTuple):
    found: Object
    source: Source
    """Its conditions that the status of a Cluster tells of."""
    version: str
    """What runs, where that is known; else what is wanted."""
    node_name: str
    control_plane: bool
    of_pool: bool
    owner: str
    """The Cluster that owns it itself; empty where something between them does."""
    silent: tuple[str, ...]
    """Those of its conditions that are True and say nothing: nearly all, of thousands of Machines."""

    @property
    def metadata(self) -> Metadata:
        return self.found.metadata

    def condition(self, condition_type: str) -> Reported | None:
        for one in self.source.conditions:
            if one.type == condition_type:
                return one
        return None

    def is_true(self, condition_type: str) -> bool:
        if condition_type in self.silent:
            return True
        found = self.condition(condition_type)
        return found is not None and found.status == TRUE

    def is_false(self, condition_type: str) -> bool:
        found = self.condition(condition_type)
        return found is not None and found.status == FALSE


class Group(NamedTuple):
    """A MachineDeployment, a MachineSet or a MachinePool."""

    kind: str
    metadata: Metadata
    spec: _GroupSpec
    status: _GroupStatus

    @property
    def source(self) -> Source:
        return Source(self.metadata.name, self.status.conditions, self.kind)


@dataclass(frozen=True)
class Descendants:
    """All that belongs to a Cluster by its label, each by name."""

    machine_deployments: Sequence[Group] = ()
    machine_sets: Sequence[Group] = ()
    machine_pools: Sequence[Group] = ()
    machines: Sequence[Machine] = ()

    @cached_property
    def control_plane_machines(self) -> list[Machine]:
        return [machine for machine in self.machines if machine.control_plane]

    @cached_property
    def worker_machines(self) -> list[Machine]:
        return [machine for machine in self.machines if not machine.control_plane]


class External(NamedTuple):
    """What a reference of the Cluster leads to."""

    manifest: Manifest | None = None
    missing: bool = False
    """It is known that there is none; else it could not be read, for ``problem``."""
    contract: str = "v1beta2"
    problem: str = ""


class Observed(NamedTuple):
    """``cluster`` has the initialization of its status up to date already."""

    cluster: Manifest
    infrastructure: External = External()
    control_plane: External = External()
    descendants: Descendants | None = Descendants()
    """None where they could not be listed, for ``unlisted``."""
    probe: Probe = Probe()
    unlisted: str = ""


def machine(found: Object) -> Machine:
    body = _read(found, _MachineBody)
    info = body.status.node_info
    version = (info.kubelet_version if info is not None else "") or body.spec.version
    labels = found.metadata.labels
    control_plane = CONTROL_PLANE_LABEL in labels
    told = [one for one in body.status.conditions if one.type in _TOLD]
    return Machine(
        found,
        Source(found.name, told, "Machine", control_plane),
        version,
        body.status.node_ref.name,
        control_plane,
        POOL_NAME_LABEL in labels,
        _owner(found.metadata),
        tuple(one.type for one in told if one.status == TRUE and not one.message),
    )


def group(found: Object) -> Group:
    body = _read(found, _GroupBody)
    return Group(found.kind.kind, found.metadata, body.spec, body.status)


def owned(metadata: Metadata, cluster: str) -> bool:
    """Whether the Cluster itself owns the object, and not something between them; by name, as the uid changes with a move."""
    return _owner(metadata) == cluster


def _owner(metadata: Metadata) -> str:
    found = (one for one in metadata.owner_references if one.kind == CLUSTER.kind and one.api_version.partition("/")[0] == CLUSTER.group)
    return next((one.name for one in found), "")


def _read(found: Object, into: type[B]) -> B:
    try:
        return found.decode(into)
    except msgspec.ValidationError as error:
        raise OperatorError(f"the {found.kind.kind} {found.request} cannot be read: {error}") from None
