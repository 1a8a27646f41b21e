"""``cluster.x-k8s.io/v1beta1``: MachineDeployment before v1beta2; converted, never worked with."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.v1beta1.machine import MachineTemplateSpec
from slipway.api.cluster.core.v1beta1.machineset import MachineNamingStrategy
from slipway.api.cluster.meta import (
    CONDITIONS,
    Condition,
    DeprecatedCondition,
    Int32,
    Int64,
    LabelSelector,
    ObjectMetadata,
    StatusVersion,
    Time,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, items, length, one_of


class MachineRollingUpdateDeployment(Type):
    """The bounds of a rolling update; both must not be 0."""

    max_unavailable: int | str | None = None
    """How many Machines, a number or a share of the replicas rounded down, may be missing during a rollout."""
    max_surge: int | str | None = None
    """How many Machines, a number or a share of the replicas rounded up, may be there beyond the replicas during a rollout."""
    delete_policy: Annotated[str, one_of("Random", "Newest", "Oldest")] | None = None
    """Which Machines go first: Random (so too without it), Newest or Oldest."""


class RemediationStrategy(Type):
    """How unhealthy Machines are remediated."""

    max_in_flight: int | str | None = None
    """How many Machines, a number or a share of the replicas, are remediated at one time; as many as there are without it."""


class MachineDeploymentStrategy(Type):
    """How Machines are replaced and remediated."""

    type: Annotated[str, one_of("RollingUpdate", "OnDelete")] = ""
    """RollingUpdate, so too without it, or OnDelete: Machines are replaced as somebody deletes them."""
    rolling_update: MachineRollingUpdateDeployment | None = None
    """Bounds of a rolling update."""
    remediation: RemediationStrategy | None = None
    """How unhealthy Machines are remediated."""


class MachineDeploymentSpec(Type):
    """What a MachineDeployment is to be."""

    always_printed = frozenset({"cluster_name", "selector", "template"})

    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the Cluster that the object belongs to; it never changes."""
    replicas: Int32 | None = None
    """How many Machines are wanted; the webhook sets it where it is not given."""
    rollout_after: Time | None = None
    """The time after which every Machine that is older is replaced."""
    selector: Annotated[LabelSelector, REQUIRED] = field(default_factory=LabelSelector)
    """Which Machines it counts as its own; their template's labels match it."""
    template: Annotated[MachineTemplateSpec, REQUIRED] = field(default_factory=MachineTemplateSpec)
    """What each Machine is made from."""
    strategy: MachineDeploymentStrategy | None = None
    """How Machines are replaced."""
    machine_naming_strategy: MachineNamingStrategy | None = None
    """How Machines are named."""
    min_ready_seconds: Int32 | None = None
    """How long a Machine must be ready before it is available; 0 without it."""
    revision_history_limit: Int32 | None = None
    """Without effect, and lost in v1beta2."""
    paused: bool = False
    """Whether rollouts stand still."""
    progress_deadline_seconds: Int32 | None = None
    """Without effect, and lost in v1beta2."""


class MachineDeploymentV1Beta2Status(Type):
    """What v1beta2 has in a MachineDeployment's status."""

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    ready_replicas: Int32 | None = None
    """How many Machines have the condition Ready."""
    available_replicas: Int32 | None = None
    """How many Machines have the condition Available."""
    up_to_date_replicas: Int32 | None = None
    """How many Machines have the condition UpToDate."""


class MachineDeploymentStatus(Type):
    """What has been observed of a MachineDeployment."""

    always_printed = frozenset({"replicas", "updated_replicas", "ready_replicas", "available_replicas", "unavailable_replicas"})

    observed_generation: Int64 = 0
    """The generation that the controller has last worked on to the end."""
    selector: Annotated[str, length(1, 4096)] = ""
    """The selector as text, for the subresource scale."""
    replicas: Int32 = 0
    """How many Machines there are, those that are being deleted included."""
    updated_replicas: Int32 = 0
    """How many Machines were made from the current template."""
    ready_replicas: Int32 = 0
    """How many Machines have the condition Ready."""
    available_replicas: Int32 = 0
    """How many Machines have the condition Available."""
    unavailable_replicas: Int32 = 0
    """How many Machines are not available."""
    phase: Annotated[str, one_of("ScalingUp", "ScalingDown", "Running", "Failed", "Unknown")] = ""
    """Where the object is in its life, in one word, for people."""
    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    versions: Annotated[list[StatusVersion], items(1, 100, keys=("version",))] = field(default_factory=list)
    """The Kubernetes versions of the Machines, and how many have each."""
    v1beta2: MachineDeploymentV1Beta2Status | None = None
    """What v1beta2 has in its status."""


class MachineDeployment(Type):
    """A number of equal Machines that are replaced, by one MachineSet after the other, when their template changes."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: MachineDeploymentSpec = field(default_factory=MachineDeploymentSpec)
    """What the MachineDeployment is to be."""
    status: MachineDeploymentStatus = field(default_factory=MachineDeploymentStatus)
    """What has been observed of the MachineDeployment."""
