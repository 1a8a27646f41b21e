"""``infrastructure.cluster.x-k8s.io/v1beta1``: BaremetalCluster."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.cluster import FailureDomain
from slipway.api.cluster.infrastructure.names import EXTERNAL, INTERNAL
from slipway.api.cluster.meta import CONDITIONS, Condition, Int32, Int64, ObjectMetadata, Type
from slipway.api.machinery.openapi import REQUIRED, at_least, between, default, items, length, one_of

DEFAULT_PORT = 6443
DEFAULT_NETWORK_DEVICE = "eth0"


class Endpoint(Type):
    """Where the API server of the cluster is reached."""

    host: Annotated[str, length(None, 253)] = ""
    """The name or address of the host."""
    port: Annotated[Int32, between(0, 65535)] = 0
    """The port; 6443 where the host is known and it is 0."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ControlPlaneLoadBalancer(Type):
    """What stands in front of the API servers."""

    host: Annotated[str, length(1, 253), REQUIRED] = ""
    """The address that every API server is reached by: a virtual one, or that of a load balancer."""
    port: Annotated[Int32, between(1, 65535), default(DEFAULT_PORT)] = 0
    """The port; 6443 without it."""
    type: Annotated[str, one_of(INTERNAL, EXTERNAL), default(INTERNAL)] = ""
    """Internal: the control plane's hosts hold the address among themselves. External: somebody else takes care of it."""
    vrid: Annotated[Int32, between(0, 255)] | None = None
    """The identity of the virtual router, unique in the hosts' network segment; Internal needs one from 1 to 255."""


class BaremetalClusterSpec(Type):
    """What the clusters of a bare-metal provider need."""

    control_plane_endpoint: Endpoint = field(default_factory=Endpoint)
    """Where the API server is reached; filled in from the load balancer, and never changed once it is there."""
    control_plane_load_balancer: ControlPlaneLoadBalancer | None = None
    """What stands in front of the API servers."""
    network_type: Annotated[str, length(None, 63)] = ""
    """The network of the cluster's Pods, for whoever installs it."""
    network_device: Annotated[str, length(1, 15), default(DEFAULT_NETWORK_DEVICE)] = ""
    """The hosts' network device that the cluster uses; eth0 without it. An entry of a pool may name another one."""


class InitializationStatus(Type):
    """How far an object has come for the first time."""

    provisioned: bool | None = None
    """Whether all of it is there; it stays true once it is."""


class BaremetalClusterStatus(Type):
    """What has been observed of a BaremetalCluster."""

    ready: bool = False
    """Whether machines can be made; as the v1beta1 contract has it."""
    initialization: InitializationStatus = field(default_factory=InitializationStatus)
    """How far the object has come for the first time. Cluster API's controllers wait for it."""
    failure_domains: Annotated[list[FailureDomain], items(None, 100, keys=("name",))] = field(default_factory=list)
    """The failure domains that hosts of the cluster's pools are labelled with; a control plane is spread over them."""
    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    observed_generation: Annotated[Int64, at_least(0)] = 0
    """The generation that the controller has last worked on to the end."""


class BaremetalCluster(Type):
    """What a cluster on bare metal stands on: the address of its control plane."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: BaremetalClusterSpec = field(default_factory=BaremetalClusterSpec)
    """What the cluster needs."""
    status: BaremetalClusterStatus = field(default_factory=BaremetalClusterStatus)
    """What has been observed of the object."""
