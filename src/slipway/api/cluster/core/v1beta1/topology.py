"""``cluster.x-k8s.io/v1beta1``: a Cluster in terms of a ClusterClass, before v1beta2."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from slipway.api.cluster.core.machine import MachineTaint
from slipway.api.cluster.core.topology import ControlPlaneTopologyRolloutSpec
from slipway.api.cluster.core.v1beta1.machine import MachineReadinessGate
from slipway.api.cluster.core.v1beta1.machinedeployment import MachineDeploymentStrategy
from slipway.api.cluster.core.v1beta1.machinehealthcheck import UnhealthyCondition, UnhealthyMachineCondition
from slipway.api.cluster.meta import NOT_EMPTY, Int32, ObjectReference, TemplateMeta, Text256, Time, Type
from slipway.api.machinery.openapi import REQUIRED, items, length, pattern


class MachineHealthCheckClass(Type):
    """The health check of some Machines."""

    unhealthy_conditions: Annotated[list[UnhealthyCondition], items(None, 100)] = field(default_factory=list)
    """Conditions of a Node, any of which makes its Machine unhealthy."""
    unhealthy_machine_conditions: Annotated[list[UnhealthyMachineCondition], items(1, 100, atomic=True)] = field(default_factory=list)
    """Conditions of a Machine, any of which makes it unhealthy."""
    max_unhealthy: int | str | None = None
    """Remediation only while at most so many Machines, a number or a share of all, are unhealthy."""
    unhealthy_range: Annotated[str, length(1, 32), pattern(r"^\[[0-9]+-[0-9]+\]$")] | None = None
    """Remediation only while the number of unhealthy Machines is in this range, such as [3-5]."""
    node_startup_timeout: str | None = None
    """How long a Machine may be without a Node before it is unhealthy, as a duration; 10m without it, and 0s for ever."""
    remediation_template: ObjectReference | None = None
    """A template that remediation requests are made from; without it, the Machine's owner replaces it."""


class MachineHealthCheckTopology(Type):
    """The health check of some Machines, in a topology."""

    enable: bool | None = None
    """Whether there is a health check; without it, as the ClusterClass has it."""
    unhealthy_conditions: Annotated[list[UnhealthyCondition], items(None, 100)] = field(default_factory=list)
    """Conditions of a Node, any of which makes its Machine unhealthy."""
    unhealthy_machine_conditions: Annotated[list[UnhealthyMachineCondition], items(1, 100, atomic=True)] = field(default_factory=list)
    """Conditions of a Machine, any of which makes it unhealthy."""
    max_unhealthy: int | str | None = None
    """Remediation only while at most so many Machines, a number or a share of all, are unhealthy."""
    unhealthy_range: Annotated[str, length(1, 32), pattern(r"^\[[0-9]+-[0-9]+\]$")] | None = None
    """Remediation only while the number of unhealthy Machines is in this range, such as [3-5]."""
    node_startup_timeout: str | None = None
    """How long a Machine may be without a Node before it is unhealthy, as a duration; 10m without it, and 0s for ever."""
    remediation_template: ObjectReference | None = None
    """A template that remediation requests are made from; without it, the Machine's owner replaces it."""


class ClusterVariable(Type):
    """The value of a variable."""

    always_printed = frozenset({"name", "value"})

    name: Annotated[Text256, REQUIRED] = ""
    """The name of the variable."""
    definition_from: Annotated[str, length(None, 256)] = ""
    """Without effect: where the variable was defined."""
    value: Annotated[Any, REQUIRED] = None
    """Its value, any JSON that the variable's schema allows."""


class ControlPlaneVariables(Type):
    """Values of variables for the control plane."""

    overrides: Annotated[list[ClusterVariable], items(None, 1000, keys=("name",))] = field(default_factory=list)
    """Values that go before those of the whole cluster."""


class ControlPlaneTopology(Type):
    """The control plane of a cluster that a ClusterClass describes."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations that the objects get."""
    replicas: Int32 | None = None
    """How many Machines the control plane has."""
    rollout: ControlPlaneTopologyRolloutSpec | None = None
    """How changes are rolled out."""
    machine_health_check: MachineHealthCheckTopology | None = None
    """The health check of these Machines."""
    node_drain_timeout: str | None = None
    """How long a drain may take before it is given up, as a duration such as 30s; without it or with 0s, as long as it takes."""
    node_volume_detach_timeout: str | None = None
    """How long volumes may take to be detached, as a duration; without it or with 0s, as long as it takes."""
    node_deletion_timeout: str | None = None
    """How long to try to delete the Node, as a duration; 10s without it, and 0s to try without end."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""
    readiness_gates: Annotated[list[MachineReadinessGate], items(None, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Machine that count for its condition Ready."""
    variables: ControlPlaneVariables | None = None
    """Values of the ClusterClass's variables."""


