"""What the status of a Cluster says: a pure function of what was seen, in the words of Cluster API.

Beyond upstream: an error is told where it belongs, in the place of "Please check controller logs for errors"; a Cluster without an
infrastructureRef has infrastructure that is ready, and one without a controlPlaneRef has the availability of its own Machines, where
upstream says InternalError of both.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.contract import conditions
from slipway.fleet.contract.aggregation import Source, aggregate
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, Condition, Reasons, moment
from slipway.fleet.contract.mirroring import Fallback, InvalidConditionError, mirror, reported
from slipway.fleet.machines.cluster import counters, fields
from slipway.fleet.machines.cluster.observed import Descendants, owned
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.conditions import ConditionStatus
    from slipway.fleet.contract.status import Status
    from slipway.fleet.liveclusters import Probe
    from slipway.fleet.machines.cluster.observed import External, Group, Machine, Observed

AVAILABLE = names.AVAILABLE_CONDITION
DELETING = names.DELETING_CONDITION
PROBE = names.REMOTE_CONNECTION_PROBE_CONDITION
INFRASTRUCTURE_READY = names.INFRASTRUCTURE_READY_CONDITION
CONTROL_PLANE_AVAILABLE = names.CONTROL_PLANE_AVAILABLE_CONDITION
CONTROL_PLANE_INITIALIZED = names.CONTROL_PLANE_INITIALIZED_CONDITION
WORKERS_AVAILABLE = names.WORKERS_AVAILABLE_CONDITION
CONTROL_PLANE_MACHINES_READY = names.CONTROL_PLANE_MACHINES_READY_CONDITION
CONTROL_PLANE_MACHINES_UP_TO_DATE = names.CONTROL_PLANE_MACHINES_UP_TO_DATE_CONDITION
WORKER_MACHINES_READY = names.WORKER_MACHINES_READY_CONDITION
WORKER_MACHINES_UP_TO_DATE = names.WORKER_MACHINES_UP_TO_DATE_CONDITION
ROLLING_OUT = names.ROLLING_OUT_CONDITION
SCALING_UP = names.SCALING_UP_CONDITION
SCALING_DOWN = names.SCALING_DOWN_CONDITION
REMEDIATING = names.REMEDIATING_CONDITION
TOPOLOGY_RECONCILED = names.TOPOLOGY_RECONCILED_CONDITION

OWNED = (
    names.PAUSED_CONDITION,
    INFRASTRUCTURE_READY,
    CONTROL_PLANE_AVAILABLE,
    CONTROL_PLANE_INITIALIZED,
    CONTROL_PLANE_MACHINES_READY,
    CONTROL_PLANE_MACHINES_UP_TO_DATE,
    WORKERS_AVAILABLE,
    WORKER_MACHINES_READY,
    WORKER_MACHINES_UP_TO_DATE,
    PROBE,
    ROLLING_OUT,
    SCALING_UP,
    SCALING_DOWN,
    REMEDIATING,
    DELETING,
    AVAILABLE,
)

INTERNAL_ERROR = names.INTERNAL_ERROR_REASON
DOES_NOT_EXIST = names.OBJECT_DOES_NOT_EXIST_REASON
DELETED = names.OBJECT_DELETED_REASON
INVALID = names.INVALID_CONDITION_REPORTED_REASON
UNSEEN = "Please check controller logs for errors"

# Cluster API's --remote-connection-grace-period and the number of failures before it believes the first of them.
PROBE_GRACE = timedelta(seconds=50)
_PROBE_FAILURES = 5
_NOT_CONNECTED = "Remote connection not established yet"
# A new Machine has no UpToDate condition for a moment: nobody needs to see that.
_NEW = timedelta(seconds=10)
_SHOWN = 3


class Deletion(NamedTuple):
    """How far the deletion of a Cluster is: reason and message of its Deleting condition."""

    reason: str
    message: str = ""


def fill(status: Status, observed: Observed, now: datetime, deletion: Deletion | None = None) -> None:
    """Put all of it into the status of the Cluster, whose initialization is up to date already."""
    cluster, found = observed.cluster, status.fields
    found["phase"] = phase(cluster)
    if _referred(cluster, "controlPlaneRef"):
        found["controlPlane"] = counters.control_plane_from(observed.control_plane, found.get("controlPlane") or {})
    elif observed.descendants is not None:
        found["controlPlane"] = counters.control_plane_machines(observed.descendants.control_plane_machines)
    if observed.descendants is not None:
        workers = [machine for machine in observed.descendants.worker_machines if not machine.of_pool]
        found["workers"] = counters.workers(cluster["metadata"]["name"], observed.descendants, workers)
    for condition in tell(observed, now, deletion):
        status.say(condition)
    status.say(available(cluster))


def tell(observed: Observed, now: datetime, deletion: Deletion | None = None) -> list[Condition]:
    """All conditions of the Cluster but Paused and Available; one that is to stay as it is is not among them."""
    cluster, descendants = observed.cluster, observed.descendants
    told: list[Condition | None] = [
        probe(observed.probe, conditions.of(cluster), now),
        infrastructure_ready(cluster, observed.infrastructure),
        control_plane_available(cluster, observed.control_plane, descendants),
        control_plane_initialized(cluster, observed.control_plane, descendants),
        *_of_descendants(observed, now),
        _deleting(cluster, deletion),
    ]
    return [condition for condition in told if condition is not None]


def phase(cluster: Manifest) -> str:
    spec, status = cluster.get("spec") or {}, cluster.get("status") or {}
    if cluster["metadata"].get("deletionTimestamp"):
        return "Deleting"
    if _initialized(cluster, "infrastructureProvisioned") and fields.is_endpoint(spec.get("controlPlaneEndpoint")):
        return "Provisioned"
    if spec.get("infrastructureRef") or spec.get("controlPlaneRef"):
        return "Provisioning"
    return status.get("phase") or "Pending"


def available(cluster: Manifest) -> Condition:
    """The summary of the other conditions and of what the Cluster's own gates ask for."""
    spec = cluster.get("spec") or {}
    gates = [gate for gate in spec.get("availabilityGates") or () if isinstance(gate, dict)]
    of = [DELETING, PROBE, INFRASTRUCTURE_READY, CONTROL_PLANE_AVAILABLE, WORKERS_AVAILABLE, TOPOLOGY_RECONCILED]
    negative = [DELETING, *(gate["conditionType"] for gate in gates if gate.get("polarity") == "Negative")]
    deleting = bool(cluster["metadata"].get("deletionTimestamp"))

    def harmless(condition: Condition) -> bool:
        if condition.type in (INFRASTRUCTURE_READY, CONTROL_PLANE_AVAILABLE):
            # While the Cluster goes, these go too.
            return deleting and condition.reason in (DELETED, DOES_NOT_EXIST)
        if condition.type == TOPOLOGY_RECONCILED:
            return condition.status == FALSE and condition.reason not in ("ReconcileFailed", "ClusterClassNotReconciled")
        return False

    return conditions.summary(
        conditions.of(cluster),
        AVAILABLE,
        [*of, *(gate["conditionType"] for gate in gates)],
        Reasons("NotAvailable", "AvailableUnknown", "Available"),
        negative=negative,
        ignored_if_missing=() if spec.get("topology") else (TOPOLOGY_RECONCILED,),
        harmless=harmless,
    )


