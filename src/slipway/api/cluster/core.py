"""What providers read of ``cluster.x-k8s.io/v1beta2`` and of a control plane.  Not the whole of these kinds: their CRDs are upstream's.

A controller that writes one of these objects changes the manifest that it has read, and never writes one of these types back.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from slipway.api.cluster.meta import Condition, ContractVersionedObjectReference, ObjectMeta, ObjectReference, Type

# https://cluster-api.sigs.k8s.io/reference/api/labels-and-annotations
CLUSTER_NAME_LABEL = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"
CONTROL_PLANE_NAME_LABEL = "cluster.x-k8s.io/control-plane-name"
DEPLOYMENT_NAME_LABEL = "cluster.x-k8s.io/deployment-name"
SET_NAME_LABEL = "cluster.x-k8s.io/set-name"
POOL_NAME_LABEL = "cluster.x-k8s.io/pool-name"
TOPOLOGY_OWNED_LABEL = "topology.cluster.x-k8s.io/owned"
WATCH_LABEL = "cluster.x-k8s.io/watch-filter"
PAUSED_ANNOTATION = "cluster.x-k8s.io/paused"
CLONED_FROM_NAME_ANNOTATION = "cluster.x-k8s.io/cloned-from-name"
CLONED_FROM_GROUP_KIND_ANNOTATION = "cluster.x-k8s.io/cloned-from-groupkind"
SECRET_TYPE = "cluster.x-k8s.io/secret"

READY_CONDITION = "Ready"
PAUSED_CONDITION = "Paused"
CONTROL_PLANE_INITIALIZED_CONDITION = "ControlPlaneInitialized"


class APIEndpoint(Type):
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class NetworkRanges(Type):
    cidr_blocks: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return ",".join(self.cidr_blocks)


class ClusterNetwork(Type):
    api_server_port: int = 0
    services: NetworkRanges = field(default_factory=NetworkRanges)
    pods: NetworkRanges = field(default_factory=NetworkRanges)
    service_domain: str = ""


class ClusterSpec(Type):
    paused: bool | None = None
    cluster_network: ClusterNetwork = field(default_factory=ClusterNetwork)
    control_plane_endpoint: APIEndpoint = field(default_factory=APIEndpoint)
    control_plane_ref: ContractVersionedObjectReference = field(default_factory=ContractVersionedObjectReference)
    infrastructure_ref: ContractVersionedObjectReference = field(default_factory=ContractVersionedObjectReference)
    topology: dict[str, Any] = field(default_factory=dict)


class ClusterInitializationStatus(Type):
    infrastructure_provisioned: bool | None = None
    control_plane_initialized: bool | None = None


class FailureDomain(Type):
    name: str = ""
    control_plane: bool | None = None
    attributes: dict[str, str] = field(default_factory=dict)


class ClusterStatus(Type):
    conditions: list[Condition] = field(default_factory=list)
    initialization: ClusterInitializationStatus = field(default_factory=ClusterInitializationStatus)
    failure_domains: list[FailureDomain] = field(default_factory=list)
    phase: str = ""
    observed_generation: int = 0


class Cluster(Type):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    spec: ClusterSpec = field(default_factory=ClusterSpec)
    status: ClusterStatus = field(default_factory=ClusterStatus)


class Bootstrap(Type):
    config_ref: ContractVersionedObjectReference = field(default_factory=ContractVersionedObjectReference)
    data_secret_name: str | None = None


class MachineDeletionSpec(Type):
    node_drain_timeout_seconds: int | None = None
    node_volume_detach_timeout_seconds: int | None = None
    node_deletion_timeout_seconds: int | None = None


class MachineSpec(Type):
    cluster_name: str = ""
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    infrastructure_ref: ContractVersionedObjectReference = field(default_factory=ContractVersionedObjectReference)
    version: str = ""
    provider_id: str = field(default="", name="providerID")
    failure_domain: str = ""
    min_ready_seconds: int | None = None
    deletion: MachineDeletionSpec = field(default_factory=MachineDeletionSpec)


class MachineInitializationStatus(Type):
    infrastructure_provisioned: bool | None = None
    bootstrap_data_secret_created: bool | None = None


class MachineNodeReference(Type):
    name: str = ""


class MachineAddress(Type):
    type: str = ""
    address: str = ""


class MachineStatus(Type):
    conditions: list[Condition] = field(default_factory=list)
    initialization: MachineInitializationStatus = field(default_factory=MachineInitializationStatus)
    node_ref: MachineNodeReference = field(default_factory=MachineNodeReference)
    node_info: dict[str, Any] | None = None
    addresses: list[MachineAddress] = field(default_factory=list)
    failure_domain: str = ""
    phase: str = ""
    certificates_expiry_date: str = ""
    observed_generation: int = 0


class Machine(Type):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    spec: MachineSpec = field(default_factory=MachineSpec)
    status: MachineStatus = field(default_factory=MachineStatus)


class MachineTemplateSpec(Type):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: MachineSpec = field(default_factory=MachineSpec)


class MachinePoolSpec(Type):
    cluster_name: str = ""
    replicas: int | None = None
    template: MachineTemplateSpec = field(default_factory=MachineTemplateSpec)
    provider_id_list: list[str] = field(default_factory=list, name="providerIDList")
    failure_domains: list[str] = field(default_factory=list)


class MachinePoolStatus(Type):
    conditions: list[Condition] = field(default_factory=list)
    initialization: MachineInitializationStatus = field(default_factory=MachineInitializationStatus)
    node_refs: list[ObjectReference] = field(default_factory=list)
    replicas: int | None = None
    ready_replicas: int | None = None
    phase: str = ""
    observed_generation: int = 0


class MachinePool(Type):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    spec: MachinePoolSpec = field(default_factory=MachinePoolSpec)
    status: MachinePoolStatus = field(default_factory=MachinePoolStatus)


class ControlPlaneSpec(Type):
    version: str = ""


class ControlPlane(Type):
    """An object that a Cluster's controlPlaneRef leads to: what the contract says of all of them, KubeadmControlPlane's included."""

    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    spec: ControlPlaneSpec = field(default_factory=ControlPlaneSpec)
