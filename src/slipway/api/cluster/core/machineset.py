"""``cluster.x-k8s.io/v1beta2``: MachineSet."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.machine import MachineTemplateSpec
from slipway.api.cluster.meta import (
    CONDITIONS,
    NOT_EMPTY,
    Condition,
    DeprecatedCondition,
    Int32,
    Int64,
    LabelSelector,
    ObjectMetadata,
    StatusVersion,
    Text256,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of


class MachineNamingSpec(Type):
    """How Machines are named."""

    openapi = NOT_EMPTY

    template: Text256 = ""
    """A Go template with .cluster.name, the owner's name and .random, which must be there; over 63 characters it is cut."""


class MachineSetDeletionSpec(Type):
    """Which Machines go first."""

    openapi = NOT_EMPTY

    order: Annotated[str, one_of("Random", "Newest", "Oldest")] = ""
    """Which Machines go first: Random (so too without it), Newest or Oldest, after those that are marked, updating or unhealthy."""


class MachineSetSpec(Type):
    """What a MachineSet is to be."""

    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the Cluster that the object belongs to; it never changes."""
    replicas: Int32 | None = None
    """How many Machines are wanted; the webhook sets it where it is not given."""
    selector: Annotated[LabelSelector, REQUIRED] = field(default_factory=LabelSelector)
    """Which Machines it counts as its own; their template's labels match it."""
    template: Annotated[MachineTemplateSpec, REQUIRED] = field(default_factory=MachineTemplateSpec)
    """What each Machine is made from."""
    machine_naming: MachineNamingSpec = field(default_factory=MachineNamingSpec)
    """How Machines are named."""
    deletion: MachineSetDeletionSpec = field(default_factory=MachineSetDeletionSpec)
    """Which Machines go first."""


class MachineSetV1Beta1DeprecatedStatus(Type):
    """What v1beta1 had in a MachineSet's status."""

    always_printed = frozenset({"fully_labeled_replicas", "ready_replicas", "available_replicas"})

    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    failure_reason: str | None = None
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] | None = None
    """A sentence about an error that does not go away by itself."""
    fully_labeled_replicas: Int32 = 0
    """How many Machines have all labels of the template."""
    ready_replicas: Int32 = 0
    """How many Machines have a Node that is ready."""
    available_replicas: Int32 = 0
    """How many Machines have a Node that has been ready for minReadySeconds."""


class MachineSetDeprecatedStatus(Type):
    """What earlier versions had in a MachineSet's status."""

    v1beta1: MachineSetV1Beta1DeprecatedStatus | None = None
    """What v1beta1 had in its status."""


class MachineSetStatus(Type):
    """What has been observed of a MachineSet."""

    openapi = NOT_EMPTY

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    selector: Annotated[str, length(1, 4096)] = ""
    """The selector as text, for the subresource scale."""
    replicas: Int32 | None = None
    """How many Machines there are, those that are being deleted included."""
    ready_replicas: Int32 | None = None
    """How many Machines have the condition Ready."""
    available_replicas: Int32 | None = None
    """How many Machines have the condition Available."""
    up_to_date_replicas: Int32 | None = None
    """How many Machines have the condition UpToDate."""
    versions: Annotated[list[StatusVersion], items(1, 100, keys=("version",))] = field(default_factory=list)
    """The Kubernetes versions of the Machines, and how many have each."""
    observed_generation: Annotated[Int64, at_least(1)] = 0
    """The generation that the controller has last worked on to the end."""
    deprecated: MachineSetDeprecatedStatus | None = None
    """What earlier versions had in their status."""


class MachineSet(Type):
    """A number of equal Machines."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[MachineSetSpec, REQUIRED] = field(default_factory=MachineSetSpec)
    """What the MachineSet is to be."""
    status: MachineSetStatus = field(default_factory=MachineSetStatus)
    """What has been observed of the MachineSet."""