def probe(seen: Probe, before: Sequence[Manifest], now: datetime) -> Condition | None:
    """Whether the workload cluster answers; None: not asked often enough to say anything new."""
    why = f": {seen.why}" if seen.failed_in_a_row and seen.why else ""
    if seen.succeeded_at is None and seen.failed_in_a_row < _PROBE_FAILURES:
        said = conditions.find(before, PROBE)
        if said is not None and not (why and said.message.startswith(_NOT_CONNECTED)):
            return None
        return _said(PROBE, FALSE, "ProbeFailed", _NOT_CONNECTED + why)
    if seen.succeeded_at is None:
        return _said(PROBE, FALSE, "ProbeFailed", f"Remote connection probe failed{why}")
    if now - seen.succeeded_at > PROBE_GRACE:
        last = timestamp(seen.succeeded_at)
        return _said(PROBE, FALSE, "ProbeFailed", f"Remote connection probe failed, probe last succeeded at {last}{why}")
    return _said(PROBE, TRUE, "ProbeSucceeded")


def infrastructure_ready(cluster: Manifest, external: External) -> Condition:
    provisioned = _initialized(cluster, "infrastructureProvisioned")
    kind = _referred(cluster, "infrastructureRef")
    if not kind:
        return _said(INFRASTRUCTURE_READY, TRUE, "Ready")
    if external.manifest is None:
        return _unreadable(INFRASTRUCTURE_READY, cluster, external, kind, was_there=provisioned)
    message = "" if provisioned else f"{kind} status.initialization.provisioned is false"
    fallback = Fallback(TRUE if provisioned else FALSE, "Ready" if provisioned else "NotReady", message)
    return _mirrored(external, "Ready", INFRASTRUCTURE_READY, fallback, "Ready")


def control_plane_available(cluster: Manifest, external: External, descendants: Descendants | None) -> Condition:
    initialized = _initialized(cluster, "controlPlaneInitialized")
    kind = _referred(cluster, "controlPlaneRef")
    if not kind:
        return _machines_available(descendants)
    if external.manifest is None:
        return _unreadable(CONTROL_PLANE_AVAILABLE, cluster, external, kind, was_there=initialized)
    message = "" if initialized else f"{kind} status.initialization.controlPlaneInitialized is false"
    fallback = Fallback(TRUE if initialized else FALSE, "Available" if initialized else "NotAvailable", message)
    return _mirrored(external, "Available", CONTROL_PLANE_AVAILABLE, fallback, "Available")


