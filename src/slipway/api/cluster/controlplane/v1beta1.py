"""``controlplane.cluster.x-k8s.io/v1beta1``: KubeadmControlPlane and its template before v1beta2; converted, never worked with."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.bootstrap.v1beta1 import KubeadmConfigSpec
from slipway.api.cluster.core.machine import MachineTaint
from slipway.api.cluster.core.v1beta1.machine import MachineReadinessGate
from slipway.api.cluster.meta import (
    CONDITIONS,
    Condition,
    DeprecatedCondition,
    Int32,
    Int64,
    ObjectMetadata,
    ObjectReference,
    StatusVersion,
    TemplateMeta,
    Text256,
    Time,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, default, items, length, one_of


class KubeadmControlPlaneMachineTemplate(Type):
    """What each Machine is made from."""

    always_printed = frozenset({"infrastructure_ref"})

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of each Machine."""
    infrastructure_ref: Annotated[ObjectReference, REQUIRED] = field(default_factory=ObjectReference)
    """The template of an infrastructure provider that hosts are made from."""
    readiness_gates: Annotated[list[MachineReadinessGate], items(None, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Machine that count for its condition Ready."""
    node_drain_timeout: str | None = None
    """How long a drain may take before it is given up, as a duration such as 30s; without it or with 0s, as long as it takes."""
    node_volume_detach_timeout: str | None = None
    """How long volumes may take to be detached, as a duration; without it or with 0s, as long as it takes."""
    node_deletion_timeout: str | None = None
    """How long to try to delete the Node, as a duration; 10s without it, and 0s to try without end."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""


class RolloutBefore(Type):
    """When Machines are replaced before something happens."""

    certificates_expiry_days: Int32 | None = None
    """So many days before its certificates expire a Machine is replaced."""


class RollingUpdate(Type):
    """The bounds of a rolling update."""

    max_surge: int | str | None = None
    """How many Machines may be there beyond the replicas during a rollout: 1, so too without it, or 0 with three or more replicas."""


class RolloutStrategy(Type):
    """How Machines are replaced."""

    type: Annotated[str, one_of("RollingUpdate")] = ""
    """RollingUpdate, the only one."""
    rolling_update: RollingUpdate | None = None
    """Bounds of a rolling update."""


class RemediationStrategy(Type):
    """How unhealthy Machines are remediated."""

    always_printed = frozenset({"retry_period"})

    max_retry: Int32 | None = None
    """How often a remediation that failed is tried again; without end without it."""
    retry_period: str = "0s"
    """How long to wait from one try to the next, as a duration; 0s without it."""
    min_healthy_period: str | None = None
    """A Machine that becomes unhealthy within this time after a remediation is a retry of it, as a duration; 1h without it."""


class MachineNamingStrategy(Type):
    """How Machines are named."""

    template: Text256 = ""
    """A Go template with .cluster.name, the owner's name and .random, which must be there; over 63 characters it is cut."""


class KubeadmControlPlaneSpec(Type):
    """What a control plane is to be."""

    always_printed = frozenset({"version", "machine_template", "kubeadm_config_spec"})

    replicas: Int32 | None = None
    """How many Machines are wanted: an odd number unless etcd is external; 1 without it."""
    version: Annotated[Text256, REQUIRED] = ""
    """The Kubernetes version of the control plane."""
    machine_template: Annotated[KubeadmControlPlaneMachineTemplate, REQUIRED] = field(default_factory=KubeadmControlPlaneMachineTemplate)
    """What each Machine is made from."""
    kubeadm_config_spec: Annotated[KubeadmConfigSpec, REQUIRED] = field(default_factory=KubeadmConfigSpec)
    """The kubeadm configuration of each Machine."""
    rollout_before: RolloutBefore | None = None
    """When Machines are replaced before something happens."""
    rollout_after: Time | None = None
    """The time after which every Machine that is older is replaced."""
    rollout_strategy: Annotated[RolloutStrategy, default({"rollingUpdate": {"maxSurge": 1}, "type": "RollingUpdate"})] | None = None
    """How Machines are replaced."""
    remediation_strategy: RemediationStrategy | None = None
    """How unhealthy Machines are remediated."""
    machine_naming_strategy: MachineNamingStrategy | None = None
    """How Machines are named."""


class LastRemediationStatus(Type):
    """The last remediation."""

    always_printed = frozenset({"machine", "timestamp", "retry_count"})

    machine: Annotated[str, length(1, 253), REQUIRED] = ""
    """The name of the Machine that was remediated."""
    timestamp: Annotated[Time | None, REQUIRED] = None
    """When it was remediated."""
    retry_count: Annotated[Int32, REQUIRED] = 0
    """Which retry it was; 0 for the first try."""


class KubeadmControlPlaneV1Beta2Status(Type):
    """What v1beta2 has in a control plane's status."""

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    ready_replicas: Int32 | None = None
    """How many Machines have the condition Ready."""
    available_replicas: Int32 | None = None
    """How many Machines have the condition Available."""
    up_to_date_replicas: Int32 | None = None
    """How many Machines have the condition UpToDate."""


class KubeadmControlPlaneStatus(Type):
    """What has been observed of a control plane."""

    always_printed = frozenset({"replicas", "updated_replicas", "ready_replicas", "unavailable_replicas", "initialized", "ready"})

    selector: Annotated[str, length(1, 4096)] = ""
    """The selector as text, for the subresource scale."""
    replicas: Int32 = 0
    """How many Machines there are, those that are being deleted included."""
    version: Text256 | None = None
    """The lowest Kubernetes version of the Machines."""
    updated_replicas: Int32 = 0
    """How many Machines were made from the current template."""
    ready_replicas: Int32 = 0
    """How many Machines have the condition Ready."""
    unavailable_replicas: Int32 = 0
    """How many Machines are not available."""
    initialized: bool = False
    """Whether the control plane has its kubeadm-config."""
    ready: bool = False
    """Whether the API server can take requests."""
    failure_reason: str = ""
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] | None = None
    """A sentence about an error that does not go away by itself."""
    observed_generation: Int64 = 0
    """The generation that the controller has last worked on to the end."""
    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    last_remediation: LastRemediationStatus | None = None
    """The last remediation."""
    versions: Annotated[list[StatusVersion], items(1, 100, keys=("version",))] = field(default_factory=list)
    """The Kubernetes versions of the Machines, and how many have each."""
    v1beta2: KubeadmControlPlaneV1Beta2Status | None = None
    """What v1beta2 has in its status."""


class KubeadmControlPlane(Type):
    """The control plane of a cluster, on Machines that kubeadm makes into Nodes."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: KubeadmControlPlaneSpec = field(default_factory=KubeadmControlPlaneSpec)
    """What the control plane is to be."""
    status: KubeadmControlPlaneStatus = field(default_factory=KubeadmControlPlaneStatus)
    """What has been observed of the control plane."""


class KubeadmControlPlaneTemplateMachineTemplate(Type):
    """What each Machine is made from."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of each Machine."""
    node_drain_timeout: str | None = None
    """How long a drain may take before it is given up, as a duration such as 30s; without it or with 0s, as long as it takes."""
    node_volume_detach_timeout: str | None = None
    """How long volumes may take to be detached, as a duration; without it or with 0s, as long as it takes."""
    node_deletion_timeout: str | None = None
    """How long to try to delete the Node, as a duration; 10s without it, and 0s to try without end."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""


class KubeadmControlPlaneTemplateResourceSpec(Type):
    """What the spec of each control plane is made from; replicas, version and infrastructure come from elsewhere."""

    always_printed = frozenset({"kubeadm_config_spec"})

    machine_template: KubeadmControlPlaneTemplateMachineTemplate | None = None
    """What each Machine is made from."""
    kubeadm_config_spec: Annotated[KubeadmConfigSpec, REQUIRED] = field(default_factory=KubeadmConfigSpec)
    """The kubeadm configuration of each Machine."""
    rollout_before: RolloutBefore | None = None
    """When Machines are replaced before something happens."""
    rollout_after: Time | None = None
    """The time after which every Machine that is older is replaced."""
    rollout_strategy: Annotated[RolloutStrategy, default({"rollingUpdate": {"maxSurge": 1}, "type": "RollingUpdate"})] | None = None
    """How Machines are replaced."""
    remediation_strategy: RemediationStrategy | None = None
    """How unhealthy Machines are remediated."""
    machine_naming_strategy: MachineNamingStrategy | None = None
    """How Machines are named."""


class KubeadmControlPlaneTemplateResource(Type):
    """What each control plane is made from."""

    always_printed = frozenset({"spec"})

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of each control plane."""
    spec: Annotated[KubeadmControlPlaneTemplateResourceSpec, REQUIRED] = field(default_factory=KubeadmControlPlaneTemplateResourceSpec)
    """The spec of each control plane."""


class KubeadmControlPlaneTemplateSpec(Type):
    """What control planes are made from."""

    always_printed = frozenset({"template"})

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
