"""What a CustomResourceDefinition is made from: a kind with its versions, their types and their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.kinds import (
    ADDONS_GROUP,
    BOOTSTRAP_GROUP,
    CONTROL_PLANE_GROUP,
    CORE_GROUP,
    ELEMENTAL_GROUP,
    INFRASTRUCTURE_GROUP,
)
from slipway.api.cluster.names import PROVIDER_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.cluster.meta import Type
    from slipway.api.machinery.objects import Manifest

CATEGORY = "cluster-api"
# Which version of a kind satisfies which version of Cluster API's contract; without it the core controllers do not find the kind.
CONTRACT_LABELS = {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}
# What clusterctl finds the kinds by whose objects it moves to another management cluster.  It gives the label to all that it
# installs, and moves Clusters with all that belongs to them, and so ClusterResourceSets.
CLUSTERCTL_LABEL = "clusterctl.cluster.x-k8s.io"
# What has it is moved though no Cluster owns it; with the second, together with all that it owns.
MOVE, MOVE_HIERARCHY = f"{CLUSTERCTL_LABEL}/move", f"{CLUSTERCTL_LABEL}/move-hierarchy"
# The provider that upstream's installation says a kind is of.
PROVIDERS = {
    CORE_GROUP: "cluster-api",
    ADDONS_GROUP: "cluster-api",
    BOOTSTRAP_GROUP: "bootstrap-kubeadm",
    CONTROL_PLANE_GROUP: "control-plane-kubeadm",
    INFRASTRUCTURE_GROUP: "infrastructure-baremetal",
    ELEMENTAL_GROUP: "infrastructure-baremetal",
}


class Column(NamedTuple):
    """A column of ``kubectl get``."""

    name: str
    path: str
    description: str
    type: str = "string"
    priority: int = 0

    def manifest(self) -> Manifest:
        out: Manifest = {"name": self.name, "type": self.type, "jsonPath": self.path, "description": self.description}
        return out | ({"priority": self.priority} if self.priority else {})


class Version(NamedTuple):
    name: str
    type: type[Type]
    columns: Sequence[Column]
    storage: bool = False
    deprecated: bool = False
    # Where true, it has an endpoint for .status, whatever the other versions have.
    status: bool = False


class Definition(NamedTuple):
    kind: Kind
    versions: Sequence[Version]
    # Where true, .status is written by itself.
    status: bool = False
    # Where true, there is a subresource for the number of replicas.
    scale: bool = False
    short_names: Sequence[str] = ()
    categories: Sequence[str] = (CATEGORY,)
    contracts: Mapping[str, str] = CONTRACT_LABELS
    """Which version of the kind satisfies which version of Cluster API's contract."""
    moved: str = ""
    """What clusterctl does with objects that belong to no Cluster: nothing, or one of MOVE and MOVE_HIERARCHY."""

    @property
    def name(self) -> str:
        return f"{self.kind.plural}.{self.kind.group}"

    @property
    def labels(self) -> dict[str, str]:
        moved = {self.moved: ""} if self.moved else {}
        return {**self.contracts, CLUSTERCTL_LABEL: "", **moved, PROVIDER_LABEL: PROVIDERS[self.kind.group]}


def age(kind: Kind) -> Column:
    return Column("Age", ".metadata.creationTimestamp", f"Time duration since creation of {kind.kind}", "date")


def condition(of: str, description: str, *, name: str = "", priority: int = 0) -> Column:
    return Column(name or of, f'.status.conditions[?(@.type=="{of}")].status', description, priority=priority)


def count(name: str, path: str, description: str, priority: int = 0) -> Column:
    return Column(name, path, description, "integer", priority)
