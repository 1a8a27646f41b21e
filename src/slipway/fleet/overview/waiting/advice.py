"""What a condition that is not as it should be means, what to do about it, and for how long it may last before somebody has to.

Of the bare-metal provider's own kinds the words are those of its reference, :mod:`slipway.fleet.baremetal.reasons`; those of Cluster API's
are here.  A reason that is not in the tables is told with its message, as it is.
"""

from __future__ import annotations

from typing import NamedTuple

from slipway.api.cluster import names as core
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from slipway.fleet.baremetal import reasons

_CLUSTER, _KCP, _MD, _MS, _MACHINE = CLUSTER.kind, KUBEADM_CONTROL_PLANE.kind, MACHINE_DEPLOYMENT.kind, MACHINE_SET.kind, MACHINE.kind
# Seconds.  At once: nothing changes until somebody does something, or a deadline is over already.
_AT_ONCE, _SOON, _A_WHILE, _LONG = 0.0, 120.0, 600.0, 1800.0

_ANY = ""


class Advice(NamedTuple):
    """What a condition's reason means."""

    meaning: str
    to_do: str = ""
    patience: float | None = None
    """For how many seconds it may be so; None for ever, as something else ends it."""
    says: str = ""
    """What its message must have in it."""


_HOOK = "Whoever put the annotation there takes it away when it is ready; where that program is gone, take the annotation away."
_UNREACHABLE = "Look whether the control plane's endpoint is reachable from the manager, and whether a control plane runs."
_REPLACE = "Look at the Node and its kubelet; where it does not come back, delete the Machine."
_LOG = "Look at the log of the manager that reconciles it."
_FINALIZERS = "Where that lasts, look at what still belongs to it, and at its finalizers."
_BLOCKED = "Nothing is added or removed while something else is not well."
_MEND = "Mend what the message names."
_UNPAUSE = f"Take spec.paused of the Cluster, or the annotation {core.PAUSED_ANNOTATION}, away."
_TEMPLATE = "Make the template that the message names, or name another one."