class MachineDeploymentTopologyRolloutSpec(Type):
    """How changes of a MachineDeployment are rolled out."""

    openapi = NOT_EMPTY

    after: Time = ""
    """The time after which every Machine that is older is replaced."""


class MachineDeploymentVariables(Type):
    """Values of variables for a MachineDeployment."""

    overrides: Annotated[list[ClusterVariable], items(None, 1000, keys=("name",))] = field(default_factory=list)
    """Values that go before those of the whole cluster."""


class MachineDeploymentTopology(Type):
    """A MachineDeployment of a cluster that a ClusterClass describes."""

    always_printed = frozenset({"class_", "name"})

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations that the objects get."""
    class_: Annotated[Text256, REQUIRED] = ""
    """The name of the class in the ClusterClass."""
    name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the MachineDeployment in the topology."""
    failure_domain: Text256 | None = None
    """The failure domain that the Machine is in."""
    replicas: Int32 | None = None
    """How many Machines it has."""
    machine_health_check: MachineHealthCheckTopology | None = None
    """The health check of these Machines."""
    node_drain_timeout: str | None = None
    """How long a drain may take before it is given up, as a duration such as 30s; without it or with 0s, as long as it takes."""
    node_volume_detach_timeout: str | None = None
    """How long volumes may take to be detached, as a duration; without it or with 0s, as long as it takes."""
    node_deletion_timeout: str | None = None
    """How long to try to delete the Node, as a duration; 10s without it, and 0s to try without end."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""
    min_ready_seconds: Int32 | None = None
    """How long a Machine must be ready before it is available; 0 without it."""
    readiness_gates: Annotated[list[MachineReadinessGate], items(None, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Machine that count for its condition Ready."""
    rollout: MachineDeploymentTopologyRolloutSpec | None = None
    """How changes are rolled out."""
    strategy: MachineDeploymentStrategy | None = None
    """How Machines are replaced."""
    variables: MachineDeploymentVariables | None = None
    """Values of the ClusterClass's variables."""


class MachinePoolVariables(Type):
    """Values of variables for a MachinePool."""

    overrides: Annotated[list[ClusterVariable], items(None, 1000, keys=("name",))] = field(default_factory=list)
    """Values that go before those of the whole cluster."""


class MachinePoolTopology(Type):
    """A MachinePool of a cluster that a ClusterClass describes."""

    always_printed = frozenset({"class_", "name"})

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations that the objects get."""
    class_: Annotated[Text256, REQUIRED] = ""
    """The name of the class in the ClusterClass."""
    name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the MachinePool in the topology."""
    failure_domains: Annotated[list[Text256], items(None, 100)] = field(default_factory=list)
    """The failure domains that the pool spreads over."""
    node_drain_timeout: str | None = None
    """How long a drain may take before it is given up, as a duration such as 30s; without it or with 0s, as long as it takes."""
    node_volume_detach_timeout: str | None = None
    """How long volumes may take to be detached, as a duration; without it or with 0s, as long as it takes."""
    node_deletion_timeout: str | None = None
    """How long to try to delete the Node, as a duration; 10s without it, and 0s to try without end."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints of the Node."""
    min_ready_seconds: Int32 | None = None
    """How long a Machine must be ready before it is available; 0 without it."""
    replicas: Int32 | None = None
    """How many hosts it has."""
    variables: MachinePoolVariables | None = None
    """Values of the ClusterClass's variables."""


class WorkersTopology(Type):
    """The workers of a cluster that a ClusterClass describes."""

    machine_deployments: Annotated[list[MachineDeploymentTopology], items(None, 2000, keys=("name",))] = field(default_factory=list)
    """Its MachineDeployments."""
    machine_pools: Annotated[list[MachinePoolTopology], items(None, 2000, keys=("name",))] = field(default_factory=list)
    """Its MachinePools."""


class Topology(Type):
    """A cluster that a ClusterClass describes. Slipway refuses it: ClusterClass stays upstream's."""

    always_printed = frozenset({"class_", "version"})

    class_: Annotated[str, length(1, 253), REQUIRED] = ""
    """The name of the class in the ClusterClass."""
    class_namespace: Annotated[str, length(1, 63), pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] = ""
    """The namespace of the ClusterClass; that of the Cluster without it."""
    version: Annotated[Text256, REQUIRED] = ""
    """The Kubernetes version of the cluster."""
    rollout_after: Time | None = None
    """The time after which every Machine that is older is replaced."""
    control_plane: ControlPlaneTopology = field(default_factory=ControlPlaneTopology)
    """Its control plane."""
    workers: WorkersTopology | None = None
    """Its workers."""
    variables: Annotated[list[ClusterVariable], items(None, 1000, keys=("name",))] = field(default_factory=list)
    """Values of the ClusterClass's variables."""
