"""Whether a machine that a health check gave up is replaced: now, later, or not by us.

A machine is remediated by deleting it; the control plane then lacks one, and makes it.  Before that, etcd must keep its quorum without
the machine and one whole API must be left; a replacement that fails in its turn counts as a retry while it is young.

Three things differ from Cluster API 1.14.  A remediation waits for the end of the one before; but where the replacement cannot come because
of the second sick machine, that one is remediated too, under the same rules, or both would wait for ever.  With an etcd of somebody else's
it never remediates an initialized control plane, since it finds no members to judge; here they are not asked for then.  And the only machine
of a control plane may be remediated where an annotation asks for it: see :data:`SINGLE_ANNOTATION`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.duration import Duration
from slipway.fleet.controlplane.decisions import choice
from slipway.fleet.controlplane.decisions.machines import Remediation
from slipway.fleet.controlplane.decisions.preflight import preflight
from slipway.fleet.controlplane.decisions.quorum import etcd_survives, one_api_survives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.fleet.controlplane.decisions.machines import ControlPlane, Machine

SINGLE_ANNOTATION = "slipway.io/remediate-single-control-plane"
"""On a KubeadmControlPlane, "true": its only machine may be given up.

What is done then, exactly: the Machine is deleted, with its host.  When it is gone, the control plane counts as not initialized any more,
and so does the Cluster; the next Machine runs ``kubeadm init`` with the same certificate authorities, so kubeconfigs and the certificates
of kubelets stay valid.  Its etcd is empty: every object of the workload cluster is lost, Nodes of workers included, whose Machines are to
be replaced as well.  Nothing of that is lost with an external etcd.
"""

CANNOT = "CannotBeRemediated"
DEFERRED = "RemediationDeferred"
DELETING = "MachineDeleting"
_FAILED_BEFORE = "KubeadmControlPlane can't remediate this machine because the operation already failed"


class Verdict(NamedTuple):
    """What becomes of the worst machine: ``started`` tells of a remediation to begin, ``reason`` and ``message`` else why there is none."""

    machine: str
    reason: str
    message: str
    started: Remediation | None = None
    deprecated_message: str | None = None
    """Where the condition of v1beta1 says it in other letters."""

    @property
    def older(self) -> str:
        """The message of the condition of v1beta1."""
        return self.message if self.deprecated_message is None else self.deprecated_message


def judge(plane: ControlPlane) -> Verdict | None:
    """None where no machine waits for us to remediate it, or one that we gave up is being replaced."""
    waiting = [machine for machine in plane.machines if machine.ours_to_remediate]
    if not waiting:
        return None
    machine = choice.worst(waiting, manages_etcd=plane.manages_etcd)
    begun = plane.in_progress
    if begun is not None and any(one.name == begun.machine and not one.deleting for one in waiting):
        # Whoever wrote it down was killed before the deletion.
        return Verdict(begun.machine, DELETING, "Machine is deleting", begun, "")
    if machine.deleting or (begun is not None and _will_be_replaced(plane)):
        return None
    started, refused = retry(plane, machine)
    if refused is not None:
        return refused
    refused = _unsafe(plane, machine) if plane.initialized else None
    return refused or Verdict(machine.name, DELETING, "Machine is deleting", started, "")


def _will_be_replaced(plane: ControlPlane) -> bool:
    """Whether a machine that is gone will be followed by another.

    None comes where people want fewer by now, or where it cannot because of another sick machine, which would wait for it in its turn.
    """
    blocked = preflight(plane)
    return len(plane.machines) < plane.most and (blocked is None or not (blocked.components or blocked.etcd))


def not_replaced_yet(started: Remediation | None, machines: Sequence[Machine]) -> Remediation | None:
    """The remediation that was written down, unless it is over: a machine is younger, or the sick one recovered before it was deleted."""
    if started is None or started.time is None or any(machine.created > started.time for machine in machines):
        return None
    sick = next((machine for machine in machines if machine.name == started.machine), None)
    return None if sick is not None and not sick.deleting and not sick.ours_to_remediate else started


def retry(plane: ControlPlane, machine: Machine) -> tuple[Remediation, Verdict | None]:
    """The remediation that this would be, and what the limits on retries say against it."""
    first = Remediation(machine.name, plane.now)
    last, rules = machine.replaces, plane.remediation
    if last is None:
        return first, None
    # Without a time it is long ago.
    age = (plane.now - last.time).total_seconds() if last.time is not None else 2 * max(rules.min_healthy_period, rules.retry_period)
    if age >= rules.min_healthy_period:
        return first, None
    again = first._replace(retries=last.retries)
    if age < rules.retry_period:
        period = Duration.of(seconds=rules.retry_period)
        return again, Verdict(machine.name, DEFERRED, f"{_FAILED_BEFORE} in the latest {period} (RetryPeriodSeconds)")
    if rules.max_retry is not None and again.retries >= rules.max_retry:
        return again, Verdict(machine.name, CANNOT, f"{_FAILED_BEFORE} {rules.max_retry} times (MaxRetry)")
    return again._replace(retries=again.retries + 1), None


def is_safe(plane: ControlPlane, machine: Machine) -> bool:
    """Whether the rest of the control plane works without the machine."""
    if not one_api_survives(plane, without=machine.name):
        return False
    if not plane.manages_etcd or not machine.etcd_name:
        # A machine that never came so far as to have a Node has no member that is known.
        return True
    return bool(plane.members) and etcd_survives(plane, without=machine.etcd_name)


def _unsafe(plane: ControlPlane, machine: Machine) -> Verdict | None:
    """Why an initialized control plane must not lose the machine now."""
    if len(plane.machines) <= 1:
        if plane.remediate_single:
            return None
        return Verdict(machine.name, CANNOT, "KubeadmControlPlane can't remediate if current replicas are less or equal to 1")
    if any(not other.node and not other.unhealthy for other in plane.machines):
        why = "KubeadmControlPlane waiting for control plane Machine provisioning to complete before triggering remediation"
        return Verdict(machine.name, DEFERRED, why, deprecated_message=why.replace("Machine", "machine"))
    if plane.deleting:
        why = "KubeadmControlPlane waiting for control plane Machine deletion to complete before triggering remediation"
        return Verdict(machine.name, DEFERRED, why, deprecated_message=why.replace("Machine", "machine"))
    if plane.manages_etcd and (not plane.members or not plane.nodes_known):
        return Verdict(machine.name, DEFERRED, "Failed to check etcd cluster health before remediation")
    if not is_safe(plane, machine):
        why = (
            "KubeadmControlPlane can't remediate this Machine because this could result in loosing Kubernetes control plane components "
            "or in etcd quorum loss"
        )
        return Verdict(machine.name, CANNOT, why)
    return None
