"""``infrastructure.cluster.x-k8s.io/v1beta1``: MachineInventoryPool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import field

from slipway.api.cluster.infrastructure.names import IMAGE_STAGINGS, ON_DEMAND
from slipway.api.cluster.meta import CONDITIONS, DNS_SUBDOMAIN, Condition, Int32, Int64, LabelSelector, ObjectMetadata, Type
from slipway.api.machinery.openapi import REQUIRED, at_least, default, items, length, one_of, pattern

if TYPE_CHECKING:
    from collections.abc import Iterable


class PoolMember(Type):
    """A host of the pool."""

    name: Annotated[str, length(1, 253), pattern(DNS_SUBDOMAIN), REQUIRED] = ""
    """The name of the MachineInventory."""
    hostname: Annotated[str, length(None, 253)] = ""
    """The name that the host gets, and its Node; the inventory's without it."""
    network_device: Annotated[str, length(None, 15)] = ""
    """The host's network device that the cluster uses, where it is not the BaremetalCluster's."""


class MachineInventoryPoolSpec(Type):
    """Hosts that wait for one cluster."""

    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The Cluster whose machines may take hosts of the pool."""
    machine_inventories: Annotated[list[PoolMember], items(None, 10_000, atomic=True)] = field(default_factory=list)
    """The hosts, in the order in which they are taken. A host is in one pool at most."""
    selector: LabelSelector | None = None
    """Further hosts by the labels of their inventories, taken after those that are named, by their names. A host that a pool names, or that
    an older pool selects, stays that pool's. An empty selector selects every host of the namespace."""

    image_staging: Annotated[str, one_of(*IMAGE_STAGINGS), default(ON_DEMAND)] = ""
    """When the hosts get the image that they boot next. OnDemand: when a machine is made of one. Ahead: before that, while they still serve
    or wait, so that a node is out for no longer than its drain, reboot and join take."""
    next_version: Annotated[str, length(None, 256)] = ""
    """The Kubernetes version that is staged ahead though nobody asks for it yet. Without it, the version of the control plane where the
    machines of the pool are behind it, else the highest one of the image catalog that the control plane can be upgraded to."""

    def members_with(self, selected: Iterable[str]) -> list[PoolMember]:
        """Those that are named, and after them those that the selector has brought in."""
        named = {member.name for member in self.machine_inventories}
        return [*self.machine_inventories, *(PoolMember(name=name) for name in selected if name not in named)]


class StagedImage(Type):
    """An image that hosts of a pool are to have ahead, and how many of them do."""

    version: str = ""
    """The Kubernetes version that it is of."""
    image: Annotated[str, length(None, 1024)] = ""
    """Its reference, as the hosts were given it."""
    hosts: Annotated[Int32, at_least(0)] = 0
    """How many hosts are to have it."""
    staged: Annotated[Int32, at_least(0)] = 0
    """How many have it, whole and checked."""
    failed: Annotated[Int32, at_least(0)] = 0
    """How many could not fetch it so far; they try again."""


class MachineInventoryPoolStatus(Type):
    """The hosts of a pool, counted; the five numbers below the first always add up to it."""

    always_printed = frozenset({"total", "available", "allocated", "preparing", "reprovisioning", "unavailable"})

    total: Annotated[Int32, at_least(0)] = 0
    """How many hosts the pool has."""
    available: Annotated[Int32, at_least(0)] = 0
    """How many wait for a machine."""
    allocated: Annotated[Int32, at_least(0)] = 0
    """How many are a machine's, and nothing is being done to them."""
    preparing: Annotated[Int32, at_least(0)] = 0
    """How many are being cleaned."""
    reprovisioning: Annotated[Int32, at_least(0)] = 0
    """How many are becoming a node."""
    unavailable: Annotated[Int32, at_least(0)] = 0
    """How many cannot be used until somebody has looked at them, those that are not there included."""
    selected: Annotated[list[str], items(None, 10_000, atomic=True)] = field(default_factory=list)
    """The hosts that the selector has brought in."""
    images: Annotated[list[StagedImage], items(None, 64, atomic=True)] = field(default_factory=list)
    """The images that are staged ahead."""
    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    observed_generation: Annotated[Int64, at_least(0)] = 0
    """The generation that the controller has last worked on to the end."""


class MachineInventoryPool(Type):
    """Hosts that wait for the machines of one cluster."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[MachineInventoryPoolSpec, REQUIRED] = field(default_factory=MachineInventoryPoolSpec)
    """Which hosts wait for which cluster."""
    status: MachineInventoryPoolStatus = field(default_factory=MachineInventoryPoolStatus)
    """The hosts, counted."""

    @property
    def members(self) -> list[PoolMember]:
        """The hosts of the pool: those that it names, and after them those that it selects."""
        return self.spec.members_with(self.status.selected)
