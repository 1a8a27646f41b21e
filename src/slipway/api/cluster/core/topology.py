"""``cluster.x-k8s.io/v1beta2``: a Cluster in terms of a ClusterClass, which Slipway stores as upstream does and does not work with."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from slipway.api.cluster.core.machine import MachineReadinessGate, MachineTaint
from slipway.api.cluster.core.machinehealthcheck import (
    MachineHealthCheckRemediationTemplateReference,
    UnhealthyMachineCondition,
    UnhealthyNodeCondition,
)
from slipway.api.cluster.meta import DNS_SUBDOMAIN, NOT_EMPTY, Int32, ObjectMeta, Text256, Time, Type
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of, pattern


class ClusterClassRef(Type):
    """The ClusterClass of a cluster."""

    name: Annotated[str, length(1, 253), pattern(DNS_SUBDOMAIN), REQUIRED] = ""
    """The name of the ClusterClass."""
    namespace: Annotated[str, length(1, 63), pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] = ""
    """The namespace of the ClusterClass; that of the Cluster without it."""


class ControlPlaneTopologyRolloutSpec(Type):
    """How changes of the control plane are rolled out."""

    openapi = NOT_EMPTY

    after: Time = ""
    """The time after which every Machine that is older is replaced."""


class ControlPlaneTopologyHealthCheckChecks(Type):
    """What makes a Machine of the control plane unhealthy."""

    openapi = NOT_EMPTY

    node_startup_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a Machine may be without a Node before it is unhealthy; 600 without it, and 0 for ever."""
    unhealthy_node_conditions: Annotated[list[UnhealthyNodeCondition], items(1, 100, atomic=True)] = field(default_factory=list)
    """Conditions of a Node, any of which makes its Machine unhealthy."""
    unhealthy_machine_conditions: Annotated[list[UnhealthyMachineCondition], items(1, 100, atomic=True)] = field(default_factory=list)
    """Conditions of a Machine, any of which makes it unhealthy."""


class ControlPlaneTopologyHealthCheckRemediationTriggerIf(Type):
    """When unhealthy Machines of the control plane are remediated."""

    openapi = NOT_EMPTY

    unhealthy_less_than_or_equal_to: int | str | None = None
    """Remediation only while at most so many Machines, a number or a share of all, are unhealthy."""
    unhealthy_in_range: Annotated[str, length(1, 32), pattern(r"^\[[0-9]+-[0-9]+\]$")] = ""
    """Remediation only while the number of unhealthy Machines is in this range, such as [3-5]."""


class ControlPlaneTopologyHealthCheckRemediation(Type):
    """When and how unhealthy Machines of the control plane are remediated."""

    openapi = NOT_EMPTY

    trigger_if: ControlPlaneTopologyHealthCheckRemediationTriggerIf = field(
        default_factory=ControlPlaneTopologyHealthCheckRemediationTriggerIf
    )
    """When unhealthy Machines are remediated; without it, always."""
    template_ref: MachineHealthCheckRemediationTemplateReference = field(default_factory=MachineHealthCheckRemediationTemplateReference)
    """A template that remediation requests are made from, for a controller of their own; without it, the Machine's owner replaces it."""


class ControlPlaneTopologyHealthCheck(Type):
    """The health check of the control plane."""

    openapi = NOT_EMPTY

    enabled: bool | None = None
    """Whether there is a health check; without it, as the ClusterClass has it."""
    checks: ControlPlaneTopologyHealthCheckChecks = field(default_factory=ControlPlaneTopologyHealthCheckChecks)
    """What makes a Machine unhealthy."""
    remediation: ControlPlaneTopologyHealthCheckRemediation = field(default_factory=ControlPlaneTopologyHealthCheckRemediation)
    """How unhealthy Machines are remediated."""


class ControlPlaneTopologyMachineDeletionSpec(Type):
    """How long each step of the deletion of a control plane's Machine may take."""

    openapi = NOT_EMPTY

    node_drain_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a drain may take before it is given up; without it or with 0, as long as it takes."""
    node_volume_detach_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long volumes may take to be detached; without it or with 0, as long as it takes."""
    node_deletion_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long to try to delete the Node once the Machine is deleted; 10 without it, and 0 to try without end."""


class ClusterVariable(Type):
    """The value of a variable."""

    name: Annotated[Text256, REQUIRED] = ""
    """The name of the variable."""
    value: Annotated[Any, REQUIRED] = None
    """Its value, any JSON that the variable's schema allows."""


class ControlPlaneVariables(Type):
    """Values of variables for the control plane."""

    openapi = NOT_EMPTY

    overrides: Annotated[list[ClusterVariable], items(1, 1000, keys=("name",))] = field(default_factory=list)
    """Values that go before those of the whole cluster."""


