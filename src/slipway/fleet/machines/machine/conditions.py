"""The conditions of a Machine, each as a function of what was observed; types, reasons and messages are Cluster API's.

An error that was met is told in its condition, where Cluster API refers to the log of its controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, Condition
from slipway.fleet.machines.machine.mirror import NO_REASON, InvalidConditionError, mirrored
from slipway.fleet.machines.machine.values import moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.cluster.core.machine import Bootstrap, Machine, MachineSpec
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.liveclusters import Probe
    from slipway.fleet.machines.machine.values import External, Found, Said

GRACE = 300.0
"""For so many seconds without an answer of the workload cluster what was last known of a Node is still told."""
_PROBES = 5
"""So many probes must have failed before a cluster that never answered counts as one that does not."""
_UPDATE_MACHINE = "UpdateMachine"


class ClusterState(NamedTuple):
    """What the conditions of a Machine depend on in its Cluster."""

    infrastructure_provisioned: bool = False
    initialized: bool = False
    initialized_at: str = ""


class Templates(NamedTuple):
    """What a Machine was made from, and what its MachineDeployment wants by now; times are those of the API."""

    current: MachineSpec
    wanted: MachineSpec
    made_at: str = ""
    rollout_after: str = ""


def bootstrap_config_ready(machine: Machine, config: External, problem: str = "") -> Condition:
    name, reference = names.BOOTSTRAP_CONFIG_READY_CONDITION, machine.spec.bootstrap.config_ref
    if not reference.name:
        return Condition(type=name, status=TRUE, reason="DataSecretProvided")
    created = machine.status.initialization.bootstrap_data_secret_created is True
    if config.manifest is not None:
        waiting = "" if created else f"{reference.kind} status.initialization.dataSecretCreated is false"
        return _mirror(config.manifest, name, created, waiting)
    if not config.missing:
        return _unread(name, problem)
    if machine.metadata.get("deletionTimestamp") and created:
        return Condition(type=name, status=FALSE, reason=names.OBJECT_DELETED_REASON, message=f"{reference.kind} has been deleted")
    return Condition(type=name, status=FALSE, reason=names.OBJECT_DOES_NOT_EXIST_REASON, message=f"{reference.kind} does not exist")


def infrastructure_ready(machine: Machine, infrastructure: External, problem: str = "") -> Condition:
    name, kind = names.INFRASTRUCTURE_READY_CONDITION, machine.spec.infrastructure_ref.kind
    provisioned = machine.status.initialization.infrastructure_provisioned is True
    if infrastructure.manifest is not None:
        waiting = "" if provisioned else f"{kind} status.initialization.provisioned is false"
        return _mirror(infrastructure.manifest, name, provisioned, waiting)
    if not infrastructure.missing:
        return _unread(name, problem)
    if not provisioned:
        return Condition(type=name, status=FALSE, reason=names.OBJECT_DOES_NOT_EXIST_REASON, message=f"{kind} does not exist")
    rest = "" if machine.metadata.get("deletionTimestamp") else " while the Machine still exists"
    return Condition(type=name, status=FALSE, reason=names.OBJECT_DELETED_REASON, message=f"{kind} has been deleted{rest}")


def node_conditions(
    machine: Machine, cluster: ClusterState, found: Found, probe: Probe, known: Sequence[str], now: datetime
) -> list[Condition]:
    """NodeReady and NodeHealthy; none where what was told last is still to be believed.  ``known`` are the conditions that are there."""
    if not cluster.infrastructure_provisioned:
        return _both(names.INSPECTION_FAILED_REASON, "Waiting for Cluster status.initialization.infrastructureProvisioned to be true")
    if not cluster.initialized:
        return _both(names.INSPECTION_FAILED_REASON, "Waiting for Cluster control plane to be initialized")
    told = names.NODE_READY_CONDITION in known and names.NODE_HEALTHY_CONDITION in known
    if probe.succeeded_at is None and probe.failed_in_a_row < _PROBES:
        # Nobody had the time to try often enough: the manager or the cluster is new.
        return [] if told else _both(names.CONNECTION_DOWN_REASON, "Remote connection not established yet")
    last = "" if probe.succeeded_at is None else f"Last successful probe at {probe.succeeded_at:%Y-%m-%dT%H:%M:%SZ}"
    since = max(filter(None, (probe.succeeded_at, moment(cluster.initialized_at))), default=None)
    if since is None or (now - since).total_seconds() > GRACE:
        return _both(names.CONNECTION_DOWN_REASON, last)
    if found.disconnected:
        return [] if told else _both(names.CONNECTION_DOWN_REASON, last)
    if found.problem:
        return _both(names.INTERNAL_ERROR_REASON, f"The Node could not be read: {found.problem}")
    if found.node is not None:
        return [_node_ready(found.node), _node_healthy(found.node)]
    return _without_node(machine)


def _without_node(machine: Machine) -> list[Condition]:
    deleting, name = bool(machine.metadata.get("deletionTimestamp")), machine.status.node_ref.name
    if name:
        rest = "" if deleting else " while the Machine still exists"
        return _both(names.NODE_DELETED_REASON, f"Node {name} has been deleted{rest}", issue=True)
    if deleting:
        return _both(names.NODE_DOES_NOT_EXIST_REASON, "Node does not exist")
    if machine.spec.provider_id:
        return _both(names.INSPECTION_FAILED_REASON, f"Waiting for a Node with spec.providerID {machine.spec.provider_id} to exist")
    return _both(names.INSPECTION_FAILED_REASON, f"Waiting for {machine.spec.infrastructure_ref.kind} to report spec.providerID")


def _both(reason: str, message: str, *, issue: bool = False) -> list[Condition]:
    status = FALSE if issue else UNKNOWN
    return [
        Condition(type=name, status=status, reason=reason, message=message)
        for name in (names.NODE_READY_CONDITION, names.NODE_HEALTHY_CONDITION)
    ]


def _node_ready(node: Manifest) -> Condition:
    name = names.NODE_READY_CONDITION
    condition = _of_node(node, "Ready")
    if condition is None:
        return Condition(type=name, status=UNKNOWN, reason="NodeReadyUnknown", message="* Node.Ready: Condition not yet reported")
    status, message = condition.get("status"), condition.get("message") or ""
    reason = {"True": "NodeReady", "False": "NodeNotReady"}.get(str(status), "NodeReadyUnknown")
    text = f"* Node.Ready: {message}" if status != TRUE and message else ""
    when = condition.get("lastTransitionTime") or ""
    shown = TRUE if status == TRUE else FALSE if status == FALSE else UNKNOWN
    return Condition(type=name, status=shown, reason=reason, message=text, last_transition_time=when)


def _node_healthy(node: Manifest) -> Condition:
    """The four conditions of every Node, as one."""
    issues, unknown, texts, lines = 0, 0, [], []
    for kind, well in (("Ready", TRUE), ("MemoryPressure", FALSE), ("DiskPressure", FALSE), ("PIDPressure", FALSE)):
        condition = _of_node(node, kind)
        if condition is None:
            lines.append(f"* Node.{kind}: Condition not yet reported")
            unknown += 1
            continue
        status = condition.get("status")
        if status == well:
            continue
        text = condition.get("message") or f"Condition is {status}"
        texts.append(text)
        lines.append(f"* Node.{kind}: {text}")
        if status == UNKNOWN:
            unknown += 1
        else:
            issues += 1
    if len(texts) > 1 and len(set(texts)) == 1:
        # A kubelet that is gone is told once.
        lines = [f"* Node.AllConditions: {texts[0]}"]
    name, message = names.NODE_HEALTHY_CONDITION, "\n".join(lines)
    if issues:
        return Condition(type=name, status=FALSE, reason="NodeNotHealthy", message=message)
    if unknown:
        return Condition(type=name, status=UNKNOWN, reason="NodeHealthyUnknown", message=message)
    return Condition(type=name, status=TRUE, reason="NodeHealthy")


def _of_node(node: Manifest, kind: str) -> Manifest | None:
    found = [condition for condition in (node.get("status") or {}).get("conditions") or () if condition.get("type") == kind]
    return found[-1] if found else None


def deleting(machine: Machine, said: Said) -> Condition:
    if not machine.metadata.get("deletionTimestamp"):
        return Condition(type=names.DELETING_CONDITION, status=FALSE, reason="NotDeleting")
    return Condition(type=names.DELETING_CONDITION, status=TRUE, reason=said.reason, message=said.message)


def updating(machine: Machine) -> Condition:
    """Updates in place are upstream's alone; one that its managers have begun is told, and not gone on with."""
    annotations = machine.metadata.get("annotations") or {}
    pending = str(annotations.get(names.PENDING_HOOKS_ANNOTATION) or "").split(",")
    if names.UPDATE_IN_PROGRESS_ANNOTATION in annotations or _UPDATE_MACHINE in pending:
        return Condition(type=names.UPDATING_CONDITION, status=TRUE, reason="InPlaceUpdating", message="In-place update in progress")
    return Condition(type=names.UPDATING_CONDITION, status=FALSE, reason="NotUpdating")


