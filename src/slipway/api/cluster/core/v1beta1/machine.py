"""``cluster.x-k8s.io/v1beta1``: Machine before v1beta2; converted, never worked with."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.machine import MachineTaint, NodeSystemInfo
from slipway.api.cluster.meta import (
    CONDITION_TYPE,
    CONDITIONS,
    Condition,
    DeprecatedCondition,
    Int64,
    ObjectMetadata,
    ObjectReference,
    TemplateMeta,
    Text256,
    Text512,
    Time,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, items, length, one_of, pattern


class Bootstrap(Type):
    """Where a Machine's bootstrap data comes from: one of the two."""

    config_ref: ObjectReference | None = None
    """The object of a bootstrap provider that makes the data; of the kind's template where this is a template."""
    data_secret_name: Annotated[str, length(0, 253)] | None = None
    """The name of the Secret that holds the data."""


class MachineReadinessGate(Type):
    """A condition that a Machine needs to be Ready."""

    always_printed = frozenset({"condition_type"})

    condition_type: Annotated[str, length(1, 316), pattern(CONDITION_TYPE), REQUIRED] = ""
    """The name of the condition."""
    polarity: Annotated[str, one_of("Positive", "Negative")] = ""
    """Positive, so too without it: True is good. Negative: False is good."""


class MachineSpec(Type):
    """What a Machine is to be."""

    always_printed = frozenset({"cluster_name", "bootstrap", "infrastructure_ref"})

    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the Cluster that the object belongs to; it never changes."""
    bootstrap: Annotated[Bootstrap, REQUIRED] = field(default_factory=Bootstrap)
    """Where the bootstrap data comes from."""
    infrastructure_ref: Annotated[ObjectReference, REQUIRED] = field(default_factory=ObjectReference)
    """The object of an infrastructure provider that makes the host; of the kind's template where this is a template."""
    version: Text256 | None = None
    """The Kubernetes version of the Node."""
    provider_id: Text512 | None = field(default=None, name="providerID")
    """The provider's identity of the host, equal to that of the Node."""
    failure_domain: Text256 | None = None
    """The failure domain that the Machine is in."""
    readiness_gates: Annotated[list[MachineReadinessGate], items(None, 32, keys=("conditionType",))] = field(default_factory=list)
    """More conditions of the Machine that count for its condition Ready."""
    node_drain_timeout: str | None = None
    """How long a drain may take before it is given up, as a duration such as 30s; without it or with 0s, as long as it takes."""
    node_volume_detach_timeout: str | None = None
    """How long volumes may take to be detached, as a duration; without it or with 0s, as long as it takes."""
    node_deletion_timeout: str | None = None
    """How long to try to delete the Node, as a duration; 10s without it, and 0s to try without end."""
    taints: Annotated[list[MachineTaint], items(1, 64, keys=("key", "effect"))] = field(default_factory=list)
    """Taints that the Machine gives its Node. A taint that others own, such as a cloud provider's, is not among them."""


class MachineAddress(Type):
    """An address of a Machine."""

    always_printed = frozenset({"type", "address"})

    type: Annotated[str, one_of("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"), REQUIRED] = ""
    """What the address is: Hostname, ExternalIP, InternalIP, ExternalDNS or InternalDNS."""
    address: Annotated[Text256, REQUIRED] = ""
    """The address."""


class MachineDeletionStatus(Type):
    """When the steps of a Machine's deletion began."""

    node_drain_start_time: Time | None = None
    """When the drain of the Node began."""
    wait_for_node_volume_detach_start_time: Time | None = None
    """When the wait for volumes to be detached began."""
    wait_for_pre_drain_hook_start_time: Time | None = None
    """When the wait for hooks before the drain began."""
    wait_for_pre_terminate_hook_start_time: Time | None = None
    """When the wait for hooks before the host goes began."""


class MachineV1Beta2Status(Type):
    """What v1beta2 has in a Machine's status."""

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""


class MachineStatus(Type):
    """What has been observed of a Machine."""

    always_printed = frozenset({"bootstrap_ready", "infrastructure_ready"})

    node_ref: ObjectReference | None = None
    """The Node of the Machine, once it is there."""
    node_info: NodeSystemInfo | None = None
    """What the Node says of its system."""
    last_updated: Time | None = None
    """When the phase last changed."""
    failure_reason: str | None = None
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] | None = None
    """A sentence about an error that does not go away by itself."""
    addresses: list[MachineAddress] = field(default_factory=list)
    """Addresses of the Machine, as its infrastructure reports them."""
    phase: Annotated[str, one_of("Pending", "Provisioning", "Provisioned", "Running", "Deleting", "Deleted", "Failed", "Unknown")] = ""
    """Where the object is in its life, in one word, for people."""
    certificates_expiry_date: Time | None = None
    """When the certificates of a control plane's Machine expire."""
    bootstrap_ready: bool = False
    """Whether the Secret with the bootstrap data is there."""
    infrastructure_ready: bool = False
    """Whether the infrastructure is there."""
    observed_generation: Int64 = 0
    """The generation that the controller has last worked on to the end."""
    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    deletion: MachineDeletionStatus | None = None
    """When the steps of the deletion began."""
    v1beta2: MachineV1Beta2Status | None = None
    """What v1beta2 has in its status."""


class Machine(Type):
    """A host that is, or becomes, a Node of a cluster."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: MachineSpec = field(default_factory=MachineSpec)
    """What the Machine is to be."""
    status: MachineStatus = field(default_factory=MachineStatus)
    """What has been observed of the Machine."""


class MachineTemplateSpec(Type):
    """What Machines are made from."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of each Machine."""
    spec: MachineSpec = field(default_factory=MachineSpec)
    """The spec of each Machine."""
