"""``infrastructure.cluster.x-k8s.io/v1beta1``: BaremetalMachine."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.machine import MachineAddress
from slipway.api.cluster.infrastructure.cluster import InitializationStatus
from slipway.api.cluster.infrastructure.names import ALLOCATION_POLICIES, CLEAN_POLICIES, KEEP, ORDERED, PHASES
from slipway.api.cluster.meta import CONDITIONS, DNS_SUBDOMAIN, Condition, Int64, ObjectMetadata, ObjectReference, Time, Type
from slipway.api.machinery.openapi import REQUIRED, at_least, default, items, length, one_of, pattern


class PoolReference(Type):
    """A MachineInventoryPool of the same namespace."""

    name: Annotated[str, length(1, 253), pattern(DNS_SUBDOMAIN), REQUIRED] = ""
    """The name of the pool."""


class BaremetalMachineSpec(Type):
    """Where a machine's host comes from."""

    machine_inventory_pool_ref: Annotated[PoolReference, REQUIRED] = field(default_factory=PoolReference)
    """The pool that a host is taken from; it never changes."""
    allocation_policy: Annotated[str, one_of(*ALLOCATION_POLICIES), default(ORDERED)] = ""
    """Ordered: the first host that is free, in the order of the pool. PreferSame: first those that a machine of the same control plane or
    deployment had, and one of them that is still being cleaned is waited for."""
    clean_policy: Annotated[str, one_of(*CLEAN_POLICIES), default(KEEP)] = ""
    """What is done when a host is given back. Keep: the node is ended, and what it left is cleared before the host is used again. Scrub: it
    is cleared at once, with the bootstrap data and the logs of Pods, for hosts that change hands."""
    provider_id: Annotated[str, length(None, 512)] = field(default="", name="providerID")
    """The identity that the Node has, too: baremetal:/// and the name of the inventory. The provider fills it in."""


class BaremetalMachineStatus(Type):
    """What has been observed of a BaremetalMachine."""

    phase: Annotated[str, one_of(*PHASES)] = ""
    """Where the object is in its life, in one word, for people."""
    ready: bool = False
    """Whether the host is a Node of the cluster; as the v1beta1 contract has it."""
    initialization: InitializationStatus = field(default_factory=InitializationStatus)
    """How far the object has come for the first time. Cluster API's controllers wait for it."""
    machine_inventory_ref: ObjectReference | None = None
    """The host: the one that is meant, before it is claimed, and the one that was claimed since."""
    plan_secret_ref: ObjectReference | None = None
    """The Secret that the host takes its plans from."""
    hostname: Annotated[str, length(None, 253)] = ""
    """The name that the host and its Node have."""
    image: Annotated[str, length(None, 1024)] = ""
    """The image that the host boots, as it was resolved."""
    last_applied_bootstrap_hash: Annotated[str, length(None, 64)] = ""
    """The SHA-256 of the user-data that the last reprovision plan has."""
    last_applied_plan_checksum: Annotated[str, length(None, 64)] = ""
    """The SHA-256 of the plan that was last written for this machine."""
    plan_written_time: Time = ""
    """When that plan was written."""
    boots_before: Annotated[str, length(None, 4096)] | None = None
    """The boots of Nodes that earlier machines on the host had left behind by then: none of them is the Node that the plan makes."""
    plan_applied_time: Time = ""
    """When the host was first seen to have applied it."""
    failure_domain: Annotated[str, length(None, 256)] = ""
    """The failure domain that the host is in, where its inventory is labelled with one."""
    addresses: Annotated[list[MachineAddress], items(None, 256, atomic=True)] = field(default_factory=list)
    """Addresses of the host."""
    failure_reason: str = ""
    """A word for an error that does not go away by itself: the Machine has to be deleted."""
    failure_message: str = ""
    """A sentence about an error that does not go away by itself."""
    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    observed_generation: Annotated[Int64, at_least(0)] = 0
    """The generation that the controller has last worked on to the end."""


class BaremetalMachine(Type):
    """A host of a pool that is, or becomes, a Node."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[BaremetalMachineSpec, REQUIRED] = field(default_factory=BaremetalMachineSpec)
    """Where the host comes from."""
    status: BaremetalMachineStatus = field(default_factory=BaremetalMachineStatus)
    """What has been observed of the object."""
