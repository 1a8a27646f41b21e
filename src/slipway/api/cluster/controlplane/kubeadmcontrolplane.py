"""``controlplane.cluster.x-k8s.io/v1beta2``: KubeadmControlPlane and KubeadmControlPlaneTemplate."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.bootstrap.config import KubeadmConfigSpec
from slipway.api.cluster.core.machine import MachineReadinessGate, MachineTaint
from slipway.api.cluster.meta import (
    CONDITIONS,
    NOT_EMPTY,
    Condition,
    ContractVersionedObjectReference,
    DeprecatedCondition,
    Int32,
    Int64,
    ObjectMeta,
    ObjectMetadata,
    StatusVersion,
    Text256,
    Time,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of


class KubeadmControlPlaneMachineTemplateDeletionSpec(Type):
    """How long each step of the deletion of a control plane's Machine may take."""

    openapi = NOT_EMPTY

    node_drain_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a drain may take before it is given up; without it or with 0, as long as it takes."""
    node_volume_detach_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long volumes may take to be detached; without it or with 0, as long as it takes."""
    node_deletion_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long to try to delete the Node once the Machine is deleted; 10 without it, and 0 to try without end."""


class KubeadmControlPlaneMachineTemplateSpec(Type):
    """What the spec of each Machine is made from."""

    infrastructure_ref: Annotated[ContractVersionedObjectReference, REQUIRED] = field(default_factory=ContractVersionedObjectReference)
    """The template of an infrastructure provider that hosts are made from."""
    readiness_gates: Annotated[list[MachineReadinessGate], items(1, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Machine that count for its condition Ready, after those of the control plane itself."""
    deletion: KubeadmControlPlaneMachineTemplateDeletionSpec = field(default_factory=KubeadmControlPlaneMachineTemplateDeletionSpec)
    """How long each step of the Machine's deletion may take."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""


class KubeadmControlPlaneMachineTemplate(Type):
    """What each Machine is made from."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations of each Machine."""
    spec: Annotated[KubeadmControlPlaneMachineTemplateSpec, REQUIRED] = field(default_factory=KubeadmControlPlaneMachineTemplateSpec)
    """The spec of each Machine."""


class KubeadmControlPlaneRolloutBeforeSpec(Type):
    """When Machines are replaced before something happens."""

    openapi = NOT_EMPTY

    certificates_expiry_days: Annotated[Int32, at_least(7)] = 0
    """So many days before its certificates expire a Machine is replaced."""


class KubeadmControlPlaneRolloutStrategyRollingUpdate(Type):
    """The bounds of a rolling update."""

    openapi = NOT_EMPTY

    max_surge: int | str | None = None
    """How many Machines may be there beyond the replicas during a rollout: 1, so too without it, or 0 with three or more replicas."""


class KubeadmControlPlaneRolloutStrategy(Type):
    """How Machines are replaced."""

    openapi = NOT_EMPTY

    type: Annotated[str, one_of("RollingUpdate"), REQUIRED] = ""
    """RollingUpdate, the only one."""
    rolling_update: KubeadmControlPlaneRolloutStrategyRollingUpdate = field(default_factory=KubeadmControlPlaneRolloutStrategyRollingUpdate)
    """Bounds of a rolling update."""


class KubeadmControlPlaneRolloutSpec(Type):
    """How changes are rolled out."""

    openapi = NOT_EMPTY

    before: KubeadmControlPlaneRolloutBeforeSpec = field(default_factory=KubeadmControlPlaneRolloutBeforeSpec)
    """When Machines are replaced before something happens."""
    after: Time = ""
    """The time after which every Machine that is older is replaced."""
    strategy: KubeadmControlPlaneRolloutStrategy = field(default_factory=KubeadmControlPlaneRolloutStrategy)
    """How Machines are replaced."""


class KubeadmControlPlaneRemediationSpec(Type):
    """How unhealthy Machines are remediated."""

    openapi = NOT_EMPTY

    max_retry: Int32 | None = None
    """How often a remediation that failed is tried again; without end without it."""
    retry_period_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long to wait from one try to the next; 0 without it."""
    min_healthy_period_seconds: Annotated[Int32, at_least(0)] | None = None
    """A Machine that becomes unhealthy within this time after a remediation is a retry of it; 3600 without it."""


class MachineNamingSpec(Type):
    """How Machines are named."""

    openapi = NOT_EMPTY

    template: Text256 = ""
    """A Go template with .cluster.name, the owner's name and .random, which must be there; over 63 characters it is cut."""


class KubeadmControlPlaneSpec(Type):
    """What a control plane is to be."""

    replicas: Int32 | None = None
    """How many Machines are wanted: an odd number unless etcd is external; 1 without it."""
    version: Annotated[Text256, REQUIRED] = ""
    """The Kubernetes version of the control plane."""
    machine_template: Annotated[KubeadmControlPlaneMachineTemplate, REQUIRED] = field(default_factory=KubeadmControlPlaneMachineTemplate)
    """What each Machine is made from."""
    kubeadm_config_spec: KubeadmConfigSpec = field(default_factory=KubeadmConfigSpec)
    """The kubeadm configuration of each Machine."""
    rollout: KubeadmControlPlaneRolloutSpec = field(default_factory=KubeadmControlPlaneRolloutSpec)
    """How changes are rolled out."""
    remediation: KubeadmControlPlaneRemediationSpec = field(default_factory=KubeadmControlPlaneRemediationSpec)
    """How unhealthy Machines are remediated."""
    machine_naming: MachineNamingSpec = field(default_factory=MachineNamingSpec)
    """How Machines are named."""


