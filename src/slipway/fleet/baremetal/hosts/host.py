"""A host as the provider sees it: what its MachineInventory says of it, and whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import MACHINE_INVENTORY
from slipway.api.elemental.inventory import MachineInventory, ObservedNetwork
from slipway.api.elemental.names import READY_CONDITION
from slipway.fleet.contract.facts import read
from slipway.runtime.objects import Object, fitted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.cluster.meta import Condition
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.cache.cache import Cache

QUARANTINE_ANNOTATION = "slipway.io/quarantined-by"
"""On an inventory that was given up without having been cleaned: the BaremetalMachine whose clean plan must be applied first."""
NOT_CLEAN = "it has applied its clean plan and says that its kubelet would start again, or that containers are left on it"
OWNER_INDEX = "owner-baremetalmachine"


class HostOwner(NamedTuple):
    """Whose a host is; all in the namespace of the inventory."""

    cluster: str
    machine: str
    baremetal_machine: str


class Host(NamedTuple):
    name: str
    pool: str = ""
    """The pool whose member it is at present."""
    state: str = ""
    owner: HostOwner | None = None
    ready: bool = False
    """Its agent has taken a plan, and the last one did not fail."""
    deleting: bool = False
    volumes: bool = False
    """It declares managed data volumes, which are not supported."""
    quarantined_by: str = ""
    observed: bytes = b""
    """The network that it observed, as JSON: of thousands of hosts one is asked for it at a time."""
    why_not_ready: str = ""
    failure_domain: str = ""
    group: str = ""
    """The control plane or deployment that it is or was allocated for, as cluster/name."""
    dirty: bool = False
    """It has applied its clean plan, and says that it is not clean."""

    @property
    def network(self) -> ObservedNetwork | None:
        return msgspec.json.decode(self.observed, type=ObservedNetwork) if self.observed else None


def host_from(found: Object) -> Host:
    # A pool looks at all of its hosts whenever one of them changes.
    return found.known(_host)


def _host(found: Object) -> Host:
    annotations = found.metadata.annotations
    inventory = read(found, MachineInventory)
    owner = HostOwner(*(annotations.get(name, "") for name in names.OWNER_ANNOTATIONS))
    ready = next((condition for condition in inventory.status.conditions if condition.type == READY_CONDITION), None)
    facts, plan, network = inventory.status.host_facts, inventory.status.plan, inventory.spec.observed_network
    return Host(
        name=found.name,
        pool=annotations.get(names.POOL_ANNOTATION, ""),
        state=annotations.get(names.ALLOCATION_STATE_ANNOTATION, ""),
        owner=owner if any(owner) else None,
        ready=ready is not None and ready.status == "True",
        deleting=found.metadata.deletion_timestamp is not None,
        volumes=bool(inventory.spec.storage),
        quarantined_by=annotations.get(QUARANTINE_ANNOTATION, ""),
        observed=b"" if network is None else fitted(msgspec.json.encode(network)),
        why_not_ready=_why_not(ready),
        failure_domain=found.metadata.labels.get(names.FAILURE_DOMAIN_LABEL, ""),
        group=annotations.get(names.GROUP_ANNOTATION, ""),
        dirty=facts is not None and facts.clean is False and plan.type == names.PLAN_CLEAN and plan.checksum == facts.plan,
    )


def _why_not(ready: Condition | None) -> str:
    if ready is None:
        return "its host has not taken a plan yet"
    return "" if ready.status == "True" else ready.message or ready.reason


def host_of(manifest: Manifest) -> Host:
    """The same of an object as the API server gave it."""
    return host_from(Object(MACHINE_INVENTORY, msgspec.json.encode(manifest)))


def owner_key(found: Object) -> Iterable[str]:
    """The index of inventories by the BaremetalMachine that has them."""
    owner = found.metadata.annotations.get(names.OWNER_BAREMETAL_MACHINE_ANNOTATION)
    return [f"{found.namespace}/{owner}"] if owner else []


async def hosts_of(cache: Cache, namespace: str, wanted: Iterable[str]) -> dict[str, Host]:
    """Those of the named inventories that are there."""
    found = [await cache.get(MACHINE_INVENTORY, name, namespace) for name in dict.fromkeys(wanted)]
    return {each.name: host_from(each) for each in found if each is not None}


def annotations_patch(resource_version: str, changes: dict[str, str | None]) -> Manifest:
    """A merge patch of annotations, for the very object that was read; None takes one away."""
    return {"metadata": {"resourceVersion": resource_version, "annotations": changes}}