def up_to_date(machine: Machine, templates: Templates | None, in_place: Condition, now: datetime) -> Condition | None:
    """None for a Machine that no MachineDeployment stands behind: whoever does says it."""
    if templates is None:
        return None
    name = names.UP_TO_DATE_CONDITION
    lines = differences(templates.current, templates.wanted)
    after, made = moment(templates.rollout_after), moment(templates.made_at)
    if after is not None and after < now and (made is None or made < after):
        lines.append("MachineDeployment spec.rolloutAfter expired")
    if lines:
        return Condition(type=name, status=FALSE, reason="NotUpToDate", message="\n".join(f"* {line}" for line in lines))
    if in_place.status == TRUE:
        message = f"* {in_place.message or 'In-place update in progress'}"
        return Condition(type=name, status=FALSE, reason="Updating", message=message)
    kubelet = "" if machine.status.node_info is None else machine.status.node_info.kubelet_version
    if kubelet and kubelet != machine.spec.version:
        message = f"* Node.status.nodeInfo.kubeletVersion {kubelet}, {machine.spec.version} required"
        return Condition(type=name, status=FALSE, reason="Updating", message=message)
    return Condition(type=name, status=TRUE, reason=names.UP_TO_DATE_CONDITION)


def differences(current: MachineSpec, wanted: MachineSpec) -> list[str]:
    """What of a Machine's template cannot become what is wanted without a new Machine."""
    lines = []
    if current.version != wanted.version:
        lines.append(f"Version {current.version}, {wanted.version} required")
    if current.bootstrap != wanted.bootstrap:
        lines.append(_bootstrap_difference(current.bootstrap, wanted.bootstrap))
    if current.infrastructure_ref != wanted.infrastructure_ref:
        lines.append(f"{current.infrastructure_ref.kind.removesuffix('Template')} is not up-to-date")
    if current.failure_domain != wanted.failure_domain:
        lines.append(f"Failure domain {current.failure_domain}, {wanted.failure_domain} required")
    return lines


def _bootstrap_difference(current: Bootstrap, wanted: Bootstrap) -> str:
    if current.config_ref.name:
        return f"{current.config_ref.kind.removesuffix('Template')} is not up-to-date"
    is_now, is_to_be = ("nil" if given is None else given for given in (current.data_secret_name, wanted.data_secret_name))
    return f"spec.bootstrap.dataSecretName {is_now}, {is_to_be} required"


def _mirror(source: Manifest, name: str, well: bool, waiting: str) -> Condition:
    fallback = Condition(
        type=name, status=TRUE if well else FALSE, reason=names.READY_REASON if well else names.NOT_READY_REASON, message=waiting
    )
    try:
        condition = mirrored(source, name, fallback)
    except InvalidConditionError as error:
        return Condition(type=name, status=UNKNOWN, reason=names.INVALID_CONDITION_REPORTED_REASON, message=error.message)
    if condition.reason == NO_REASON and condition.status == TRUE:
        # Conditions of v1beta1 have none where all is well.
        condition.reason = names.READY_REASON
    return condition


def _unread(name: str, problem: str) -> Condition:
    return Condition(type=name, status=UNKNOWN, reason=names.INTERNAL_ERROR_REASON, message=problem or "It could not be read yet")
