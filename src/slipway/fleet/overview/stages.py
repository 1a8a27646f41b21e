"""The stages of the life of a host and of a machine: the words that every view of them has, and how objects tell the stage.

Nothing here knows whether hosts are real: the objects of a simulation tell the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names as core
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import MACHINE

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

# Of a host that is nobody's.
REGISTERED, FREE = "registered", "free"
# Of a machine that has no host.
PENDING = "pending"
# Of a host on its way to a Node and back.  Machines of other infrastructure are provisioned, drained and deleted.
ALLOCATED, REPROVISIONING, BOOTING, MEMBER, CLEANING = "allocated", "reprovisioning", "booting", "node", "cleaning"
PROVISIONING, DRAINING, DELETING = "provisioning", "draining", "deleting"
# Where it does not go on by itself.
FAILED, UNAVAILABLE = "failed", "unavailable"
STAGES = (
    REGISTERED, FREE, PENDING, ALLOCATED, PROVISIONING, REPROVISIONING, BOOTING, MEMBER, DRAINING, DELETING, CLEANING, FAILED, UNAVAILABLE,
)  # fmt: skip
MEANINGS = {
    REGISTERED: "registered",
    FREE: "free in its pool",
    PENDING: "waits for a host",
    ALLOCATED: "taken",
    PROVISIONING: "is made",
    REPROVISIONING: "gets its image",
    BOOTING: "boots",
    MEMBER: "a Node",
    DRAINING: "is drained",
    DELETING: "is deleted",
    CLEANING: "is cleaned",
    FAILED: "failed",
    UNAVAILABLE: "unavailable",
}
"""What each is called where there is room for words."""

# Of a Machine's Deleting, before its host is touched.  Upstream's words.
_BEFORE_THE_HOST = frozenset(
    ("WaitingForPreDrainHook", "DrainingNode", "WaitingForVolumeDetach", "WaitingForPreTerminateHook", "Deleting", "InternalError", "")
)
_BY_MACHINE_PHASE = {"Provisioning": PROVISIONING, "Provisioned": BOOTING, "Running": MEMBER, "Updating": MEMBER, "Failed": FAILED}
_BY_PHASE = {
    names.ALLOCATED_PHASE: ALLOCATED,
    names.RUNNING_PHASE: MEMBER,
    names.PREPARING_PHASE: CLEANING,
    names.FAILED_PHASE: FAILED,
}


def stage(machine: Manifest) -> str:
    """Where the host of a BaremetalMachine is; empty while it has none."""
    if not host_of(machine):
        return ""
    phase = str((machine.get("status") or {}).get("phase") or "")
    if phase == names.REPROVISIONING_PHASE:
        return BOOTING if condition(machine, names.PLAN_APPLIED_CONDITION).get("status") == "True" else REPROVISIONING
    return _BY_PHASE.get(phase, "")


def machine_stage(machine: Manifest, infrastructure: Manifest | None) -> tuple[str, str]:
    """Where a Machine is, and since when as the API has it; ``infrastructure`` is its BaremetalMachine, where it is one of ours."""
    metadata, status = machine["metadata"], machine.get("status") or {}
    made, deleted = str(metadata.get("creationTimestamp") or ""), str(metadata.get("deletionTimestamp") or "")
    found = stage(infrastructure) if infrastructure is not None else ""
    if infrastructure is not None and found in (CLEANING, FAILED):
        return found, _since(infrastructure, found) or deleted or made
    if deleted:
        # A host of ours is cleaned next, and until then it is a Node that has to go.
        is_drained = bool(found) or str(condition(machine, core.DELETING_CONDITION).get("reason") or "") in _BEFORE_THE_HOST
        return (DRAINING if is_drained and (status.get("nodeRef") or {}).get("name") else DELETING), deleted
    if infrastructure is not None:
        return (found, _since(infrastructure, found) or made) if found else (PENDING, made)
    word = _BY_MACHINE_PHASE.get(str(status.get("phase") or ""), PENDING)
    if word == MEMBER:
        return word, joined(machine, None) or made
    if word == BOOTING:
        return word, str(condition(machine, core.INFRASTRUCTURE_READY_CONDITION).get("lastTransitionTime") or made)
    return word, str(status.get("lastUpdated") or made) if word in (PROVISIONING, FAILED) else made


def joined(machine: Manifest, infrastructure: Manifest | None) -> str:
    """Since when the machine is a Node, as the API has it; empty while it is none.  A Node that was away for a moment came back later."""
    if not ((machine.get("status") or {}).get("nodeRef") or {}).get("name"):
        return ""
    if infrastructure is not None:
        found = condition(infrastructure, names.NODE_JOINED_CONDITION)
        return str(found.get("lastTransitionTime") or "") if found.get("status") == "True" else ""
    known = [condition(machine, each) for each in (core.NODE_HEALTHY_CONDITION, core.NODE_READY_CONDITION, core.READY_CONDITION)]
    return next((str(each.get("lastTransitionTime") or "") for each in known if each.get("status") == "True"), "")


def _since(machine: Manifest, found: str) -> str:
    """Since when the host of a BaremetalMachine is in its stage."""
    status = machine.get("status") or {}
    if found == REPROVISIONING:
        return str(status.get("planWrittenTime") or "")
    if found == FAILED:
        return max((str(each.get("lastTransitionTime") or "") for each in conditions(machine) if each.get("status") == "False"), default="")
    type_ = {
        ALLOCATED: names.INVENTORY_ALLOCATED_CONDITION,
        BOOTING: names.PLAN_APPLIED_CONDITION,
        MEMBER: names.NODE_JOINED_CONDITION,
        CLEANING: names.HOST_CLEANED_CONDITION,
    }[found]
    return str(condition(machine, type_).get("lastTransitionTime") or "")


def condition(manifest: Manifest, type_: str) -> Manifest:
    return next((each for each in conditions(manifest) if each.get("type") == type_), {})


def conditions(manifest: Manifest) -> list[Manifest]:
    return (manifest.get("status") or {}).get("conditions") or []


def host_of(machine: Manifest) -> str:
    """The inventory of a BaremetalMachine."""
    return str(((machine.get("status") or {}).get("machineInventoryRef") or {}).get("name") or "")


def machine_of(manifest: Manifest) -> str:
    """The Machine that a BaremetalMachine is of."""
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((str(each["name"]) for each in owners if each.get("kind") == MACHINE.kind), "")


def place(manifest: Manifest) -> tuple[str, str]:
    """The namespace and the name of an object."""
    return str(manifest["metadata"].get("namespace") or ""), str(manifest["metadata"]["name"])
