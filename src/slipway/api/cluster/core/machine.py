"""``cluster.x-k8s.io/v1beta2``: Machine, and what other kinds make Machines from."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.meta import (
    CONDITION_TYPE,
    CONDITIONS,
    DNS_SUBDOMAIN,
    NOT_EMPTY,
    Condition,
    ContractVersionedObjectReference,
    DeprecatedCondition,
    Int32,
    Int64,
    ObjectMeta,
    ObjectMetadata,
    Text256,
    Text512,
    Time,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of, pattern


class NodeSwapStatus(Type):
    """The swap of a Node."""

    capacity: Int64 | None = None
    """How much there is, in bytes."""


class NodeSystemInfo(Type):
    """What a Node says of its system, as core v1 has it."""

    always_printed = frozenset(
        {
            "machine_id",
            "system_uuid",
            "boot_id",
            "kernel_version",
            "os_image",
            "container_runtime_version",
            "kubelet_version",
            "kube_proxy_version",
            "operating_system",
            "architecture",
        }
    )

    machine_id: Annotated[str, REQUIRED] = field(default="", name="machineID")
    """The identity of the installation, from /etc/machine-id."""
    system_uuid: Annotated[str, REQUIRED] = field(default="", name="systemUUID")
    """The identity of the hardware."""
    boot_id: Annotated[str, REQUIRED] = field(default="", name="bootID")
    """The identity of the boot."""
    kernel_version: Annotated[str, REQUIRED] = ""
    """The version of the kernel."""
    os_image: Annotated[str, REQUIRED] = ""
    """The operating system, from /etc/os-release."""
    container_runtime_version: Annotated[str, REQUIRED] = ""
    """The container runtime and its version, such as containerd://2.1.0."""
    kubelet_version: Annotated[str, REQUIRED] = ""
    """The version of the kubelet."""
    kube_proxy_version: Annotated[str, REQUIRED] = ""
    """No longer filled by a kubelet."""
    operating_system: Annotated[str, REQUIRED] = ""
    """The kind of operating system, such as linux."""
    architecture: Annotated[str, REQUIRED] = ""
    """The architecture, such as amd64."""
    swap: NodeSwapStatus | None = None
    """The swap of the Node."""


class Bootstrap(Type):
    """Where a Machine's bootstrap data comes from: one of the two."""

    config_ref: ContractVersionedObjectReference = field(default_factory=ContractVersionedObjectReference)
    """The object of a bootstrap provider that makes the data; of the kind's template where this is a template."""
    data_secret_name: Annotated[str, length(0, 253)] | None = None
    """The name of the Secret that holds the data."""


class MachineReadinessGate(Type):
    """A condition that a Machine needs to be Ready."""

    condition_type: Annotated[str, length(1, 316), pattern(CONDITION_TYPE), REQUIRED] = ""
    """The name of the condition."""
    polarity: Annotated[str, one_of("Positive", "Negative")] = ""
    """Positive, so too without it: True is good. Negative: False is good."""


class MachineDeletionSpec(Type):
    """How long each step of a Machine's deletion may take."""

    openapi = NOT_EMPTY

    node_drain_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a drain may take before it is given up; without it or with 0, as long as it takes."""
    node_volume_detach_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long volumes may take to be detached; without it or with 0, as long as it takes."""
    node_deletion_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long to try to delete the Node once the Machine is deleted; 10 without it, and 0 to try without end."""


class MachineTaint(Type):
    """A taint that a Machine gives its Node."""

    key: Annotated[
        str,
        length(1, 317),
        pattern(r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"),
        REQUIRED,
    ] = ""
    """The key of the taint."""
    value: Annotated[str, length(1, 63), pattern(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")] = ""
    """The value of the taint."""
    effect: Annotated[str, one_of("NoSchedule", "PreferNoSchedule", "NoExecute"), REQUIRED] = ""
    """What the taint does: NoSchedule, PreferNoSchedule or NoExecute."""
    propagation: Annotated[str, one_of("Always", "OnInitialization"), REQUIRED] = ""
    """Always: the Node has the taint as long as the Machine. OnInitialization: the Node gets it once, when it is new."""


class MachineSpec(Type):
    """What a Machine is to be."""

    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the Cluster that the object belongs to; it never changes."""
    bootstrap: Annotated[Bootstrap, REQUIRED] = field(default_factory=Bootstrap)
    """Where the bootstrap data comes from."""
    infrastructure_ref: Annotated[ContractVersionedObjectReference, REQUIRED] = field(default_factory=ContractVersionedObjectReference)
    """The object of an infrastructure provider that makes the host; of the kind's template where this is a template."""
    version: Text256 = ""
    """The Kubernetes version of the Node."""
    provider_id: Text512 = field(default="", name="providerID")
    """The provider's identity of the host, equal to that of the Node."""
    failure_domain: Text256 = ""
    """The failure domain that the Machine is in."""
    min_ready_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a Machine must be ready before it is available; 0 without it."""
    readiness_gates: Annotated[list[MachineReadinessGate], items(1, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Machine that count for its condition Ready."""
    deletion: MachineDeletionSpec = field(default_factory=MachineDeletionSpec)
    """How long each step of the Machine's deletion may take."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints that the Machine gives its Node. A taint that others own, such as a cloud provider's, is not among them."""