class KubeadmControlPlaneInitializationStatus(Type):
    """How far a control plane has come for the first time."""

    openapi = NOT_EMPTY

    control_plane_initialized: bool | None = None
    """Whether the API server can take requests; it stays true once it is."""


class LastRemediationStatus(Type):
    """The last remediation."""

    machine: Annotated[str, length(1, 253), REQUIRED] = ""
    """The name of the Machine that was remediated."""
    time: Annotated[Time, REQUIRED] = ""
    """When it was remediated."""
    retry_count: Annotated[Int32 | None, at_least(0), REQUIRED] = None
    """Which retry it was; 0 for the first try."""


class KubeadmControlPlaneV1Beta1DeprecatedStatus(Type):
    """What v1beta1 had in a control plane's status."""

    always_printed = frozenset({"updated_replicas", "ready_replicas", "unavailable_replicas"})

    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    failure_reason: str = ""
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] | None = None
    """A sentence about an error that does not go away by itself."""
    updated_replicas: Int32 = 0
    """How many Machines were made from the current template."""
    ready_replicas: Int32 = 0
    """How many Machines have a Node that is ready."""
    unavailable_replicas: Int32 = 0
    """How many Machines are not available."""


class KubeadmControlPlaneDeprecatedStatus(Type):
    """What earlier versions had in a control plane's status."""

    v1beta1: KubeadmControlPlaneV1Beta1DeprecatedStatus | None = None
    """What v1beta1 had in its status."""


class KubeadmControlPlaneStatus(Type):
    """What has been observed of a control plane."""

    openapi = NOT_EMPTY

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    initialization: KubeadmControlPlaneInitializationStatus = field(default_factory=KubeadmControlPlaneInitializationStatus)
    """How far the object has come for the first time. Cluster API's controllers wait for it."""
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
    version: Text256 = ""
    """The lowest Kubernetes version of the Machines."""
    observed_generation: Annotated[Int64, at_least(1)] = 0
    """The generation that the controller has last worked on to the end."""
    last_remediation: LastRemediationStatus = field(default_factory=LastRemediationStatus)
    """The last remediation."""
    deprecated: KubeadmControlPlaneDeprecatedStatus | None = None
    """What earlier versions had in their status."""


class KubeadmControlPlane(Type):
    """The control plane of a cluster, on Machines that kubeadm makes into Nodes."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[KubeadmControlPlaneSpec, REQUIRED] = field(default_factory=KubeadmControlPlaneSpec)
    """What the control plane is to be."""
    status: KubeadmControlPlaneStatus = field(default_factory=KubeadmControlPlaneStatus)
    """What has been observed of the control plane."""


class KubeadmControlPlaneTemplateMachineTemplateDeletionSpec(Type):
    """How long each step of the deletion of a control plane's Machine may take."""

    openapi = NOT_EMPTY

    node_drain_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a drain may take before it is given up; without it or with 0, as long as it takes."""
    node_volume_detach_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long volumes may take to be detached; without it or with 0, as long as it takes."""
    node_deletion_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long to try to delete the Node once the Machine is deleted; 10 without it, and 0 to try without end."""


class KubeadmControlPlaneTemplateMachineTemplateSpec(Type):
    """What the spec of each Machine is made from."""

    openapi = NOT_EMPTY

    deletion: KubeadmControlPlaneTemplateMachineTemplateDeletionSpec = field(
        default_factory=KubeadmControlPlaneTemplateMachineTemplateDeletionSpec
    )
    """How long each step of the Machine's deletion may take."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""


class KubeadmControlPlaneTemplateMachineTemplate(Type):
    """What each Machine is made from."""

    openapi = NOT_EMPTY

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations of each Machine."""
    spec: KubeadmControlPlaneTemplateMachineTemplateSpec = field(default_factory=KubeadmControlPlaneTemplateMachineTemplateSpec)
    """The spec of each Machine."""


class KubeadmControlPlaneTemplateResourceSpec(Type):
    """What the spec of each control plane is made from; replicas, version and infrastructure come from elsewhere."""

    openapi = NOT_EMPTY

    machine_template: KubeadmControlPlaneTemplateMachineTemplate = field(default_factory=KubeadmControlPlaneTemplateMachineTemplate)
    """What each Machine is made from."""
    kubeadm_config_spec: KubeadmConfigSpec = field(default_factory=KubeadmConfigSpec)
    """The kubeadm configuration of each Machine."""
    rollout: KubeadmControlPlaneRolloutSpec = field(default_factory=KubeadmControlPlaneRolloutSpec)
    """How changes are rolled out."""
    remediation: KubeadmControlPlaneRemediationSpec = field(default_factory=KubeadmControlPlaneRemediationSpec)
    """How unhealthy Machines are remediated."""
    machine_naming: MachineNamingSpec = field(default_factory=MachineNamingSpec)
    """How Machines are named."""


class KubeadmControlPlaneTemplateResource(Type):
    """What each control plane is made from."""

    openapi = NOT_EMPTY

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations of each control plane."""
    spec: KubeadmControlPlaneTemplateResourceSpec = field(default_factory=KubeadmControlPlaneTemplateResourceSpec)
    """The spec of each control plane."""


class KubeadmControlPlaneTemplateSpec(Type):
    """What control planes are made from."""

    template: Annotated[KubeadmControlPlaneTemplateResource, REQUIRED] = field(default_factory=KubeadmControlPlaneTemplateResource)
    """What each control plane is made from."""


class KubeadmControlPlaneTemplate(Type):
    """What the control planes of a ClusterClass are made from."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: KubeadmControlPlaneTemplateSpec = field(default_factory=KubeadmControlPlaneTemplateSpec)
    """What control planes are made from."""