# By kind, condition and reason; of several for one the first whose words are in the message, and no reason means any.
OF_CLUSTER_API: dict[tuple[str, str, str], tuple[Advice, ...]] = {
    # Of a Machine that goes.
    (_MACHINE, core.DELETING_CONDITION, "WaitingForPreDrainHook"): (
        Advice("Somebody wants to do something before its Pods are evicted.", _HOOK, _A_WHILE),
    ),
    (_MACHINE, core.DELETING_CONDITION, "DrainingNode"): (
        Advice(
            "A PodDisruptionBudget does not let a Pod be evicted from its Node.",
            "Let the workload have another Pod that is ready, or relax the budget that the message names; "
            f"to go without, set spec.deletion.nodeDrainTimeoutSeconds or the annotation {core.EXCLUDE_NODE_DRAINING_ANNOTATION}.",
            _A_WHILE,
            "disruption budget",
        ),
        Advice(
            "Pods that were evicted from its Node do not end.",
            "Look at their grace periods and finalizers, and at the kubelet.",
            _A_WHILE,
            "deletionTimestamp set",
        ),
        Advice(
            "Its Node is not drained before some Pods have ended.",
            "Wait for the Pods that the message names; where nobody needs their end, delete them.",
            _LONG,
            "waiting for completion",
        ),
        Advice("Pods of its Node cannot be evicted.", "The message says why.", _A_WHILE, "failed to evict"),
        Advice("Its Node could not be drained.", _UNREACHABLE, _A_WHILE, "Error draining"),
        Advice("The Pods of its Node are being evicted.", "Where that lasts, look at the Pods that are still on the Node.", _LONG),
    ),
    (_MACHINE, core.DELETING_CONDITION, "WaitingForVolumeDetach"): (
        Advice("Volumes are still attached to its Node.", "Look at the VolumeAttachments, and at the storage's controller.", _A_WHILE),
    ),
    (_MACHINE, core.DELETING_CONDITION, "WaitingForPreTerminateHook"): (
        Advice(
            "The control plane takes its etcd member out before the host goes.",
            "Look at the conditions EtcdClusterHealthy and ControlPlaneComponentsHealthy of the KubeadmControlPlane.",
            _A_WHILE,
            "kcp-cleanup",
        ),
        Advice("Somebody wants to do something before its host goes.", _HOOK, _A_WHILE),
    ),
    (_MACHINE, core.DELETING_CONDITION, core.WAITING_FOR_INFRASTRUCTURE_DELETION_REASON): (
        Advice("Its infrastructure is being deleted.", "Look at the conditions of the Machine's infrastructure.", _LONG),
    ),
    (_MACHINE, core.DELETING_CONDITION, "WaitingForBootstrapDeletion"): (
        Advice("Its bootstrap configuration is being deleted.", "Look at the finalizers of its KubeadmConfig.", _A_WHILE),
    ),
    (_MACHINE, core.DELETING_CONDITION, "DeletingNode"): (Advice("Its Node is being deleted.", _UNREACHABLE, _A_WHILE),),
    (_MACHINE, core.DELETING_CONDITION, core.INTERNAL_ERROR_REASON): (Advice("Its deletion has failed.", _LOG, _SOON),),
    (_MACHINE, core.DELETING_CONDITION, _ANY): (Advice("It is being deleted.", _FINALIZERS, _LONG),),
    # Of a Machine that comes.
    (_MACHINE, core.BOOTSTRAP_CONFIG_READY_CONDITION, core.OBJECT_DOES_NOT_EXIST_REASON): (
        Advice("Its bootstrap configuration is not there.", "Delete the Machine; its replacement gets another one.", _SOON),
    ),
    (_MACHINE, core.BOOTSTRAP_CONFIG_READY_CONDITION, _ANY): (
        Advice(
            "Its bootstrap data is made when the cluster's infrastructure is ready.",
            "Where that lasts, look at the conditions of the Cluster's infrastructure.",
            _LONG,
            "infrastructureReady",
        ),
        Advice(
            "Its bootstrap data is made when the first control plane is there.",
            "Where that lasts, look at the first Machine of the control plane.",
            _LONG,
            "control plane to be initialized",
        ),
        Advice("Its bootstrap data is not there yet.", "Look at the KubeadmConfig of the Machine.", _A_WHILE),
    ),
    (_MACHINE, core.INFRASTRUCTURE_READY_CONDITION, core.OBJECT_DELETED_REASON): (
        Advice("Its infrastructure has gone.", "Delete the Machine; its replacement gets another one.", _AT_ONCE),
    ),
    (_MACHINE, core.INFRASTRUCTURE_READY_CONDITION, _ANY): (
        Advice("Its infrastructure is not ready yet.", "Look at the conditions of the Machine's infrastructure.", _LONG),
    ),
    (_MACHINE, core.NODE_HEALTHY_CONDITION, core.NODE_DELETED_REASON): (
        Advice("Somebody has deleted its Node.", "Delete the Machine, or let a MachineHealthCheck do it.", _SOON),
    ),
    (_MACHINE, core.NODE_HEALTHY_CONDITION, core.CONNECTION_DOWN_REASON): (
        Advice("The workload cluster does not answer.", _UNREACHABLE, _A_WHILE),
    ),
    (_MACHINE, core.NODE_HEALTHY_CONDITION, core.INSPECTION_FAILED_REASON): (
        Advice("It is not a Node yet.", "See the host's console, and whether it reaches the control plane's endpoint.", _LONG),
    ),
    (_MACHINE, core.NODE_HEALTHY_CONDITION, "NodeHealthyUnknown"): (Advice("The kubelet of its Node is silent.", _REPLACE, _A_WHILE),),
    (_MACHINE, core.NODE_HEALTHY_CONDITION, _ANY): (Advice("Its Node is not well.", _REPLACE, _A_WHILE),),
    (_MACHINE, core.OWNER_REMEDIATED_CONDITION, core.CANNOT_BE_REMEDIATED_REASON): (
        Advice("It is sick, and cannot be replaced.", "The message says why: mend that, or the machine itself.", _SOON),
    ),
    (_MACHINE, core.OWNER_REMEDIATED_CONDITION, core.REMEDIATION_DEFERRED_REASON): (
        Advice("It is sick, and its replacement waits.", "The message says for what.", _LONG),
    ),
    (_MACHINE, core.OWNER_REMEDIATED_CONDITION, _ANY): (
        Advice("It is sick, and is to be replaced.", f"Where that lasts: {_LOG}", _A_WHILE),
    ),
    (_MACHINE, core.HEALTH_CHECK_SUCCEEDED_CONDITION, _ANY): (
        Advice("Its MachineHealthCheck says that it is sick.", "Look at the condition OwnerRemediated of the Machine.", _LONG),
    ),
    (_MACHINE, "EtcdMemberHealthy", _ANY): (
        Advice("Its etcd member is not well.", "Look at the etcd Pod of its Node, and at the alarms of etcd.", _A_WHILE),
    ),
    **{
        (_MACHINE, condition, _ANY): (Advice(f"Its {pod} is not well.", f"Look at the Pod {pod} of its Node.", _A_WHILE),)
        for condition, pod in (
            ("APIServerPodHealthy", "kube-apiserver"),
            ("ControllerManagerPodHealthy", "kube-controller-manager"),
            ("SchedulerPodHealthy", "kube-scheduler"),
            ("EtcdPodHealthy", "etcd"),
        )
    },
    (_MACHINE, "NodeKubeadmLabelsAndTaintsSet", _ANY): (
        Advice(
            "Its Node lacks the labels and taints of a control plane: its join has not ended.",
            "Look at the end of cloud-init's output on the host, and at its clock; then delete the Machine.",
            _A_WHILE,
        ),
    ),
    (_MACHINE, core.READY_CONDITION, _ANY): (
        Advice("It is not ready.", "The message says which of its conditions is in the way.", _A_WHILE),
    ),
    # Of a control plane.
    (_KCP, core.CERTIFICATES_AVAILABLE_CONDITION, _ANY): (
        Advice("The certificates of the cluster are not there.", "Look at the Secrets of the cluster's certificates.", _SOON),
    ),
    (_KCP, core.ETCD_CLUSTER_HEALTHY_CONDITION, _ANY): (
        Advice(
            "etcd is not well, and no machine is replaced meanwhile.",
            "Look at the etcd Pod of the machine that the message names.",
            _A_WHILE,
        ),
    ),
    (_KCP, core.CONTROL_PLANE_COMPONENTS_HEALTHY_CONDITION, _ANY): (
        Advice(
            "Components of the control plane are not well, and no machine is replaced meanwhile.",
            "Look at the Pods of the machine that the message names.",
            _A_WHILE,
        ),
    ),
    (_KCP, core.SNAPSHOT_BEFORE_ROLLOUT_CONDITION, _ANY): (
        Advice(
            "No machine is replaced before a snapshot of etcd is kept.",
            "Mend what the message names, or take the annotation slipway.io/snapshot-before-rollout away to roll without a snapshot.",
            _SOON,
        ),
    ),
    (_KCP, core.AVAILABLE_CONDITION, _ANY): (
        Advice("Its first machine makes the cluster.", "Where that lasts, look at that Machine.", _LONG, "not yet initialized"),
        Advice("It does not work.", "The message says what is missing.", _A_WHILE),
    ),
    # Of what has machines.
    (_MS, core.SCALING_UP_CONDITION, _ANY): (
        Advice(
            "New machines wait for the control plane.",
            "Wait until it is at its version; where that is wrong, mend the versions.",
            _LONG,
            "preflight check failed",
        ),
        Advice("Its template is not there.", _TEMPLATE, _SOON, "not exist"),
        Advice(_BLOCKED, _MEND, _A_WHILE, "blocked"),
    ),
    **{
        (kind, condition, _ANY): (
            Advice("Its template is not there.", _TEMPLATE, _SOON, "not exist"),
            Advice("Nothing is added or removed before a machine that leaves has gone.", "", None, "to complete deletion"),
            Advice(_BLOCKED, _MEND, _A_WHILE, "blocked"),
        )
        for kind in (_KCP, _MD)
        for condition in (core.SCALING_UP_CONDITION, core.SCALING_DOWN_CONDITION)
    },
    (_MD, core.ROLLING_OUT_CONDITION, _ANY): (
        Advice("Its rollout waits for its turn.", "Wait; where the message names a check that failed, mend that.", _LONG, "Waiting for"),
        Advice(
            "Its rollout waits for the control plane.", "Wait until the control plane is at its version.", _LONG, "preflight check failed"
        ),
    ),
    (_MD, core.AVAILABLE_CONDITION, _ANY): (
        Advice("Fewer machines are available than there must be, so no other one is taken away.", "Look at its Machines.", _LONG),
    ),
    # Of a Cluster.
    (_CLUSTER, core.INFRASTRUCTURE_READY_CONDITION, _ANY): (
        Advice("Its infrastructure is not ready.", "Look at the conditions of the Cluster's infrastructure.", _A_WHILE),
    ),
    (_CLUSTER, core.REMOTE_CONNECTION_PROBE_CONDITION, _ANY): (Advice("The manager does not reach it.", _UNREACHABLE, _A_WHILE),),
    (_CLUSTER, core.TOPOLOGY_RECONCILED_CONDITION, _ANY): (
        Advice("Its topology is not what it should be.", "Look at the ClusterClass and the variables that the message names.", _A_WHILE),
    ),
    (_CLUSTER, core.DELETING_CONDITION, _ANY): (Advice("It is being deleted.", _FINALIZERS, _LONG),),
    **{(kind, core.DELETING_CONDITION, _ANY): (Advice("It is being deleted.", _FINALIZERS, _LONG),) for kind in (_KCP, _MD, _MS)},
    **{
        (kind, core.PAUSED_CONDITION, _ANY): (Advice("It is paused: nothing is done to it.", _UNPAUSE, _AT_ONCE),)
        for kind in (_CLUSTER, _KCP, _MD, _MS, _MACHINE)
    },
}

