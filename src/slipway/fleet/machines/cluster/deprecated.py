"""``status.deprecated.v1beta1`` of a Cluster, for those who still read it: four conditions, and failures for good.

Upstream writes them for as long as v1beta1 is served; they are told as it tells them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.fleet.contract.status import READY, DeprecatedCondition, deprecated_summary, well
from slipway.fleet.machines.cluster import fields

if TYPE_CHECKING:
    from typing import Any

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.status import Status
    from slipway.fleet.machines.cluster.observed import Descendants, External, Observed

INFRASTRUCTURE_READY = "InfrastructureReady"
CONTROL_PLANE_READY = "ControlPlaneReady"
CONTROL_PLANE_INITIALIZED = "ControlPlaneInitialized"
OWNED = (READY, INFRASTRUCTURE_READY, CONTROL_PLANE_READY, CONTROL_PLANE_INITIALIZED)


def fill(status: Status, observed: Observed) -> None:
    cluster = observed.cluster
    spec, deleting = cluster.get("spec") or {}, bool(cluster["metadata"].get("deletionTimestamp"))
    told: list[DeprecatedCondition] = []
    if spec.get("infrastructureRef"):
        told += _mirrored(observed.infrastructure, INFRASTRUCTURE_READY, "WaitingForInfrastructure", fields.provisioned, deleting)
    elif not deleting:
        told.append(well(INFRASTRUCTURE_READY))
    if spec.get("controlPlaneRef"):
        told += _mirrored(observed.control_plane, CONTROL_PLANE_READY, "WaitingForControlPlane", fields.initialized, deleting)
    told += _initialized(observed, deleting)
    for condition in told:
        status.set_deprecated(condition)
    before = _conditions(status.fields)
    ready = deprecated_summary(before, (CONTROL_PLANE_READY, INFRASTRUCTURE_READY))
    if ready is not None:
        status.set_deprecated(ready)
    for external in (observed.infrastructure, observed.control_plane):
        _failure(status, external)


def _mirrored(external: External, name: str, waiting: str, is_up: Any, deleting: bool) -> list[DeprecatedCondition]:
    """The Ready of the other object; where it has none, whether it is provisioned or initialised."""
    found = external.manifest
    if found is None:
        gone = DeprecatedCondition(type=name, status=FALSE, reason="Deleted", severity="Info")
        return [gone] if external.missing and deleting else []
    ready = _ready(found)
    if ready is not None:
        ready.type = name
        return [ready]
    if deleting:
        return [DeprecatedCondition(type=name, status=FALSE, reason="Deleting", severity="Info")]
    try:
        up = is_up(found, external.contract)
    except fields.FieldError:
        # The reconcile fails by it.
        return []
    return [well(name) if up else DeprecatedCondition(type=name, status=FALSE, reason=waiting, severity="Info")]


def _ready(found: Manifest) -> DeprecatedCondition | None:
    """What is there may be of either form, and may be anything: what cannot be read is not there."""
    status = found.get("status")
    status = status if isinstance(status, dict) else {}
    deprecated = status.get("deprecated") if isinstance(status.get("deprecated"), dict) else {}
    older = (deprecated or {}).get("v1beta1") or {}
    listed = older.get("conditions") if isinstance(older, dict) and "conditions" in older else status.get("conditions")
    if not isinstance(listed, list):
        return None
    for one in listed:
        if isinstance(one, dict) and one.get("type") == READY:
            try:
                return msgspec.convert(one, DeprecatedCondition)
            except msgspec.ValidationError:
                return None
    return None


def _initialized(observed: Observed, deleting: bool) -> list[DeprecatedCondition]:
    """What has been initialised stays so."""
    cluster = observed.cluster
    if any(one.get("type") == CONTROL_PLANE_INITIALIZED and one.get("status") == TRUE for one in _conditions(cluster.get("status") or {})):
        return []
    if not (cluster.get("spec") or {}).get("controlPlaneRef"):
        return [] if deleting else [_of_machines(observed.descendants)]
    external = observed.control_plane
    if external.manifest is None or external.manifest["metadata"].get("deletionTimestamp"):
        return []
    try:
        if fields.initialized(external.manifest, external.contract):
            return [well(CONTROL_PLANE_INITIALIZED)]
    except fields.FieldError:
        return []
    message = "Waiting for control plane provider to indicate the control plane has been initialized"
    reason = "WaitingForControlPlaneProviderInitialized"
    return [DeprecatedCondition(type=CONTROL_PLANE_INITIALIZED, status=FALSE, reason=reason, severity="Info", message=message)]


def _of_machines(descendants: Descendants | None) -> DeprecatedCondition:
    machines = descendants.control_plane_machines if descendants is not None else []
    if any(machine.node_name and machine.metadata.deletion_timestamp is None for machine in machines):
        return well(CONTROL_PLANE_INITIALIZED)
    message = "Waiting for the first control plane machine to have its status.nodeRef set"
    return DeprecatedCondition(type=CONTROL_PLANE_INITIALIZED, status=FALSE, reason="MissingNodeRef", severity="Info", message=message)


def _failure(status: Status, external: External) -> None:
    if external.manifest is None:
        return
    try:
        reason, message = fields.failure(external.manifest)
    except fields.FieldError:
        return
    if not reason and not message:
        return
    older: Manifest = status.fields.setdefault("deprecated", {}).setdefault("v1beta1", {})
    if reason:
        older["failureReason"] = reason
    if message:
        found = external.manifest
        group, _, version = found.get("apiVersion", "").rpartition("/")
        kind = f"{group}/{version}, Kind={found.get('kind')}"
        older["failureMessage"] = f'Failure detected from referenced resource {kind} with name "{found["metadata"]["name"]}": {message}'


def _conditions(status: Manifest) -> list[Manifest]:
    return ((status.get("deprecated") or {}).get("v1beta1") or {}).get("conditions") or []
