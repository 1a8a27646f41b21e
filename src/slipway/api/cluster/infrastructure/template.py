"""``infrastructure.cluster.x-k8s.io/v1beta1``: BaremetalMachineTemplate.

It says which pool, and nothing else: the role comes from the owner, the version from the Machine, the image from the catalog.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.infrastructure.machine import PoolReference
from slipway.api.cluster.infrastructure.names import ALLOCATION_POLICIES, CLEAN_POLICIES, KEEP, ORDERED
from slipway.api.cluster.meta import ObjectMetadata, TemplateMeta, Type
from slipway.api.machinery.openapi import REQUIRED, default, one_of


class BaremetalMachineTemplateResourceSpec(Type):
    """Where the hosts of the machines come from."""

    machine_inventory_pool_ref: Annotated[PoolReference, REQUIRED] = field(default_factory=PoolReference)
    """The pool that hosts are taken from."""
    allocation_policy: Annotated[str, one_of(*ALLOCATION_POLICIES), default(ORDERED)] = ""
    """Ordered: the first host that is free, in the order of the pool. PreferSame: first those that a machine of the same control plane or
    deployment had, and one of them that is still being cleaned is waited for."""
    clean_policy: Annotated[str, one_of(*CLEAN_POLICIES), default(KEEP)] = ""
    """What is done when a host is given back. Keep: the node is ended, and what it left is cleared before the host is used again. Scrub: it
    is cleared at once, with the bootstrap data and the logs of Pods, for hosts that change hands."""


class BaremetalMachineTemplateResource(Type):
    """What each BaremetalMachine is made from."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of each BaremetalMachine."""
    spec: Annotated[BaremetalMachineTemplateResourceSpec, REQUIRED] = field(default_factory=BaremetalMachineTemplateResourceSpec)
    """The spec of each BaremetalMachine."""


class BaremetalMachineTemplateSpec(Type):
    """What BaremetalMachines are made from."""

    template: Annotated[BaremetalMachineTemplateResource, REQUIRED] = field(default_factory=BaremetalMachineTemplateResource)
    """What each BaremetalMachine is made from; it never changes. To move to another pool, make another template."""


class BaremetalMachineTemplate(Type):
    """What the BaremetalMachines of a control plane or a MachineDeployment are made from."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[BaremetalMachineTemplateSpec, REQUIRED] = field(default_factory=BaremetalMachineTemplateSpec)
    """What BaremetalMachines are made from."""
