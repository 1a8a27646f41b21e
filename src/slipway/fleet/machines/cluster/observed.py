"""What one reconcile of a Cluster sees, as values: the Cluster, the two objects that it refers to, and all that belongs to it.

Of Machines and of what makes them only the few fields are read that the status counts: a Cluster may have thousands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from slipway.api.cluster.kinds import CLUSTER
from slipway.api.cluster.names import CONTROL_PLANE_LABEL, POOL_NAME_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.aggregation import Source
from slipway.fleet.contract.conditions import FALSE, TRUE, Condition
from slipway.fleet.contract.versions import StatusVersion  # noqa: TC001 - msgspec reads it
from slipway.fleet.liveclusters import Probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.objects import Metadata, Object

B = TypeVar("B", bound=msgspec.Struct)


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
    metadata: Metadata
    spec: _MachineSpec
    status: _MachineStatus

    @property
    def control_plane(self) -> bool:
        return CONTROL_PLANE_LABEL in self.metadata.labels

    @property
    def of_pool(self) -> bool:
        return POOL_NAME_LABEL in self.metadata.labels

    @property
    def version(self) -> str:
        """What runs, where that is known; else what is wanted."""
        info = self.status.node_info
        return (info.kubelet_version if info is not None else "") or self.spec.version

    def condition(self, condition_type: str) -> Condition | None:
        return next((one for one in self.status.conditions if one.type == condition_type), None)

    def is_true(self, condition_type: str) -> bool:
        found = self.condition(condition_type)
        return found is not None and found.status == TRUE

    def is_false(self, condition_type: str) -> bool:
        found = self.condition(condition_type)
        return found is not None and found.status == FALSE

    @property
    def source(self) -> Source:
        return Source(self.metadata.name, self.status.conditions, "Machine", self.control_plane)


class Group(NamedTuple):
    """A MachineDeployment, a MachineSet or a MachinePool."""

    kind: str
    metadata: Metadata
    spec: _GroupSpec
    status: _GroupStatus

    @property
    def source(self) -> Source:
        return Source(self.metadata.name, self.status.conditions, self.kind)


class Descendants(NamedTuple):
    """All that belongs to a Cluster by its label, each by name."""

    machine_deployments: Sequence[Group] = ()
    machine_sets: Sequence[Group] = ()
    machine_pools: Sequence[Group] = ()
    machines: Sequence[Machine] = ()

    @property
    def control_plane_machines(self) -> list[Machine]:
        return [machine for machine in self.machines if machine.control_plane]

    @property
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
    """None where they could not be listed."""
    probe: Probe = Probe()


def machine(found: Object) -> Machine:
    body = _read(found, _MachineBody)
    return Machine(found.metadata, body.spec, body.status)


def group(found: Object) -> Group:
    body = _read(found, _GroupBody)
    return Group(found.kind.kind, found.metadata, body.spec, body.status)


def owned(metadata: Metadata, cluster: str) -> bool:
    """Whether the Cluster itself owns the object, and not something between them; by name, as the uid changes with a move."""
    return any(
        one.kind == CLUSTER.kind and one.name == cluster and one.api_version.partition("/")[0] == CLUSTER.group
        for one in metadata.owner_references
    )


def _read(found: Object, into: type[B]) -> B:
    try:
        return found.decode(into)
    except msgspec.ValidationError as error:
        raise OperatorError(f"the {found.kind.kind} {found.request} cannot be read: {error}") from None
