"""``cluster.x-k8s.io/v1beta1``: Cluster before v1beta2; converted, never worked with."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.cluster import ClusterControlPlaneStatus, WorkersStatus
from slipway.api.cluster.core.v1beta1.topology import Topology
from slipway.api.cluster.meta import (
    CONDITION_TYPE,
    CONDITIONS,
    Condition,
    DeprecatedCondition,
    Int32,
    Int64,
    ObjectMetadata,
    ObjectReference,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, items, length, one_of, pattern


class NetworkRanges(Type):
    """Ranges of addresses."""

    always_printed = frozenset({"cidr_blocks"})

    cidr_blocks: Annotated[list[Annotated[str, length(1, 43)]], items(None, 100), REQUIRED] = field(default_factory=list)
    """The ranges, as CIDR blocks."""


class ClusterNetwork(Type):
    """The network of a cluster."""

    api_server_port: Int32 | None = None
    """The port of the API server; 6443 without it."""
    services: NetworkRanges | None = None
    """The ranges that Services get addresses from."""
    pods: NetworkRanges | None = None
    """The ranges that Pods get addresses from."""
    service_domain: Annotated[str, length(1, 253)] = ""
    """The domain of the names of Services."""


class APIEndpoint(Type):
    """Where an API server is reached."""

    always_printed = frozenset({"host", "port"})

    host: Annotated[str, length(None, 512)] = ""
    """The name or address of the host."""
    port: Int32 = 0
    """The port."""


class ClusterAvailabilityGate(Type):
    """A condition that a Cluster needs to be Available."""

    always_printed = frozenset({"condition_type"})

    condition_type: Annotated[str, length(1, 316), pattern(CONDITION_TYPE), REQUIRED] = ""
    """The name of the condition."""
    polarity: Annotated[str, one_of("Positive", "Negative")] = ""
    """Positive, so too without it: True is good. Negative: False is good."""


class ClusterSpec(Type):
    """What a Cluster is to be."""

    paused: bool = False
    """Whether no controller works on the objects of this cluster."""
    cluster_network: ClusterNetwork | None = None
    """The network of the cluster."""
    control_plane_endpoint: APIEndpoint = field(default_factory=APIEndpoint)
    """Where its API server is reached."""
    control_plane_ref: ObjectReference | None = None
    """The object of a control plane provider that runs the control plane."""
    infrastructure_ref: ObjectReference | None = None
    """The object of an infrastructure provider that the cluster stands on."""
    topology: Topology | None = None
    """The cluster in terms of a ClusterClass. Slipway refuses it."""
    availability_gates: Annotated[list[ClusterAvailabilityGate], items(None, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Cluster that count for its condition Available."""


class FailureDomainSpec(Type):
    """A failure domain, as the infrastructure provider reports it."""

    control_plane: bool = False
    """Whether Machines of a control plane may be in it."""
    attributes: dict[str, str] = field(default_factory=dict)
    """What else the provider says of it."""


class ClusterV1Beta2Status(Type):
    """What v1beta2 has in a Cluster's status."""

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    control_plane: ClusterControlPlaneStatus | None = None
    """The Machines of the control plane, counted."""
    workers: WorkersStatus | None = None
    """The Machines of the workers, counted."""


class ClusterStatus(Type):
    """What has been observed of a Cluster."""

    always_printed = frozenset({"infrastructure_ready", "control_plane_ready"})

    failure_domains: dict[str, FailureDomainSpec] = field(default_factory=dict)
    """Failure domains, as the infrastructure provider reports them."""
    failure_reason: str | None = None
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] | None = None
    """A sentence about an error that does not go away by itself."""
    phase: Annotated[str, one_of("Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown")] = ""
    """Where the object is in its life, in one word, for people."""
    infrastructure_ready: bool = False
    """Whether the infrastructure is there."""
    control_plane_ready: bool = False
    """Whether the API server can take requests."""
    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    observed_generation: Int64 = 0
    """The generation that the controller has last worked on to the end."""
    v1beta2: ClusterV1Beta2Status | None = None
    """What v1beta2 has in its status."""


class Cluster(Type):
    """A Kubernetes cluster."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: ClusterSpec = field(default_factory=ClusterSpec)
    """What the Cluster is to be."""
    status: ClusterStatus = field(default_factory=ClusterStatus)
    """What has been observed of the Cluster."""
