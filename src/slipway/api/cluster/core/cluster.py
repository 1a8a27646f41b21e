"""``cluster.x-k8s.io/v1beta2``: Cluster."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.topology import Topology
from slipway.api.cluster.meta import (
    CONDITION_TYPE,
    CONDITIONS,
    NOT_EMPTY,
    Condition,
    ContractVersionedObjectReference,
    DeprecatedCondition,
    Int32,
    Int64,
    ObjectMetadata,
    StatusVersion,
    Text256,
    Text512,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, at_least, between, items, length, one_of, pattern


class NetworkRanges(Type):
    """Ranges of addresses."""

    cidr_blocks: Annotated[list[Annotated[str, length(1, 43)]], items(1, 100, atomic=True), REQUIRED] = field(default_factory=list)
    """The ranges, as CIDR blocks."""

    def __str__(self) -> str:
        return ",".join(self.cidr_blocks)


class ClusterNetwork(Type):
    """The network of a cluster."""

    openapi = NOT_EMPTY

    api_server_port: Annotated[Int32, between(1, 65535)] = 0
    """The port of the API server; 6443 without it."""
    services: NetworkRanges = field(default_factory=NetworkRanges)
    """The ranges that Services get addresses from."""
    pods: NetworkRanges = field(default_factory=NetworkRanges)
    """The ranges that Pods get addresses from."""
    service_domain: Annotated[str, length(1, 253)] = ""
    """The domain of the names of Services."""


class APIEndpoint(Type):
    """Where an API server is reached."""

    openapi = NOT_EMPTY

    host: Text512 = ""
    """The name or address of the host."""
    port: Annotated[Int32, between(1, 65535)] = 0
    """The port."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ClusterAvailabilityGate(Type):
    """A condition that a Cluster needs to be Available."""

    condition_type: Annotated[str, length(1, 316), pattern(CONDITION_TYPE), REQUIRED] = ""
    """The name of the condition."""
    polarity: Annotated[str, one_of("Positive", "Negative")] = ""
    """Positive, so too without it: True is good. Negative: False is good."""


class ClusterSpec(Type):
    """What a Cluster is to be."""

    openapi = NOT_EMPTY

    paused: bool | None = None
    """Whether no controller works on the objects of this cluster."""
    cluster_network: ClusterNetwork = field(default_factory=ClusterNetwork)
    """The network of the cluster."""
    control_plane_endpoint: APIEndpoint = field(default_factory=APIEndpoint)
    """Where its API server is reached."""
    control_plane_ref: ContractVersionedObjectReference = field(default_factory=ContractVersionedObjectReference)
    """The object of a control plane provider that runs the control plane."""
    infrastructure_ref: ContractVersionedObjectReference = field(default_factory=ContractVersionedObjectReference)
    """The object of an infrastructure provider that the cluster stands on."""
    topology: Topology = field(default_factory=Topology)
    """The cluster in terms of a ClusterClass. Slipway refuses it."""
    availability_gates: Annotated[list[ClusterAvailabilityGate], items(1, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Cluster that count for its condition Available."""


class ClusterInitializationStatus(Type):
    """How far a Cluster has come for the first time."""

    openapi = NOT_EMPTY

    infrastructure_provisioned: bool | None = None
    """Whether the infrastructure is there; it stays true once it is."""
    control_plane_initialized: bool | None = None
    """Whether the API server can take requests; it stays true once it is."""


class StatusUpgradePlanVersion(Type):
    """A version on the way of an upgrade."""

    version: Annotated[Text256, REQUIRED] = ""
    """The Kubernetes version."""


class ClusterControlPlaneStatus(Type):
    """The Machines of a cluster's control plane, counted."""

    desired_replicas: Int32 | None = None
    """How many Machines are wanted."""
    replicas: Int32 | None = None
    """How many Machines there are, those that are being deleted included."""
    up_to_date_replicas: Int32 | None = None
    """How many Machines have the condition UpToDate."""
    ready_replicas: Int32 | None = None
    """How many Machines have the condition Ready."""
    available_replicas: Int32 | None = None
    """How many Machines have the condition Available."""
    versions: Annotated[list[StatusVersion], items(1, 32, atomic=True)] = field(default_factory=list)
    """The Kubernetes versions of the Machines, and how many have each."""
    upgrade_plan: Annotated[list[StatusUpgradePlanVersion], items(1, 32, atomic=True)] = field(default_factory=list)
    """The versions that are still to come on the way to the one wanted."""


class WorkersStatus(Type):
    """The Machines of a cluster's workers, counted."""

    desired_replicas: Int32 | None = None
    """How many Machines are wanted."""
    replicas: Int32 | None = None
    """How many Machines there are, those that are being deleted included."""
    up_to_date_replicas: Int32 | None = None
    """How many Machines have the condition UpToDate."""
    ready_replicas: Int32 | None = None
    """How many Machines have the condition Ready."""
    available_replicas: Int32 | None = None
    """How many Machines have the condition Available."""
    versions: Annotated[list[StatusVersion], items(1, 32, atomic=True)] = field(default_factory=list)
    """The Kubernetes versions of the Machines, and how many have each."""
    upgrade_plan: Annotated[list[StatusUpgradePlanVersion], items(1, 32, atomic=True)] = field(default_factory=list)
    """The versions that are still to come on the way to the one wanted."""


class FailureDomain(Type):
    """A failure domain, as the infrastructure provider reports it."""

    name: Annotated[Text256, REQUIRED] = ""
    """The name of the failure domain."""
    control_plane: bool | None = None
    """Whether Machines of a control plane may be in it."""
    attributes: dict[str, str] = field(default_factory=dict)
    """What else the provider says of it."""


class ClusterV1Beta1DeprecatedStatus(Type):
    """What v1beta1 had in a Cluster's status."""

    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    failure_reason: str | None = None
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] | None = None
    """A sentence about an error that does not go away by itself."""


class ClusterDeprecatedStatus(Type):
    """What earlier versions had in a Cluster's status."""

    v1beta1: ClusterV1Beta1DeprecatedStatus | None = None
    """What v1beta1 had in its status."""


class ClusterStatus(Type):
    """What has been observed of a Cluster."""

    openapi = NOT_EMPTY

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    initialization: ClusterInitializationStatus = field(default_factory=ClusterInitializationStatus)
    """How far the object has come for the first time. Cluster API's controllers wait for it."""
    control_plane: ClusterControlPlaneStatus | None = None
    """The Machines of the control plane, counted."""
    workers: WorkersStatus | None = None
    """The Machines of the workers, counted."""
    failure_domains: Annotated[list[FailureDomain], items(1, 100, keys=("name",))] = field(default_factory=list)
    """Failure domains, as the infrastructure provider reports them."""
    phase: Annotated[str, one_of("Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown")] = ""
    """Where the object is in its life, in one word, for people."""
    observed_generation: Annotated[Int64, at_least(1)] = 0
    """The generation that the controller has last worked on to the end."""
    deprecated: ClusterDeprecatedStatus | None = None
    """What earlier versions had in their status."""


class Cluster(Type):
    """A Kubernetes cluster."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[ClusterSpec, REQUIRED] = field(default_factory=ClusterSpec)
    """What the Cluster is to be."""
    status: ClusterStatus = field(default_factory=ClusterStatus)
    """What has been observed of the Cluster."""
