"""What there is at one moment, as values: the objects of the management cluster, and what is true of the simulated hosts."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, DEPLOYMENT_NAME_LABEL
from slipway.fleet.overview.stages import condition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest

_NONE: Mapping[str, Manifest] = MappingProxyType({})


class Snapshot:
    """The objects of one namespace by kind and name."""

    def __init__(self, objects: Mapping[Kind, Mapping[str, Manifest]] | None = None) -> None:
        self._objects: dict[Kind, dict[str, Manifest]] = {kind: dict(found) for kind, found in (objects or {}).items()}

    def of(self, kind: Kind) -> Mapping[str, Manifest]:
        return self._objects.get(kind, _NONE)

    def get(self, kind: Kind, name: str) -> Manifest | None:
        return self.of(kind).get(name)

    def in_cluster(self, kind: Kind, cluster: str) -> list[Manifest]:
        return [each for each in self.of(kind).values() if cluster_of(each) == cluster]

    def kinds(self) -> Iterator[Kind]:
        return iter(self._objects)

    def put(self, kind: Kind, name: str, manifest: Manifest | None) -> Manifest | None:
        """An object as it is now, or None where it is gone; what there was before."""
        found = self._objects.setdefault(kind, {})
        before = found.pop(name, None)
        if manifest is not None:
            found[name] = manifest
        return before


class EtcdTruth(NamedTuple):
    """The voters of one cluster."""

    voters: int
    running: int
    unplugged: int = 0
    """Of those that do not run: on hosts that the soak itself has switched off or cut off."""
    learners: int = 0


class HostTruth(NamedTuple):
    powered: bool = True
    kubelet: bool = False
    """Whether it would be, or is, a Node: its kubelet runs."""
    boots: int = 0


class ClusterTruth(NamedTuple):
    etcd: EtcdTruth
    nodes: Mapping[str, str] = MappingProxyType({})
    """The Nodes that the workload cluster has, by name: whose provider ID each has."""


class Truth(NamedTuple):
    """What nobody told the manager: how it really is."""

    hosts: Mapping[str, HostTruth] = MappingProxyType({})
    clusters: Mapping[str, ClusterTruth] = MappingProxyType({})
    """By the names of their Clusters; only those whose Cluster is there to stay."""
    doubled: int = 0
    """How often a virtual address was seen on two hosts."""


# What objects say, in the words of the invariants.


def name_of(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def labels_of(manifest: Manifest) -> Mapping[str, str]:
    return manifest["metadata"].get("labels") or {}


def annotations_of(manifest: Manifest) -> Mapping[str, str]:
    return manifest["metadata"].get("annotations") or {}


def cluster_of(manifest: Manifest) -> str:
    return labels_of(manifest).get(CLUSTER_NAME_LABEL, "")


def is_going(manifest: Manifest) -> bool:
    return bool(manifest["metadata"].get("deletionTimestamp"))


def is_control_plane(machine: Manifest) -> bool:
    return CONTROL_PLANE_LABEL in labels_of(machine)


def deployment_of(machine: Manifest) -> str:
    return labels_of(machine).get(DEPLOYMENT_NAME_LABEL, "")


def has_node(machine: Manifest) -> bool:
    return bool(((machine.get("status") or {}).get("nodeRef") or {}).get("name"))


def is_true(manifest: Manifest, type_: str) -> bool:
    return condition(manifest, type_).get("status") == "True"


def owner_of(inventory: Manifest) -> str:
    """The BaremetalMachine that a host says it is of."""
    return annotations_of(inventory).get(names.OWNER_BAREMETAL_MACHINE_ANNOTATION, "")


def state_of(inventory: Manifest) -> str:
    return annotations_of(inventory).get(names.ALLOCATION_STATE_ANNOTATION, "")


def host_claimed(baremetal_machine: Manifest) -> str:
    """The host that a BaremetalMachine says is its own; empty of one that goes, which names the host that it had until it is gone."""
    if is_going(baremetal_machine) or not is_true(baremetal_machine, names.INVENTORY_ALLOCATED_CONDITION):
        return ""
    return str(((baremetal_machine.get("status") or {}).get("machineInventoryRef") or {}).get("name") or "")
