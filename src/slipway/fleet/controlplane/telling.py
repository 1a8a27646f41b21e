"""Writes the status of a KubeadmControlPlane from what a reconcile has seen and done, however it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.fleet.contract.conditions import FALSE, TRUE, Condition, find, of
from slipway.fleet.contract.status import Status, deprecated_summary, well
from slipway.fleet.controlplane.decisions.machines import remediation_from
from slipway.fleet.controlplane.status import conditions, counts, older
from slipway.fleet.controlplane.status.availability import Seen, available
from slipway.fleet.controlplane.status.conditions import Scale
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.controlplane.decisions.machines import Remediation
    from slipway.fleet.controlplane.work import Work


def tell(work: Work, *, initialized: bool, failed: bool) -> None:
    """Everything that is told of the control plane; the generation counts as observed only where nothing failed."""
    status = Status(work.manifest, work.now)
    machines = [owned.machine for owned in work.machines.values()]
    fields = status.fields
    fields["selector"] = counts.selector(work.cluster.name)
    fields |= counts.counts(machines)
    known = counts.versions(machines)
    fields["versions"] = known or None
    if known:
        fields["version"] = known[0]["version"]
    if initialized and not work.initialized:
        fields["initialization"] = {"controlPlaneInitialized": True}
    last = _last_remediation(work)
    if last is not None and last.time is not None:
        fields["lastRemediation"] = {"machine": last.machine, "time": timestamp(last.time), "retryCount": last.retries}
    scale = Scale(
        work.plane.spec.replicas,
        machines,
        work.now,
        blocked=work.blocked.messages,
        missing=work.plane.spec.machine_template.spec.infrastructure_ref.kind if work.template_missing else "",
        deleting=work.is_deleted,
    )
    for condition in (
        conditions.initialized(work.initialized),
        conditions.rolling_out(machines),
        conditions.scaling_up(scale),
        conditions.scaling_down(scale),
        conditions.machines_ready(machines),
        conditions.machines_up_to_date(machines, work.now),
        conditions.remediating(machines),
        _deleting(work),
    ):
        status.say(condition)
    status.say(available(_seen(work)))
    _tell_older(work, status)
    if not failed:
        status.observed()


def _deleting(work: Work) -> Condition:
    if not work.is_deleted:
        return Condition(type=names.DELETING_CONDITION, status=FALSE, reason=names.NOT_DELETING_REASON)
    reason, message = work.deleting
    return Condition(type=names.DELETING_CONDITION, status=TRUE, reason=reason or names.INTERNAL_ERROR_REASON, message=message)


def _seen(work: Work) -> Seen:
    certificates = find(of(work.manifest), names.CERTIFICATES_AVAILABLE_CONDITION)
    return Seen(
        [owned.machine for owned in work.machines.values()],
        work.now,
        work.initialized_at,
        manages_etcd=work.manages_etcd,
        members=work.members,
        members_match=work.members_match,
        certificates=certificates is not None and certificates.status == TRUE,
        deleting=work.is_deleted,
    )


def _tell_older(work: Work, status: Status) -> None:
    machines = [owned.machine for owned in work.machines.values()]
    outdated = sum(not owned.drift.up_to_date for owned in work.machines.values())
    ready = older.machines_ready(machines)
    if ready is not None:
        status.set_deprecated(ready)
    if not work.is_deleted:
        for condition in older.resized(machines, work.plane.spec.replicas or 0):
            status.set_deprecated(condition)
        rolled = sum(not owned.drift.up_to_date and not owned.deleting for owned in work.machines.values())
        if rolled:
            status.set_deprecated(older.rolling(rolled, len(machines)))
        elif any(one.get("type") == older.MACHINES_SPEC_UP_TO_DATE for one in _conditions(status)):
            status.set_deprecated(well(older.MACHINES_SPEC_UP_TO_DATE))
        if work.initialized:
            status.set_deprecated(well(older.AVAILABLE))
    ready_nodes = 0 if work.observed is None or work.is_deleted else sum(map(_is_ready, work.observed.nodes.values()))
    fields = status.fields.setdefault("deprecated", {}).setdefault("v1beta1", {})
    fields |= {
        "updatedReplicas": len(machines) - outdated,
        "readyReplicas": ready_nodes,
        "unavailableReplicas": len(machines) - ready_nodes,
    }
    summary = deprecated_summary(_conditions(status), older.SUMMED_UP)
    if summary is not None:
        status.set_deprecated(summary)


def _conditions(status: Status) -> list[Manifest]:
    found: list[Manifest] = ((status.fields.get("deprecated") or {}).get("v1beta1") or {}).get("conditions") or []
    return found


def _is_ready(node: Manifest) -> bool:
    found = (node.get("status") or {}).get("conditions") or ()
    return any((condition.get("type"), condition.get("status")) == ("Ready", "True") for condition in found)


def _last_remediation(work: Work) -> Remediation | None:
    """The one that is in progress, else the latest that a Machine was made for."""
    current = work.annotations.get(names.REMEDIATION_IN_PROGRESS_ANNOTATION)
    if current is not None:
        return remediation_from(current)
    told = [owned.annotations.get(names.REMEDIATION_FOR_ANNOTATION) for owned in work.machines.values()]
    found = [remediation_from(text) for text in told if text is not None]
    dated = [(one.time, one) for one in found if one.time is not None]
    return max(dated, key=lambda one: one[0])[1] if dated else None