class ControlPlaneTopology(Type):
    """The control plane of a cluster that a ClusterClass describes."""

    openapi = NOT_EMPTY

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations that the objects get."""
    replicas: Int32 | None = None
    """How many Machines the control plane has."""
    rollout: ControlPlaneTopologyRolloutSpec = field(default_factory=ControlPlaneTopologyRolloutSpec)
    """How changes are rolled out."""
    health_check: ControlPlaneTopologyHealthCheck = field(default_factory=ControlPlaneTopologyHealthCheck)
    """The health check of these Machines."""
    deletion: ControlPlaneTopologyMachineDeletionSpec = field(default_factory=ControlPlaneTopologyMachineDeletionSpec)
    """How Machines are deleted."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""
    readiness_gates: Annotated[list[MachineReadinessGate], items(1, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Machine that count for its condition Ready."""
    variables: ControlPlaneVariables = field(default_factory=ControlPlaneVariables)
    """Values of the ClusterClass's variables."""


class MachineDeploymentTopologyHealthCheckChecks(Type):
    """What makes a Machine of a MachineDeployment unhealthy."""

    openapi = NOT_EMPTY

    node_startup_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a Machine may be without a Node before it is unhealthy; 600 without it, and 0 for ever."""
    unhealthy_node_conditions: Annotated[list[UnhealthyNodeCondition], items(1, 100, atomic=True)] = field(default_factory=list)
    """Conditions of a Node, any of which makes its Machine unhealthy."""
    unhealthy_machine_conditions: Annotated[list[UnhealthyMachineCondition], items(1, 100, atomic=True)] = field(default_factory=list)
    """Conditions of a Machine, any of which makes it unhealthy."""


class MachineDeploymentTopologyHealthCheckRemediationTriggerIf(Type):
    """When unhealthy Machines of a MachineDeployment are remediated."""

    openapi = NOT_EMPTY

    unhealthy_less_than_or_equal_to: int | str | None = None
    """Remediation only while at most so many Machines, a number or a share of all, are unhealthy."""
    unhealthy_in_range: Annotated[str, length(1, 32), pattern(r"^\[[0-9]+-[0-9]+\]$")] = ""
    """Remediation only while the number of unhealthy Machines is in this range, such as [3-5]."""


class MachineDeploymentTopologyHealthCheckRemediation(Type):
    """When and how unhealthy Machines of a MachineDeployment are remediated."""

    openapi = NOT_EMPTY

    max_in_flight: int | str | None = None
    """How many Machines, a number or a share of the replicas, are remediated at one time; as many as there are without it."""
    trigger_if: MachineDeploymentTopologyHealthCheckRemediationTriggerIf = field(
        default_factory=MachineDeploymentTopologyHealthCheckRemediationTriggerIf
    )
    """When unhealthy Machines are remediated; without it, always."""
    template_ref: MachineHealthCheckRemediationTemplateReference = field(default_factory=MachineHealthCheckRemediationTemplateReference)
    """A template that remediation requests are made from, for a controller of their own; without it, the Machine's owner replaces it."""


class MachineDeploymentTopologyHealthCheck(Type):
    """The health check of a MachineDeployment."""

    openapi = NOT_EMPTY

    enabled: bool | None = None
    """Whether there is a health check; without it, as the ClusterClass has it."""
    checks: MachineDeploymentTopologyHealthCheckChecks = field(default_factory=MachineDeploymentTopologyHealthCheckChecks)
    """What makes a Machine unhealthy."""
    remediation: MachineDeploymentTopologyHealthCheckRemediation = field(default_factory=MachineDeploymentTopologyHealthCheckRemediation)
    """How unhealthy Machines are remediated."""


class MachineDeploymentTopologyMachineDeletionSpec(Type):
    """Which Machines of a MachineDeployment go first, and how long each step may take."""

    openapi = NOT_EMPTY

    order: Annotated[str, one_of("Random", "Newest", "Oldest")] = ""
    """Which Machines go first: Random (so too without it), Newest or Oldest, after those that are marked, updating or unhealthy."""
    node_drain_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a drain may take before it is given up; without it or with 0, as long as it takes."""
    node_volume_detach_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long volumes may take to be detached; without it or with 0, as long as it takes."""
    node_deletion_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long to try to delete the Node once the Machine is deleted; 10 without it, and 0 to try without end."""


class MachineDeploymentTopologyRolloutStrategyRollingUpdate(Type):
    """The bounds of a rolling update of a MachineDeployment."""

    openapi = NOT_EMPTY

    max_unavailable: int | str | None = None
    """How many Machines, a number or a share of the replicas rounded down, may be missing during a rollout."""
    max_surge: int | str | None = None
    """How many Machines, a number or a share of the replicas rounded up, may be there beyond the replicas during a rollout."""


class MachineDeploymentTopologyRolloutStrategy(Type):
    """How Machines of a MachineDeployment are replaced."""

    openapi = NOT_EMPTY

    type: Annotated[str, one_of("RollingUpdate", "OnDelete"), REQUIRED] = ""
    """RollingUpdate or OnDelete."""
    rolling_update: MachineDeploymentTopologyRolloutStrategyRollingUpdate = field(
        default_factory=MachineDeploymentTopologyRolloutStrategyRollingUpdate
    )
    """Bounds of a rolling update."""


class MachineDeploymentTopologyRolloutSpec(Type):
    """How changes of a MachineDeployment are rolled out."""

    openapi = NOT_EMPTY

    after: Time = ""
    """The time after which every Machine that is older is replaced."""
    strategy: MachineDeploymentTopologyRolloutStrategy = field(default_factory=MachineDeploymentTopologyRolloutStrategy)
    """How Machines are replaced."""


class MachineDeploymentVariables(Type):
    """Values of variables for a MachineDeployment."""

    openapi = NOT_EMPTY

    overrides: Annotated[list[ClusterVariable], items(1, 1000, keys=("name",))] = field(default_factory=list)
    """Values that go before those of the whole cluster."""


class MachineDeploymentTopology(Type):
    """A MachineDeployment of a cluster that a ClusterClass describes."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations that the objects get."""
    class_: Annotated[Text256, REQUIRED] = ""
    """The name of the class in the ClusterClass."""
    name: Annotated[str, length(1, 63), pattern(DNS_SUBDOMAIN), REQUIRED] = ""
    """The name of the MachineDeployment in the topology."""
    failure_domain: Text256 = ""
    """The failure domain that the Machine is in."""
    replicas: Int32 | None = None
    """How many Machines it has."""
    health_check: MachineDeploymentTopologyHealthCheck = field(default_factory=MachineDeploymentTopologyHealthCheck)
    """The health check of these Machines."""
    deletion: MachineDeploymentTopologyMachineDeletionSpec = field(default_factory=MachineDeploymentTopologyMachineDeletionSpec)
    """How Machines are deleted."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""
    min_ready_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a Machine must be ready before it is available; 0 without it."""
    readiness_gates: Annotated[list[MachineReadinessGate], items(1, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Machine that count for its condition Ready."""
    rollout: MachineDeploymentTopologyRolloutSpec = field(default_factory=MachineDeploymentTopologyRolloutSpec)
    """How changes are rolled out."""
    variables: MachineDeploymentVariables = field(default_factory=MachineDeploymentVariables)
    """Values of the ClusterClass's variables."""


class MachinePoolTopologyMachineDeletionSpec(Type):
    """How long each step of the deletion of a pool's Machine may take."""

    openapi = NOT_EMPTY

    node_drain_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a drain may take before it is given up; without it or with 0, as long as it takes."""
    node_volume_detach_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long volumes may take to be detached; without it or with 0, as long as it takes."""
    node_deletion_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long to try to delete the Node once the Machine is deleted; 10 without it, and 0 to try without end."""


class MachinePoolVariables(Type):
    """Values of variables for a MachinePool."""

    openapi = NOT_EMPTY

    overrides: Annotated[list[ClusterVariable], items(1, 1000, keys=("name",))] = field(default_factory=list)
    """Values that go before those of the whole cluster."""


class MachinePoolTopology(Type):
    """A MachinePool of a cluster that a ClusterClass describes."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations that the objects get."""
    class_: Annotated[Text256, REQUIRED] = ""
    """The name of the class in the ClusterClass."""
    name: Annotated[str, length(1, 63), pattern(DNS_SUBDOMAIN), REQUIRED] = ""
    """The name of the MachinePool in the topology."""
    failure_domains: Annotated[list[Text256], items(1, 100, atomic=True)] = field(default_factory=list)
    """The failure domains that the pool spreads over."""
    deletion: MachinePoolTopologyMachineDeletionSpec = field(default_factory=MachinePoolTopologyMachineDeletionSpec)
    """How Machines are deleted."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""
    min_ready_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a Machine must be ready before it is available; 0 without it."""
    replicas: Int32 | None = None
    """How many hosts it has."""
    variables: MachinePoolVariables = field(default_factory=MachinePoolVariables)
    """Values of the ClusterClass's variables."""


class WorkersTopology(Type):
    """The workers of a cluster that a ClusterClass describes."""

    openapi = NOT_EMPTY

    machine_deployments: Annotated[list[MachineDeploymentTopology], items(1, 2000, keys=("name",))] = field(default_factory=list)
    """Its MachineDeployments."""
    machine_pools: Annotated[list[MachinePoolTopology], items(1, 2000, keys=("name",))] = field(default_factory=list)
    """Its MachinePools."""


class Topology(Type):
    """A cluster that a ClusterClass describes. Slipway refuses it: ClusterClass stays upstream's."""

    class_ref: Annotated[ClusterClassRef, REQUIRED] = field(default_factory=ClusterClassRef)
    """The ClusterClass."""
    version: Annotated[Text256, REQUIRED] = ""
    """The Kubernetes version of the cluster."""
    control_plane: ControlPlaneTopology = field(default_factory=ControlPlaneTopology)
    """Its control plane."""
    workers: WorkersTopology = field(default_factory=WorkersTopology)
    """Its workers."""
    variables: Annotated[list[ClusterVariable], items(1, 1000, keys=("name",))] = field(default_factory=list)
    """Values of the ClusterClass's variables."""