def control_plane_initialized(cluster: Manifest, external: External, descendants: Descendants | None) -> Condition | None:
    """What has been initialised stays so: None."""
    if conditions.is_true(conditions.of(cluster), CONTROL_PLANE_INITIALIZED):
        return None
    kind = _referred(cluster, "controlPlaneRef")
    if kind and external.manifest is None:
        if external.missing:
            return _said(CONTROL_PLANE_INITIALIZED, UNKNOWN, DOES_NOT_EXIST, f"{kind} does not exist")
        return _said(CONTROL_PLANE_INITIALIZED, UNKNOWN, INTERNAL_ERROR, external.problem or UNSEEN)
    if kind and external.manifest is not None:
        try:
            initialized = fields.initialized(external.manifest, external.contract)
        except fields.FieldError as error:
            return _said(CONTROL_PLANE_INITIALIZED, UNKNOWN, INTERNAL_ERROR, error.message)
        waiting = "Control plane not yet initialized"
    elif descendants is None:
        return _said(CONTROL_PLANE_INITIALIZED, UNKNOWN, INTERNAL_ERROR, UNSEEN)
    else:
        initialized = any(machine.node_name for machine in descendants.control_plane_machines)
        waiting = "Waiting for the first control plane machine to have status.nodeRef set"
    if initialized:
        return _said(CONTROL_PLANE_INITIALIZED, TRUE, "Initialized")
    return _said(CONTROL_PLANE_INITIALIZED, FALSE, "NotInitialized", waiting)


def _of_descendants(observed: Observed, now: datetime) -> list[Condition]:
    descendants = observed.descendants
    if descendants is None:
        machines = (WORKERS_AVAILABLE, CONTROL_PLANE_MACHINES_READY, WORKER_MACHINES_READY, CONTROL_PLANE_MACHINES_UP_TO_DATE)
        others = (WORKER_MACHINES_UP_TO_DATE, ROLLING_OUT, SCALING_UP, SCALING_DOWN, REMEDIATING)
        return [_said(name, UNKNOWN, INTERNAL_ERROR, observed.unlisted or UNSEEN) for name in (*machines, *others)]
    control_plane = descendants.control_plane_machines
    # The controllers of MachinePools tell neither UpToDate nor OwnerRemediated of their Machines.
    workers = [machine for machine in descendants.worker_machines if not machine.of_pool]
    ready, up_to_date = Reasons("NotReady", "ReadyUnknown", "Ready"), Reasons("NotUpToDate", "UpToDateUnknown", "UpToDate")
    return [
        _workers_available(descendants.machine_deployments),
        _machines(CONTROL_PLANE_MACHINES_READY, "Ready", control_plane, ready),
        _machines(WORKER_MACHINES_READY, "Ready", workers, ready),
        _machines(CONTROL_PLANE_MACHINES_UP_TO_DATE, "UpToDate", _settled(control_plane, now), up_to_date),
        _machines(WORKER_MACHINES_UP_TO_DATE, "UpToDate", _settled(workers, now), up_to_date),
        *_movements(observed, descendants),
        _remediating([machine for machine in descendants.machines if not machine.of_pool]),
    ]


def _movements(observed: Observed, descendants: Descendants) -> list[Condition]:
    """RollingOut, ScalingUp and ScalingDown of the control plane and of all workers."""
    cluster, external = observed.cluster, observed.control_plane
    if _referred(cluster, "controlPlaneRef") and external.manifest is None and not external.missing:
        problem = external.problem or UNSEEN
        return [_said(name, UNKNOWN, INTERNAL_ERROR, problem) for name in (ROLLING_OUT, SCALING_UP, SCALING_DOWN)]
    sets = [one for one in descendants.machine_sets if owned(one.metadata, cluster["metadata"]["name"])]
    deployments = descendants.machine_deployments
    return [
        _moving(ROLLING_OUT, external, deployments),
        _moving(SCALING_UP, external, [*deployments, *sets]),
        _moving(SCALING_DOWN, external, [*deployments, *sets]),
    ]


def _moving(name: str, external: External, groups: Sequence[Group]) -> Condition:
    sources = [group.source for group in groups]
    if external.manifest is not None:
        # The contract does not oblige a control plane to have the condition.
        try:
            told = reported(external.manifest)
        except InvalidConditionError:
            told = []
        if any(one.type == name for one in told):
            sources.insert(0, Source(external.manifest["metadata"]["name"], told, external.manifest["kind"]))
    if not sources:
        return _said(name, FALSE, f"Not{name}")
    return aggregate(sources, name, reasons=Reasons(name, f"{name}Unknown", f"Not{name}"), negative=True)


