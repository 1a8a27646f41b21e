"""``addons.cluster.x-k8s.io/v1beta2``: ClusterResourceSet and ClusterResourceSetBinding."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.meta import (
    CONDITIONS,
    NOT_EMPTY,
    Condition,
    DeprecatedCondition,
    Int64,
    LabelSelector,
    ObjectMetadata,
    Text256,
    Time,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of

APPLY_ONCE, RECONCILE = "ApplyOnce", "Reconcile"
SECRET_TYPE = "addons.cluster.x-k8s.io/resource-set"
"""Of a Secret whose content may be applied."""


class ResourceRef(Type):
    """A ConfigMap or a Secret in the namespace of the ClusterResourceSet."""

    name: Annotated[str, length(1, 253), REQUIRED] = ""
    """The name of the ConfigMap or Secret."""
    kind: Annotated[str, one_of("Secret", "ConfigMap"), REQUIRED] = ""
    """ConfigMap, or Secret, whose type must be addons.cluster.x-k8s.io/resource-set."""


class ClusterResourceSetSpec(Type):
    """What is applied to which Clusters."""

    cluster_selector: Annotated[LabelSelector, REQUIRED] = field(default_factory=LabelSelector)
    """Which Clusters of the namespace, by their labels; it may not be empty, and never changes."""
    resources: Annotated[list[ResourceRef], items(1, 100, atomic=True), REQUIRED] = field(default_factory=list)
    """ConfigMaps and Secrets, each with one or more manifests that are applied."""
    strategy: Annotated[str, one_of(APPLY_ONCE, RECONCILE)] = ""
    """ApplyOnce, which leaves alone what was applied, or Reconcile, which applies it again when it changes; it never changes."""


class ClusterResourceSetV1Beta1DeprecatedStatus(Type):
    """What v1beta1 had in a ClusterResourceSet's status."""

    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""


class ClusterResourceSetDeprecatedStatus(Type):
    """What earlier versions had in a ClusterResourceSet's status."""

    v1beta1: ClusterResourceSetV1Beta1DeprecatedStatus | None = None
    """What v1beta1 had in its status."""


class ClusterResourceSetStatus(Type):
    """What was applied."""

    openapi = NOT_EMPTY

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    observed_generation: Annotated[Int64, at_least(1)] = 0
    """The generation that the controller has last worked on to the end."""
    deprecated: ClusterResourceSetDeprecatedStatus | None = None
    """What earlier versions had in their status."""


class ClusterResourceSet(Type):
    """Manifests that every Cluster gets which has certain labels."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[ClusterResourceSetSpec, REQUIRED] = field(default_factory=ClusterResourceSetSpec)
    """What is applied to which Clusters."""
    status: ClusterResourceSetStatus = field(default_factory=ClusterResourceSetStatus)
    """What was applied."""


class ResourceBinding(ResourceRef):
    """What became of one ConfigMap or Secret in the Cluster."""

    hash: Text256 = ""
    """Of the content when it was last applied."""
    last_applied_time: Time = ""
    """When it was last applied, or tried."""
    applied: Annotated[bool | None, REQUIRED] = None
    """Whether all of it was applied."""


class ResourceSetBinding(Type):
    """What became of one ClusterResourceSet in the Cluster."""

    cluster_resource_set_name: Annotated[str, length(1, 253), REQUIRED] = ""
    """The name of the ClusterResourceSet."""
    resources: Annotated[list[ResourceBinding], items(None, 100, atomic=True)] = field(default_factory=list)
    """Its ConfigMaps and Secrets."""


class ClusterResourceSetBindingSpec(Type):
    """What was applied to a Cluster."""

    bindings: Annotated[list[ResourceSetBinding], items(None, 100, atomic=True)] = field(default_factory=list)
    """The ClusterResourceSets that were applied."""
    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the Cluster."""


class ClusterResourceSetBinding(Type):
    """What ClusterResourceSets applied to the Cluster of the same name."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[ClusterResourceSetBindingSpec, REQUIRED] = field(default_factory=ClusterResourceSetBindingSpec)
    """What was applied to the Cluster."""
