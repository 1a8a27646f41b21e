"""``cluster.x-k8s.io/v1beta2``: MachineDeployment."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.machine import MachineTemplateSpec
from slipway.api.cluster.core.machineset import MachineNamingSpec
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
    Time,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of


class MachineDeploymentRolloutStrategyRollingUpdate(Type):
    """The bounds of a rolling update; both must not be 0."""

    openapi = NOT_EMPTY

    max_unavailable: int | str | None = None
    """How many Machines, a number or a share of the replicas rounded down, may be missing during a rollout."""
    max_surge: int | str | None = None
    """How many Machines, a number or a share of the replicas rounded up, may be there beyond the replicas during a rollout."""


class MachineDeploymentRolloutStrategy(Type):
    """How Machines are replaced."""

    openapi = NOT_EMPTY

    type: Annotated[str, one_of("RollingUpdate", "OnDelete"), REQUIRED] = ""
    """RollingUpdate, so too without it, or OnDelete: Machines are replaced as somebody deletes them."""
    rolling_update: MachineDeploymentRolloutStrategyRollingUpdate = field(default_factory=MachineDeploymentRolloutStrategyRollingUpdate)
    """Bounds of a rolling update."""


class MachineDeploymentRolloutSpec(Type):
    """How changes are rolled out."""

    openapi = NOT_EMPTY

    after: Time = ""
    """The time after which every Machine that is older is replaced."""
    strategy: MachineDeploymentRolloutStrategy = field(default_factory=MachineDeploymentRolloutStrategy)
    """How Machines are replaced."""


class MachineDeploymentRemediationSpec(Type):
    """How unhealthy Machines are remediated."""

    openapi = NOT_EMPTY

    max_in_flight: int | str | None = None
    """How many Machines, a number or a share of the replicas, are remediated at one time; as many as there are without it."""


class MachineDeploymentDeletionSpec(Type):
    """Which Machines go first."""

    openapi = NOT_EMPTY

    order: Annotated[str, one_of("Random", "Newest", "Oldest")] = ""
    """Which Machines go first: Random (so too without it), Newest or Oldest, after those that are marked, updating or unhealthy."""


class MachineDeploymentSpec(Type):
    """What a MachineDeployment is to be."""

    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the Cluster that the object belongs to; it never changes."""
    replicas: Int32 | None = None
    """How many Machines are wanted; the webhook sets it where it is not given."""
    rollout: MachineDeploymentRolloutSpec = field(default_factory=MachineDeploymentRolloutSpec)
    """How changes are rolled out."""
    selector: Annotated[LabelSelector, REQUIRED] = field(default_factory=LabelSelector)
    """Which Machines it counts as its own; their template's labels match it."""
    template: Annotated[MachineTemplateSpec, REQUIRED] = field(default_factory=MachineTemplateSpec)
    """What each Machine is made from."""
    machine_naming: MachineNamingSpec = field(default_factory=MachineNamingSpec)
    """How Machines are named."""
    remediation: MachineDeploymentRemediationSpec = field(default_factory=MachineDeploymentRemediationSpec)
    """How unhealthy Machines are remediated."""
    deletion: MachineDeploymentDeletionSpec = field(default_factory=MachineDeploymentDeletionSpec)
    """Which Machines go first."""
    paused: bool | None = None
    """Whether rollouts stand still."""


class MachineDeploymentV1Beta1DeprecatedStatus(Type):
    """What v1beta1 had in a MachineDeployment's status."""

    always_printed = frozenset({"updated_replicas", "ready_replicas", "available_replicas", "unavailable_replicas"})

    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    updated_replicas: Int32 = 0
    """How many Machines were made from the current template."""
    ready_replicas: Int32 = 0
    """How many Machines have a Node that is ready."""
    available_replicas: Int32 = 0
    """How many Machines have a Node that has been ready for minReadySeconds."""
    unavailable_replicas: Int32 = 0
    """How many Machines are not available."""


class MachineDeploymentDeprecatedStatus(Type):
    """What earlier versions had in a MachineDeployment's status."""

    v1beta1: MachineDeploymentV1Beta1DeprecatedStatus | None = None
    """What v1beta1 had in its status."""


class MachineDeploymentStatus(Type):
    """What has been observed of a MachineDeployment."""

    openapi = NOT_EMPTY

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    observed_generation: Annotated[Int64, at_least(1)] = 0
    """The generation that the controller has last worked on to the end."""
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
    phase: Annotated[str, one_of("ScalingUp", "ScalingDown", "Running", "Failed", "Unknown")] = ""
    """Where the object is in its life, in one word, for people."""
    deprecated: MachineDeploymentDeprecatedStatus | None = None
    """What earlier versions had in their status."""


class MachineDeployment(Type):
    """A number of equal Machines that are replaced, by one MachineSet after the other, when their template changes."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[MachineDeploymentSpec, REQUIRED] = field(default_factory=MachineDeploymentSpec)
    """What the MachineDeployment is to be."""
    status: MachineDeploymentStatus = field(default_factory=MachineDeploymentStatus)
    """What has been observed of the MachineDeployment."""