def _workers_available(deployments: Sequence[Group]) -> Condition:
    if not deployments:
        return _said(WORKERS_AVAILABLE, TRUE, "NoWorkers")
    reasons = Reasons("NotAvailable", "AvailableUnknown", "Available")
    return aggregate([one.source for one in deployments], AVAILABLE, target_type=WORKERS_AVAILABLE, reasons=reasons)


def _machines_available(descendants: Descendants | None) -> Condition:
    """Of a control plane that nobody but its Machines is."""
    if descendants is None:
        return _said(CONTROL_PLANE_AVAILABLE, UNKNOWN, INTERNAL_ERROR, UNSEEN)
    machines = descendants.control_plane_machines
    if not machines:
        message = "The Cluster has neither a controlPlaneRef nor control plane Machines"
        return _said(CONTROL_PLANE_AVAILABLE, FALSE, DOES_NOT_EXIST, message)
    return _machines(CONTROL_PLANE_AVAILABLE, AVAILABLE, machines, Reasons("NotAvailable", "AvailableUnknown", "Available"))


def _machines(name: str, source_type: str, machines: Sequence[Machine], reasons: Reasons) -> Condition:
    if not machines:
        return _said(name, TRUE, "NoReplicas")
    # One that is well and says nothing stands for all that do.
    saying = [machine for machine in machines if source_type not in machine.silent] or machines[:1]
    return aggregate([machine.source for machine in saying], source_type, target_type=name, reasons=reasons)


def _settled(machines: Sequence[Machine], now: datetime) -> list[Machine]:
    told = names.UP_TO_DATE_CONDITION
    return [machine for machine in machines if told in machine.silent or machine.condition(told) is not None or not _is_new(machine, now)]


def _is_new(machine: Machine, now: datetime) -> bool:
    created = moment(machine.metadata.creation_timestamp)
    return created is not None and now - created <= _NEW


def _remediating(machines: Sequence[Machine]) -> Condition:
    unhealthy = [machine for machine in machines if machine.is_false(names.HEALTH_CHECK_SUCCEEDED_CONDITION)]
    due = [machine for machine in unhealthy if machine.is_false(names.OWNER_REMEDIATED_CONDITION)]
    if due:
        message = aggregate([machine.source for machine in due], "OwnerRemediated").message
        return _said(REMEDIATING, TRUE, "Remediating", message)
    return _said(REMEDIATING, FALSE, "NotRemediating", _not_to_be_remediated(sorted(machine.metadata.name for machine in unhealthy)))


def _not_to_be_remediated(names: Sequence[str]) -> str:
    if not names:
        return ""
    if len(names) == 1:
        return f"Machine {names[0]} is not healthy (not to be remediated)"
    return f"Machines {shortened(names, _SHOWN)} are not healthy (not to be remediated)"


def shortened(names: Sequence[str], most: int) -> str:
    """The first of the names, and how many there are beside them."""
    more = [f"... ({len(names) - most} more)"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


def _deleting(cluster: Manifest, deletion: Deletion | None) -> Condition:
    if not cluster["metadata"].get("deletionTimestamp"):
        return _said(DELETING, FALSE, "NotDeleting")
    found = deletion or Deletion(INTERNAL_ERROR, UNSEEN)
    return _said(DELETING, TRUE, found.reason, found.message)


def _mirrored(external: External, source_type: str, target_type: str, fallback: Fallback, reason_if_true: str) -> Condition:
    try:
        return mirror(external.manifest, source_type, target_type=target_type, fallback=fallback, reason_if_true=reason_if_true)
    except InvalidConditionError as error:
        return _said(target_type, UNKNOWN, INVALID, error.message)


def _unreadable(name: str, cluster: Manifest, external: External, kind: str, *, was_there: bool) -> Condition:
    """What is referred to is not there, or could not be read."""
    if not external.missing:
        return _said(name, UNKNOWN, INTERNAL_ERROR, external.problem or UNSEEN)
    if not was_there:
        return _said(name, FALSE, DOES_NOT_EXIST, f"{kind} does not exist")
    still = "" if cluster["metadata"].get("deletionTimestamp") else " while the cluster still exists"
    return _said(name, FALSE, DELETED, f"{kind} has been deleted{still}")


def _initialized(cluster: Manifest, field: str) -> bool:
    initialization: Manifest = (cluster.get("status") or {}).get("initialization") or {}
    return initialization.get(field) is True


def _referred(cluster: Manifest, field: str) -> str:
    """The kind that the Cluster refers to, empty where it refers to none."""
    kind: str = ((cluster.get("spec") or {}).get(field) or {}).get("kind") or ""
    return kind


def _said(name: str, status: ConditionStatus, reason: str, message: str = "") -> Condition:
    return Condition(type=name, status=status, reason=reason, message=message)