# Of the bare-metal provider: how long what the reference has something to be done about may last.
_PATIENCE: dict[str, float | None] = {
    names.BOOTSTRAP_WAITING_REASON: _A_WHILE,
    names.WAITING_FOR_CLUSTER_INFRASTRUCTURE_REASON: _SOON,
    names.POOL_EXHAUSTED_REASON: _SOON,
    names.VIP_PEERS_UNKNOWN_REASON: _SOON,
    names.PLAN_SECRET_MISSING_REASON: _SOON,
    names.VIP_API_NOT_REACHABLE_REASON: _A_WHILE,
    # It keeps nothing from going on: what it speaks of is refused, or waits and is told there.
    names.ROLLOUT_OBJECTION_REASON: None,
    reasons.BOOTSTRAP_TOKEN_EXPIRED: _A_WHILE,
    reasons.WORKLOAD_UNREACHABLE: _A_WHILE,
    reasons.OLD_NODE_REMAINS: _A_WHILE,
    reasons.PLAN_EDITED: _A_WHILE,
    reasons.NODE_GONE: _SOON,
}
REFERENCE = {(row.kind, row.condition, row.reason): row for row in reasons.REASONS}


def advice(kind: str, type_: str, reason: str, message: str) -> Advice:
    """Of a condition that is not as it should be."""
    known = REFERENCE.get((kind, type_, reason))
    if known is not None:
        # Where nobody has anything to do, it ends by itself.
        return Advice(known.meaning, known.to_do, _PATIENCE.get(reason, _AT_ONCE) if known.to_do else None)
    for rows in (OF_CLUSTER_API.get((kind, type_, reason), ()), OF_CLUSTER_API.get((kind, type_, _ANY), ())):
        found = next((row for row in rows if row.says in message), None)
        if found is not None:
            return found
    return Advice(f"{type_} says {reason}." if reason else f"{type_} is not as it should be.", f"Where that lasts: {_LOG}", _A_WHILE)
