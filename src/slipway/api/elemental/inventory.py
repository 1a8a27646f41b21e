"""``elemental.cattle.io/v1beta1``: MachineInventory, a host that registered."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import field

from slipway.api.cluster.meta import CONDITIONS, Condition, Int32, Int64, ObjectMetadata, ObjectReference, Time, Type
from slipway.api.elemental.names import CONFIGURATORS, PLAN_APPLIED, PLAN_FAILED
from slipway.api.elemental.staging import STATES
from slipway.api.machinery.openapi import at_least, items, length, one_of

# What somebody else defines, kept as it is.
Free = Annotated[dict[str, Any], msgspec.Meta(extra={"schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})]


class NetworkConfig(Type):
    """How a host's network is to be configured."""

    configurator: Annotated[str, one_of(*CONFIGURATORS)] = ""
    """Who writes the configuration on the host: none, nmc, nmstate or nmconnections."""
    ip_addresses: dict[str, str] = field(default_factory=dict)
    """The addresses that the host was given, by the names that the configuration has for them."""
    config: Free = field(default_factory=dict)
    """The configuration, as the configurator understands it."""


class ObservedInterface(Type):
    """A network device that the host has."""

    name: str = ""
    """The name of the device."""
    mac: str = ""
    """Its hardware address."""
    mtu: Annotated[Int32, at_least(0)] = 0
    """The size of the largest packet."""
    addresses: Annotated[list[str], items(None, 256, atomic=True)] = field(default_factory=list)
    """Its addresses, each with the length of its prefix."""
    master: str = ""
    """The device that this one is a part of, such as a bond."""


class ObservedRoute(Type):
    """A route that the host has."""

    destination: str = ""
    """Where it leads to, as a range of addresses; default leads everywhere."""
    gateway: str = ""
    """Who carries packets on; nobody without it."""
    interface: str = ""
    """The device that packets leave by."""
    metric: Annotated[Int32, at_least(0)] = 0
    """Which of several routes is taken: the one with the lowest number."""


class ObservedNetwork(Type):
    """The network of a host, as the host saw it when it registered."""

    interfaces: Annotated[list[ObservedInterface], items(None, 256, atomic=True)] = field(default_factory=list)
    """Its network devices."""
    routes: Annotated[list[ObservedRoute], items(None, 1024, atomic=True)] = field(default_factory=list)
    """Its routes."""
    dns_servers: Annotated[list[str], items(None, 64, atomic=True)] = field(default_factory=list)
    """The name servers that it asks."""
    search_domains: Annotated[list[str], items(None, 64, atomic=True)] = field(default_factory=list)
    """The domains that it completes names with."""


class MachineInventorySpec(Type):
    """Who a host is, and what it has."""

    tpm_hash: Annotated[str, length(None, 64)] = ""
    """The SHA-256 of the public endorsement key of the host's TPM, which is how the host is known."""
    machine_hash: Annotated[str, length(None, 64)] = ""
    """The SHA-256 of the host's own identity, where it is not known by a TPM."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """How the host's network is to be configured."""
    observed_network: ObservedNetwork | None = None
    """The network as the host saw it when it registered."""
    storage: Free = field(default_factory=dict)
    """Data volumes that outlive a reprovisioning. Slipway has none, and refuses an inventory that declares them."""


class InventoryPlanStatus(Type):
    """The plan of a host, and what became of it."""

    secret_ref: ObjectReference | None = None
    """The Secret that the host takes its plans from."""
    checksum: Annotated[str, length(None, 64)] = ""
    """The SHA-256 of the plan that the state is of."""
    state: Annotated[str, one_of("", PLAN_APPLIED, PLAN_FAILED)] = ""
    """Applied or Failed; empty while neither is known of the plan that the Secret has."""
    type: Annotated[str, length(None, 63)] = ""
    """What the plan is for, such as reprovision or clean."""
    failures: Annotated[Int32, at_least(0)] = 0
    """How often it has failed."""
    message: Annotated[str, length(None, 4096)] = ""
    """What the host printed when the plan failed, as far as there is room."""


class RegistryFacts(Type):
    """Whether a host reaches the registry of its images."""

    address: str = ""
    """The registry that was tried."""
    reachable: bool = False
    """Whether it answered."""
    message: Annotated[str, length(None, 1024)] = ""
    """Why it could not be reached."""


class ImageFacts(Type):
    """The image that a host runs."""

    reference: str = ""
    """Where it came from."""
    digest: str = ""
    """The digest of what was deployed."""
    version: str = ""
    """The version of its kubelet."""


class StagingFacts(Type):
    """The image that a host is to have on its disk ahead of the plan that boots it."""

    image: Annotated[str, length(None, 1024)] = ""
    """The reference by which it was asked for."""
    state: Annotated[str, one_of("", *STATES)] = ""
    """Fetching, Staged, or Failed, which is tried again."""
    digest: Annotated[str, length(None, 256)] = ""
    """The digest of what was fetched."""
    version: Annotated[str, length(None, 63)] = ""
    """The version of the kubelet in it."""
    bytes: Annotated[Int64, at_least(0)] = 0
    """How much room it takes."""
    message: Annotated[str, length(None, 1024)] = ""
    """Why it could not be fetched."""


class HostFacts(Type):
    """What the host's agent last said of the host."""

    registry: RegistryFacts | None = None
    """Whether the registry of its images is reached."""
    free_bytes: dict[str, Int64] = field(default_factory=dict)
    """The free space of its file systems, by mount point."""
    boot_id: str = ""
    """The identity of the boot."""
    image: ImageFacts | None = None
    """The image that it runs."""
    clean: bool | None = None
    """Whether nothing of a cluster is left running on it."""
    plan: str = ""
    """The checksum of the plan that was applied when the host looked; empty where none was."""
    staging: StagingFacts | None = None
    """The image that it is to have ahead of its next plan."""
    observed_at: Time = ""
    """When the host looked."""


class MachineInventoryStatus(Type):
    """What has been observed of a host."""

    plan: InventoryPlanStatus = field(default_factory=InventoryPlanStatus)
    """The host's plan, and what became of it."""
    host_facts: HostFacts | None = None
    """What the host's agent last said of the host."""
    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    observed_generation: Annotated[Int64, at_least(0)] = 0
    """The generation that the controller has last worked on to the end."""


class MachineInventory(Type):
    """A host that registered, and waits for plans."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: MachineInventorySpec = field(default_factory=MachineInventorySpec)
    """Who the host is, and what it has."""
    status: MachineInventoryStatus = field(default_factory=MachineInventoryStatus)
    """What has been observed of the host."""
