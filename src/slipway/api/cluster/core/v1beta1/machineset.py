"""``cluster.x-k8s.io/v1beta1``: MachineSet before v1beta2; converted, never worked with."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.v1beta1.machine import MachineTemplateSpec
from slipway.api.cluster.meta import (
    CONDITIONS,
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
from slipway.api.machinery.openapi import REQUIRED, items, length, one_of


class MachineNamingStrategy(Type):
    """How Machines are named."""

    template: Text256 = ""
    """A Go template with .cluster.name, the owner's name and .random, which must be there; over 63 characters it is cut."""


class MachineSetSpec(Type):
    """What a MachineSet is to be."""

    always_printed = frozenset({"cluster_name", "selector"})

    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the Cluster that the object belongs to; it never changes."""
    replicas: Int32 | None = None
    """How many Machines are wanted; the webhook sets it where it is not given."""
    min_ready_seconds: Int32 = 0
    """How long a Machine must be ready before it is available; 0 without it."""
    delete_policy: Annotated[str, one_of("Random", "Newest", "Oldest")] = ""
    """Which Machines go first: Random (so too without it), Newest or Oldest."""
    selector: Annotated[LabelSelector, REQUIRED] = field(default_factory=LabelSelector)
    """Which Machines it counts as its own; their template's labels match it."""
    template: MachineTemplateSpec = field(default_factory=MachineTemplateSpec)
    """What each Machine is made from."""
    machine_naming_strategy: MachineNamingStrategy | None = None
    """How Machines are named."""


class MachineSetV1Beta2Status(Type):
    """What v1beta2 has in a MachineSet's status."""

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    ready_replicas: Int32 | None = None
    """How many Machines have the condition Ready."""
    available_replicas: Int32 | None = None
    """How many Machines have the condition Available."""
    up_to_date_replicas: Int32 | None = None
    """How many Machines have the condition UpToDate."""


class MachineSetStatus(Type):
    """What has been observed of a MachineSet."""

    always_printed = frozenset({"replicas", "fully_labeled_replicas", "ready_replicas", "available_replicas"})

    selector: Annotated[str, length(1, 4096)] = ""
    """The selector as text, for the subresource scale."""
    replicas: Int32 = 0
    """How many Machines there are, those that are being deleted included."""
    fully_labeled_replicas: Int32 = 0
    """How many Machines have all labels of the template."""
    ready_replicas: Int32 = 0
    """How many Machines have the condition Ready."""
    available_replicas: Int32 = 0
    """How many Machines have the condition Available."""
    observed_generation: Int64 = 0
    """The generation that the controller has last worked on to the end."""
    failure_reason: str | None = None
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] | None = None
    """A sentence about an error that does not go away by itself."""
    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    versions: Annotated[list[StatusVersion], items(1, 100, keys=("version",))] = field(default_factory=list)
    """The Kubernetes versions of the Machines, and how many have each."""
    v1beta2: MachineSetV1Beta2Status | None = None
    """What v1beta2 has in its status."""


class MachineSet(Type):
    """A number of equal Machines."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: MachineSetSpec = field(default_factory=MachineSetSpec)
    """What the MachineSet is to be."""
    status: MachineSetStatus = field(default_factory=MachineSetStatus)
    """What has been observed of the MachineSet."""
