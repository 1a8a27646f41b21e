"""Whether a cluster is well enough to be upgraded: it runs a Job, its control planes are Ready, and its static Pods are here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.kube import errors
from slipway.node.cluster.live import LiveCluster
from slipway.node.preflight import check as preflight
from slipway.node.staticpods import components
from slipway.workload import images

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from slipway.api.machinery.objects import Manifest
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext
    from slipway.node.preflight.check import Findings

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
_JOB = "upgrade-health-check"
_NAMESPACE = "kube-system"
# The Job may outlive the wait for it by this many seconds, and goes away by itself if nobody is there to delete it.
_MARGIN = 5


def check(ctx: NodeContext, cluster: Cluster, ignored: Collection[str]) -> None:
    """Run the checks of kubeadm's names; ``ignored`` are lower-case names, as of ``--ignore-preflight-errors``."""
    ctx.progress.say("[upgrade] Running cluster health checks")
    findings = [
        ("CreateJob", _job_runs(ctx, cluster, _await_job)),
        ("ControlPlaneNodesReady", control_planes_ready(cluster.list("v1", "Node", "", {CONTROL_PLANE_LABEL: ""}))),
        ("StaticPodManifest", _manifests_here(ctx)),
    ]
    preflight.tell(findings, ctx.progress, ignored)


def would_check(ctx: NodeContext, cluster: Cluster, ignored: Collection[str]) -> None:
    """The same in a dry run: no Job is awaited, and no manifest looked for."""
    ctx.progress.say("[upgrade] Running cluster health checks")
    findings = [
        ("CreateJob", _job_runs(ctx, cluster, lambda cluster, name, timeout: preflight.FINE)),
        ("ControlPlaneNodesReady", control_planes_ready(cluster.list("v1", "Node", "", {CONTROL_PLANE_LABEL: ""}))),
    ]
    for component in components.COMPONENTS:
        ctx.progress.say(f"[dryrun] would check if {components.path_of(component)} exists")
    preflight.tell(findings, ctx.progress, ignored)


def control_planes_ready(nodes: Iterable[Manifest]) -> Findings:
    not_ready = [node["metadata"]["name"] for node in nodes if not _is_ready(node)]
    if not not_ready:
        return preflight.FINE
    return preflight.Findings(errors=(f"there are NotReady control-planes in the cluster: [{' '.join(not_ready)}]",))


def job(ctx: NodeContext, name: str) -> Manifest:
    """A Job that ends at once: the pause program tells its version."""
    seconds = ctx.release.health_check_seconds + _MARGIN
    container = {"name": _JOB, "image": images.pause(ctx.config.cluster, ctx.release), "args": ["-v"]}
    pod = {
        "restartPolicy": "Never",
        "securityContext": {"runAsUser": 999, "runAsGroup": 999, "runAsNonRoot": True},
        "tolerations": [{"key": CONTROL_PLANE_LABEL, "effect": "NoSchedule"}],
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": seconds,
            "activeDeadlineSeconds": seconds,
            "template": {"spec": pod},
        },
    }


def outcome(found: Manifest) -> str | None:
    """How a Job ended: "" with success, else the reason; None while it runs."""
    for condition in found.get("status", {}).get("conditions") or ():
        if condition.get("status") == "True" and condition["type"] in ("Complete", "SuccessCriteriaMet"):
            return ""
        if condition.get("status") == "True" and condition["type"] == "Failed":
            return f"{condition.get('reason', 'Failed')}: {condition.get('message', 'it failed')}"
    return None


def pod_trouble(pod: Manifest) -> str:
    """Why a Pod does not run, in the words of its status; empty where the status does not tell."""
    status = pod.get("status", {})
    for container in status.get("containerStatuses") or ():
        waiting = container.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") != "ContainerCreating":
            return ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
    for condition in status.get("conditions") or ():
        if condition.get("status") == "False" and condition.get("type") == "PodScheduled":
            return ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
    return ""


def _job_runs(ctx: NodeContext, cluster: Cluster, ends: Callable[[Cluster, str, float], Findings]) -> Findings:
    nodes = cluster.list("v1", "Node", "", {})
    if not any(not node.get("spec", {}).get("unschedulable") for node in nodes):
        ctx.progress.warn('The preflight check "CreateJob" was skipped because there are no schedulable Nodes in the cluster.')
        return preflight.FINE
    name = f"{_JOB}-{int(ctx.host.now().timestamp() * 1000)}"
    try:
        cluster.create(job(ctx, name))
    except OperatorError as error:
        return preflight.Findings(errors=(f'could not create Job "{name}" in the namespace "{_NAMESPACE}": {error.message}',))
    return ends(cluster, name, ctx.release.health_check_seconds)


def _await_job(cluster: Cluster, name: str, timeout: float) -> Findings:
    if not isinstance(cluster, LiveCluster):
        raise TypeError("a Job can only be awaited in a live cluster")
    try:
        reason = _ended(cluster, name, timeout)
        if reason is None:
            reason = _trouble(cluster, name) or "no condition of type Complete"
    finally:
        # The Job itself says how long it may stay; that is for runs that did not come this far.
        cluster.client.delete("batch/v1", "Job", name, _NAMESPACE, propagation="Background")
    if not reason:
        return preflight.FINE
    return preflight.Findings(errors=(f'Job "{name}" in the namespace "{_NAMESPACE}" did not complete in {timeout}s: {reason}',))


def _ended(cluster: LiveCluster, name: str, timeout: float) -> str | None:
    """How the Job ended, or None where it did not; a watch that breaks off is begun again."""
    deadline = time.monotonic() + timeout
    pause = 0.1
    while (left := deadline - time.monotonic()) > 0:
        try:
            for event in cluster.client.watch("batch/v1", "Job", _NAMESPACE, fields={"metadata.name": name}, timeout=left):
                reason = outcome(event.object)
                if reason is not None:
                    return reason
        except OperatorError as error:
            if not errors.is_transient(error):
                raise
            time.sleep(min(pause, left))
            pause *= 2
    return None


def _trouble(cluster: LiveCluster, name: str) -> str:
    for pod in cluster.list("v1", "Pod", _NAMESPACE, {"batch.kubernetes.io/job-name": name}):
        name = pod["metadata"]["name"]
        trouble = pod_trouble(pod) or _last_warning(cluster.client.list("v1", "Event", _NAMESPACE, fields={"involvedObject.name": name}))
        if trouble:
            return f'its Pod "{name}" does not run: {trouble}'
    return ""


def _last_warning(events: Iterable[Manifest]) -> str:
    """What the kubelet or the scheduler said last; a sandbox that cannot be made leaves no other trace."""
    warnings = [f"{event.get('reason', '')}: {event.get('message', '')}" for event in events if event.get("type") == "Warning"]
    return warnings[-1] if warnings else ""


def _manifests_here(ctx: NodeContext) -> Findings:
    missing = [path for component in components.COMPONENTS if not ctx.host.exists(path := components.path_of(component))]
    return preflight.Findings(errors=(f"manifest files not found: [{' '.join(missing)}]",)) if missing else preflight.FINE


def _is_ready(node: Manifest) -> bool:
    """A Node that does not say whether it is Ready is not held against the cluster, as in kubeadm."""
    conditions = node.get("status", {}).get("conditions") or ()
    return all(condition.get("status") == "True" for condition in conditions if condition.get("type") == "Ready")