class MachineInitializationStatus(Type):
    """How far a Machine has come for the first time."""

    openapi = NOT_EMPTY

    infrastructure_provisioned: bool | None = None
    """Whether the infrastructure is there; it stays true once it is."""
    bootstrap_data_secret_created: bool | None = None
    """Whether the Secret with the bootstrap data is there; it stays true once it is."""


class MachineNodeReference(Type):
    """The Node of a Machine."""

    name: Annotated[str, length(1, 253), pattern(DNS_SUBDOMAIN), REQUIRED] = ""
    """The name of the Node."""


class MachineAddress(Type):
    """An address of a Machine."""

    type: Annotated[str, one_of("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"), REQUIRED] = ""
    """What the address is: Hostname, ExternalIP, InternalIP, ExternalDNS or InternalDNS."""
    address: Annotated[Text256, REQUIRED] = ""
    """The address."""


class MachineDeletionStatus(Type):
    """When the steps of a Machine's deletion began."""

    node_drain_start_time: Time = ""
    """When the drain of the Node began."""
    wait_for_node_volume_detach_start_time: Time = ""
    """When the wait for volumes to be detached began."""
    wait_for_pre_drain_hook_start_time: Time = ""
    """When the wait for hooks before the drain began."""
    wait_for_pre_terminate_hook_start_time: Time = ""
    """When the wait for hooks before the host goes began."""


class MachineV1Beta1DeprecatedStatus(Type):
    """What v1beta1 had in a Machine's status."""

    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    failure_reason: str | None = None
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] | None = None
    """A sentence about an error that does not go away by itself."""


class MachineDeprecatedStatus(Type):
    """What earlier versions had in a Machine's status."""

    v1beta1: MachineV1Beta1DeprecatedStatus | None = None
    """What v1beta1 had in its status."""


class MachineStatus(Type):
    """What has been observed of a Machine."""

    openapi = NOT_EMPTY

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    initialization: MachineInitializationStatus = field(default_factory=MachineInitializationStatus)
    """How far the object has come for the first time. Cluster API's controllers wait for it."""
    node_ref: MachineNodeReference = field(default_factory=MachineNodeReference)
    """The Node of the Machine, once it is there."""
    node_info: NodeSystemInfo | None = None
    """What the Node says of its system."""
    last_updated: Time = ""
    """When the phase last changed."""
    addresses: Annotated[list[MachineAddress], items(None, 256, atomic=True)] = field(default_factory=list)
    """Addresses of the Machine, as its infrastructure reports them."""
    failure_domain: Text256 = ""
    """The failure domain that the provider put the Machine in."""
    phase: Annotated[
        str, one_of("Pending", "Provisioning", "Provisioned", "Running", "Updating", "Deleting", "Deleted", "Failed", "Unknown")
    ] = ""
    """Where the object is in its life, in one word, for people."""
    certificates_expiry_date: Time = ""
    """When the certificates of a control plane's Machine expire."""
    observed_generation: Annotated[Int64, at_least(1)] = 0
    """The generation that the controller has last worked on to the end."""
    deletion: MachineDeletionStatus | None = None
    """When the steps of the deletion began."""
    deprecated: MachineDeprecatedStatus | None = None
    """What earlier versions had in their status."""


class Machine(Type):
    """A host that is, or becomes, a Node of a cluster."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[MachineSpec, REQUIRED] = field(default_factory=MachineSpec)
    """What the Machine is to be."""
    status: MachineStatus = field(default_factory=MachineStatus)
    """What has been observed of the Machine."""


class MachineTemplateSpec(Type):
    """What Machines are made from."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations of each Machine."""
    spec: Annotated[MachineSpec, REQUIRED] = field(default_factory=MachineSpec)
    """The spec of each Machine."""
