"""What a health check sees of Machines, of their Nodes and of their Cluster: the few fields that count, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from slipway.api.cluster import names
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import moment
from slipway.fleet.machines.healthcheck.judgement import DEFAULT_STARTUP, Checks, Target, Unhealthy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.core.machinehealthcheck import MachineHealthCheck
    from slipway.runtime.objects import Metadata, Object

B = TypeVar("B", bound=msgspec.Struct)


class Seen(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A condition, of whatever kind: those of Nodes have other statuses and no reason sometimes."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    severity: str = ""
    last_transition_time: str = ""


class _NodeRef(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Conditions(msgspec.Struct, frozen=True, gc=False):
    conditions: list[Seen] = []


class _Deprecated(msgspec.Struct, frozen=True, gc=False):
    v1beta1: _Conditions | None = None


class _MachineStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    conditions: list[Seen] = []
    node_ref: _NodeRef = _NodeRef()
    deprecated: _Deprecated | None = None


class _MachineBody(msgspec.Struct, frozen=True, gc=False):
    status: _MachineStatus = _MachineStatus()


class _Body(msgspec.Struct, frozen=True, gc=False):
    status: _Conditions = _Conditions()


class Machine(NamedTuple):
    found: Object
    status: _MachineStatus

    @property
    def metadata(self) -> Metadata:
        return self.found.metadata

    @property
    def skipped(self) -> bool:
        """By its own annotations."""
        marks = self.metadata.annotations
        return names.PAUSED_ANNOTATION in marks or names.SKIP_REMEDIATION_ANNOTATION in marks

    @property
    def node_name(self) -> str:
        return self.status.node_ref.name

    def condition(self, name: str) -> Seen | None:
        return next((one for one in self.status.conditions if one.type == name), None)

    def deprecated(self, name: str) -> Seen | None:
        older = self.status.deprecated.v1beta1 if self.status.deprecated is not None else None
        return next((one for one in older.conditions if one.type == name), None) if older is not None else None


def machine(found: Object) -> Machine:
    return Machine(found, _read(found, _MachineBody).status)


def conditions_of(found: Object) -> Sequence[Seen]:
    return _read(found, _Body).status.conditions


def target(machine: Machine, cluster: Sequence[Seen], node: Object | None, *, looked: bool) -> Target:
    """``looked``: the workload cluster was asked for the Node."""
    metadata = machine.metadata
    return Target(
        conditions=machine.status.conditions,
        created=moment(metadata.creation_timestamp),
        cluster=cluster,
        node=conditions_of(node) if node is not None else None,
        node_name=machine.node_name,
        node_missing=looked and node is None and bool(machine.node_name),
        control_plane=names.CONTROL_PLANE_LABEL in metadata.labels,
        deleting=metadata.deletion_timestamp is not None,
        marked=names.REMEDIATE_MACHINE_ANNOTATION in metadata.annotations,
    )


def checks(check: MachineHealthCheck) -> Checks:
    wanted = check.spec.checks
    startup = wanted.node_startup_timeout_seconds
    return Checks(
        tuple(Unhealthy(one.type, one.status, one.timeout_seconds or 0) for one in wanted.unhealthy_node_conditions),
        tuple(Unhealthy(one.type, one.status, one.timeout_seconds or 0) for one in wanted.unhealthy_machine_conditions),
        DEFAULT_STARTUP if startup is None else startup,
    )


def _read(found: Object, into: type[B]) -> B:
    try:
        return found.decode(into)
    except msgspec.ValidationError as error:
        raise OperatorError(f"the {found.kind.kind} {found.request} cannot be read: {error}") from None
