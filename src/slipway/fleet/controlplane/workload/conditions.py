"""The conditions that a control plane derives from a look into its workload cluster: those of each Machine, and its own two.

Types, reasons and messages are those of Cluster API's KubeadmControlPlane, since Machines carry them through a take-over in either
direction.  One thing is more: a member that was asked itself and does not answer is not healthy, whatever the others say of it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.controlplane.workload import aggregate, podhealth
from slipway.fleet.controlplane.workload.aggregate import Subject
from slipway.fleet.controlplane.workload.verdicts import (
    CONNECTION_DOWN,
    INSPECTION_FAILED,
    Said,
    older_false,
    older_true,
    older_unknown,
    said,
)
from slipway.fleet.controlplane.workload.view import (
    API_SERVER,
    CONTROL_PLANE_LABEL,
    CONTROLLER_MANAGER,
    ETCD,
    SCHEDULER,
    has_control_plane_taint,
)
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.controlplane.workload.view import EtcdMember, MachineFacts, Observed

LABELS_AND_TAINTS = "NodeKubeadmLabelsAndTaintsSet"
MEMBER_HEALTHY = "EtcdMemberHealthy"
POD_CONDITIONS = {
    API_SERVER: "APIServerPodHealthy",
    CONTROLLER_MANAGER: "ControllerManagerPodHealthy",
    SCHEDULER: "SchedulerPodHealthy",
    ETCD: "EtcdPodHealthy",
}
ETCD_CLUSTER_HEALTHY, COMPONENTS_HEALTHY = "EtcdClusterHealthy", "ControlPlaneComponentsHealthy"

# After this the cluster is expected to have noticed the member on a new Node.
_MEMBER_APPEARS = timedelta(minutes=2)
GRACE_PERIOD = timedelta(minutes=5)
"""How long what was last seen is kept while there is no connection."""
_ENOUGH_FAILURES = 5


class Judged(NamedTuple):
    machines: Mapping[str, Sequence[Said]]
    """By the name of the Machine."""
    control_plane: Sequence[Said]
    members_match: bool
    """Whether every Machine has its member and every member its Machine, but for those that are on their way; part of Available."""


class Connection(NamedTuple):
    """How the workload cluster has answered, as the cache of its connections knows it."""

    succeeded_at: datetime | None
    failed_in_a_row: int
    connected: bool


class Trouble(NamedTuple):
    """Why nothing can be seen; ``overwrites`` says whether what was last seen is no longer worth showing."""

    reason: str
    message: str
    overwrites: bool


def trouble(initialized_at: datetime | None, connection: Connection, now: datetime) -> Trouble | None:
    """What keeps a control plane from looking into its cluster; None where it can look.

    ``initialized_at`` is since when the control plane is Initialized, None where it is not: before that there is nobody to ask.
    """
    if initialized_at is None:
        return Trouble(INSPECTION_FAILED, "Waiting for Cluster control plane to be initialized", overwrites=True)
    if connection.succeeded_at is None and connection.failed_in_a_row < _ENOUGH_FAILURES:
        return Trouble(CONNECTION_DOWN, "Remote connection not established yet", overwrites=False)
    since = max(moment for moment in (connection.succeeded_at, initialized_at) if moment is not None)
    last = f"Last successful probe at {timestamp(connection.succeeded_at)}" if connection.succeeded_at is not None else ""
    if now - since > GRACE_PERIOD:
        return Trouble(CONNECTION_DOWN, last, overwrites=True)
    if not connection.connected:
        return Trouble(CONNECTION_DOWN, last, overwrites=False)
    return None


def blind(why: Trouble, machines: Sequence[MachineFacts], present: Collection[str], *, etcd_managed: bool) -> Judged:
    """All conditions of a cluster that cannot be seen; ``present`` are the types of those that the control plane has already."""
    control_plane: list[Said] = []
    told: dict[str, list[Said]] = {machine.name: [] for machine in machines}
    if why.overwrites or ETCD_CLUSTER_HEALTHY not in present:
        control_plane.append(said(ETCD_CLUSTER_HEALTHY, UNKNOWN, why.reason, why.message))
        if etcd_managed:
            for items in told.values():
                items.append(said(MEMBER_HEALTHY, UNKNOWN, why.reason, why.message))
    if why.overwrites or COMPONENTS_HEALTHY not in present:
        control_plane.append(said(COMPONENTS_HEALTHY, UNKNOWN, why.reason, why.message))
        for items in told.values():
            items += [said(name, UNKNOWN, why.reason, why.message) for name in (LABELS_AND_TAINTS, *_pod_conditions(etcd_managed).values())]
    # Nothing is known of the members, and Available says so in words of its own.
    return Judged(told, control_plane, members_match=False)


def judge(observed: Observed, machines: Sequence[MachineFacts], *, etcd_managed: bool, now: datetime) -> Judged:
    pods = {machine.name: _of_pods(observed, machine, etcd_managed=etcd_managed) for machine in machines}
    members, problems, match = _of_members(observed, machines, now) if etcd_managed else ({}, [], True)
    told = {machine.name: [*pods[machine.name], *members.get(machine.name, ())] for machine in machines}
    return Judged(
        told,
        [_components(observed, machines, pods, etcd_managed=etcd_managed), _etcd(observed, machines, told, problems, etcd_managed)],
        match,
    )


def _components(observed: Observed, machines: Sequence[MachineFacts], pods: Mapping[str, Sequence[Said]], *, etcd_managed: bool) -> Said:
    if observed.nodes_error:
        older = older_unknown(
            COMPONENTS_HEALTHY,
            "ControlPlaneComponentsInspectionFailed",
            f"Failed to list Nodes which are hosting control plane components: {observed.nodes_error}",
        )
        message = f"Failed to get Nodes hosting control plane components: {observed.nodes_error}"
        return said(COMPONENTS_HEALTHY, UNKNOWN, INSPECTION_FAILED, message, older=older)
    problems = []
    if all(machine.node_name or machine.deleting for machine in machines):
        # While a Machine is being provisioned, a Node that belongs to none may well be its.
        known = {machine.node_name for machine in machines}
        labelled = [name for name, node in observed.nodes.items() if CONTROL_PLANE_LABEL in (node["metadata"].get("labels") or {})]
        problems = [f"Control plane Node {name} does not have a corresponding Machine" for name in sorted(labelled) if name not in known]
    of = tuple(_pod_conditions(etcd_managed).values())
    subject = Subject(COMPONENTS_HEALTHY, of, "control plane", "ControlPlaneComponentsUnhealthy", "ControlPlaneComponentsUnknown")
    return aggregate.summed_up(subject, machines, pods, problems)


def _etcd(
    observed: Observed, machines: Sequence[MachineFacts], told: Mapping[str, Sequence[Said]], problems: Sequence[str], etcd_managed: bool
) -> Said:
    if not etcd_managed:
        # Today's condition is left to whoever runs the external etcd.
        return Said(None, older_true(ETCD_CLUSTER_HEALTHY))
    if observed.nodes_error:
        older = older_unknown(
            ETCD_CLUSTER_HEALTHY, "EtcdClusterInspectionFailed", "Failed to list Nodes which are hosting the etcd members"
        )
        return said(ETCD_CLUSTER_HEALTHY, UNKNOWN, INSPECTION_FAILED, "Failed to get Nodes hosting the etcd cluster", older=older)
    subject = Subject(ETCD_CLUSTER_HEALTHY, (MEMBER_HEALTHY,), "etcd member", "EtcdClusterUnhealthy", "EtcdClusterUnknown")
    return aggregate.summed_up(subject, machines, told, problems)


def _of_pods(observed: Observed, machine: MachineFacts, *, etcd_managed: bool) -> list[Said]:
    """NodeKubeadmLabelsAndTaintsSet and the conditions of the Pods."""
    kinds = _pod_conditions(etcd_managed)
    if observed.nodes_error:
        component = f"Failed to get the Node which is hosting this component: {observed.nodes_error}"
        about = f"Failed to get the Node hosting the Pod: {observed.nodes_error}"
        return [
            said(LABELS_AND_TAINTS, UNKNOWN, INSPECTION_FAILED, "Failed to get the Node"),
            *(podhealth.unknown(kind, about, older=component) for kind in kinds.values()),
        ]
    node = observed.nodes.get(machine.node_name) if machine.node_name else None
    if machine.deleting:
        gone = "Machine is deleting"
        return [
            labels_and_taints(machine, node) if node is not None else said(LABELS_AND_TAINTS, FALSE, podhealth.DELETING, gone),
            *(said(kind, FALSE, podhealth.DELETING, gone, older=older_false(kind, "Deleting", "Info")) for kind in kinds.values()),
        ]
    if not machine.node_name:
        return [said(kind, UNKNOWN, INSPECTION_FAILED, _awaited(machine)) for kind in (LABELS_AND_TAINTS, *kinds.values())]
    if node is None:
        about = f"Node {machine.node_name} does not exist"
        return [
            said(LABELS_AND_TAINTS, UNKNOWN, INSPECTION_FAILED, about),
            *(
                said(kind, UNKNOWN, INSPECTION_FAILED, about, older=older_false(kind, "PodFailed", "Error", "Missing Node"))
                for kind in kinds.values()
            ),
        ]
    if podhealth.is_unreachable(node):
        about = f"Node {machine.node_name} is unreachable"
        return [
            said(LABELS_AND_TAINTS, UNKNOWN, INSPECTION_FAILED, about),
            *(podhealth.unknown(kind, about, older="Node is unreachable") for kind in kinds.values()),
        ]
    return [
        labels_and_taints(machine, node),
        *(_of_pod(observed, node, component, machine.node_name, kind) for component, kind in kinds.items()),
    ]


def _of_pod(observed: Observed, node: Manifest, component: str, node_name: str, kind: str) -> Said:
    pod = observed.pods.get((component, node_name))
    if pod is not None:
        return podhealth.health(kind, node, pod)
    if podhealth.is_ready_unknown(node):
        return podhealth.health(kind, node, {})
    if (component, node_name) in observed.pods_unread:
        return podhealth.unread(kind)
    return podhealth.missing(kind, f"{component}-{node_name}")


def labels_and_taints(machine: MachineFacts, node: Manifest) -> Said:
    """Whether a Node still has what kubeadm gave it."""
    lacks = []
    if CONTROL_PLANE_LABEL not in (node["metadata"].get("labels") or {}):
        lacks.append(f"the {CONTROL_PLANE_LABEL} label")
    if machine.wants_taint and not has_control_plane_taint(node):
        lacks.append(f"the {CONTROL_PLANE_LABEL}:NoSchedule taint")
    if lacks:
        return said(LABELS_AND_TAINTS, FALSE, "NotSet", f"Node {machine.node_name} does not have {' and '.join(lacks)}")
    return said(LABELS_AND_TAINTS, TRUE, "Set")


def _of_members(observed: Observed, machines: Sequence[MachineFacts], now: datetime) -> tuple[dict[str, list[Said]], list[str], bool]:
    """EtcdMemberHealthy of each Machine, what is wrong with members that have none, and whether both sides match."""
    if observed.nodes_error:
        about = "Failed to get the Node hosting the etcd member"
        hosting = older_unknown(MEMBER_HEALTHY, "MemberInspectionFailed", "Failed to get the Node which is hosting the etcd member")
        unknown = said(MEMBER_HEALTHY, UNKNOWN, INSPECTION_FAILED, about, older=hosting)
        return {machine.name: [unknown] for machine in machines}, [], False
    told = {machine.name: [_of_member(observed, machine)] for machine in machines}
    if observed.members is None:
        # Nothing can be compared; while all Machines are on their way there is nothing to compare either.
        return told, [], not any(machine.node_name for machine in machines)
    match = True
    for machine in machines:
        if machine.node_name and observed.member(machine.node_name) is None:
            older = older_false(MEMBER_HEALTHY, "EtcdMemberUnhealthy", "Error", "Missing etcd member")
            about = f"Etcd doesn't have an etcd member for Node {machine.node_name}"
            told[machine.name] = [said(MEMBER_HEALTHY, FALSE, "NotHealthy", about, older=older)]
            match = match and (machine.deleting or not _is_old(observed.nodes.get(machine.node_name), now))
    known = {machine.node_name for machine in machines if machine.node_name}
    strangers = [member for member in observed.members if member.name not in known]
    problems = [f"Etcd member {_named(member)} does not have a corresponding Machine" for member in strangers]
    # The member of a Machine that is being provisioned comes before its Node does.
    return told, problems, match and (not strangers or any(not machine.node_name for machine in machines))


def _of_member(observed: Observed, machine: MachineFacts) -> Said:
    if machine.deleting:
        older = older_false(MEMBER_HEALTHY, "Deleting", "Info")
        return said(MEMBER_HEALTHY, FALSE, podhealth.DELETING, "Machine is deleting", older=older)
    if not machine.node_name:
        return said(MEMBER_HEALTHY, UNKNOWN, INSPECTION_FAILED, _awaited(machine))
    if observed.members_error:
        return _unasked(observed.members_error)
    member = observed.member(machine.node_name)
    if member is None:
        names = f"[{' '.join(map(_known_as, observed.members or ()))}]"
        return _unhealthy(
            f"Etcd reports the cluster is composed by {names}, but the etcd member hosted on Machine {machine.name} ({machine.node_name}) "
            "is not included",
            f"Etcd member reports the cluster is composed by members {names}, but the member hosted on this Machine is not included",
        )
    if member.learner:
        return _unhealthy("Waiting for learner etcd member to be promoted")
    if member.alarms:
        listed = ", ".join(member.alarms)
        return _unhealthy(f"Etcd reports alarms: {listed}", f"Etcd member reports alarms: {listed}")
    if member.healthy is False:
        return _unhealthy(f"Etcd member {member.name} does not answer")
    return said(MEMBER_HEALTHY, TRUE, "Healthy", older=older_true(MEMBER_HEALTHY))


def _unasked(error: str) -> Said:
    """Of all members, where nobody could be asked about them."""
    sentence = error.partition(":")[0]
    if sentence in ("Failed to get etcd members", "Failed to get etcd alarms"):
        older = older_false(MEMBER_HEALTHY, "EtcdMemberUnhealthy", "Error", sentence)
    else:
        older = older_unknown(MEMBER_HEALTHY, "MemberInspectionFailed", error)
    return said(MEMBER_HEALTHY, UNKNOWN, INSPECTION_FAILED, error, older=older)


def _unhealthy(message: str, older: str = "") -> Said:
    return said(
        MEMBER_HEALTHY, FALSE, "NotHealthy", message, older=older_false(MEMBER_HEALTHY, "EtcdMemberUnhealthy", "Error", older or message)
    )


def _awaited(machine: MachineFacts) -> str:
    if machine.provider_id:
        return f"Waiting for a Node with spec.providerID {machine.provider_id} to exist"
    return f"Waiting for {machine.infrastructure_kind} to report spec.providerID"


def _named(member: EtcdMember) -> str:
    return member.name or f"{member.id} (Name not yet assigned)"


def _known_as(member: EtcdMember) -> str:
    return member.name or f"name not set yet for member with id {member.id}"


def _is_old(node: Manifest | None, now: datetime) -> bool:
    return node is not None and now - datetime.fromisoformat(node["metadata"]["creationTimestamp"]) > _MEMBER_APPEARS


def _pod_conditions(etcd_managed: bool) -> dict[str, str]:
    return {component: kind for component, kind in POD_CONDITIONS.items() if etcd_managed or component != ETCD}
