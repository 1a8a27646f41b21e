"""Whether a cluster is well enough for an upgrade; the Job was compared with the one that the real kubeadm 1.35.4 creates."""

from __future__ import annotations

from typing import Any

import pytest
from node.conftest import Lines, MakeContext

from slipway.api.kubeadm.internal import ClusterConfiguration
from slipway.api.machinery.errors import PreflightError
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.staticpods import components
from slipway.node.upgrade import health

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def node(name: str, *conditions: tuple[str, str], unschedulable: bool = True) -> dict[str, Any]:
    status = {"conditions": [{"type": kind, "status": value} for kind, value in conditions]}
    labels = {CONTROL_PLANE: ""}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": unschedulable},
        "status": status,
    }


def test_a_job_needs_a_node_to_run_on(make_context: MakeContext, lines: Lines) -> None:
    ctx = make_context()
    for component in components.COMPONENTS:
        ctx.host.write(components.path_of(component), b"")
    health.check(ctx, DryRunCluster(lines, ctx.release, lists={"Node": [node("a", ("Ready", "True"))]}), frozenset())
    assert lines.said[0] == "[upgrade] Running cluster health checks"
    assert lines.warned == ['The preflight check "CreateJob" was skipped because there are no schedulable Nodes in the cluster.']


@pytest.mark.parametrize("ignored", [frozenset[str](), frozenset({"controlplanenodesready"})])
def test_what_is_wrong_is_told_by_name(ignored: frozenset[str], make_context: MakeContext, lines: Lines) -> None:
    ctx = make_context()
    ctx.host.write(components.path_of("kube-scheduler"), b"")
    nodes = [node("a", ("Ready", "Unknown"), ("DiskPressure", "False")), node("b", ("Ready", "True")), node("c", ("Ready", "False"))]
    with pytest.raises(PreflightError):
        health.check(ctx, DryRunCluster(lines, ctx.release, lists={"Node": nodes}), ignored)
    told = "\n".join(lines.warned)
    level = "WARNING" if ignored else "ERROR"
    assert f"\t[{level} ControlPlaneNodesReady]: there are NotReady control-planes in the cluster: [a c]" in told
    manifests = "/etc/kubernetes/manifests/kube-apiserver.yaml /etc/kubernetes/manifests/kube-controller-manager.yaml"
    assert f"\t[ERROR StaticPodManifest]: manifest files not found: [{manifests}]" in told


@pytest.mark.parametrize(("version", "pause", "seconds"), [("v1.35.4", "3.10.1", 20), ("v1.36.3", "3.10.2", 65)])
def test_the_job_ends_at_once_and_goes_away_by_itself(version: str, pause: str, seconds: int, make_context: MakeContext) -> None:
    ctx = make_context(ClusterConfiguration(image_repository="registry.k8s.io"), version=version)
    made = health.job(ctx, "upgrade-health-check-1")
    assert made["metadata"] == {"name": "upgrade-health-check-1", "namespace": "kube-system"}
    assert {key: made["spec"][key] for key in ("backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds")} == {
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": seconds,
        "activeDeadlineSeconds": seconds,
    }
    pod = made["spec"]["template"]["spec"]
    assert pod["containers"] == [{"name": "upgrade-health-check", "image": f"registry.k8s.io/pause:{pause}", "args": ["-v"]}]
    assert pod["tolerations"] == [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("conditions", "outcome"),
    [
        ([], None),
        ([{"type": "Suspended", "status": "False"}], None),
        ([{"type": "SuccessCriteriaMet", "status": "True"}], ""),
        ([{"type": "Complete", "status": "True"}], ""),
        (
            [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the limit"}],
            "BackoffLimitExceeded: Job has reached the limit",
        ),
    ],
)
def test_how_a_job_ended(conditions: list[dict[str, str]], outcome: str | None) -> None:
    assert health.outcome({"status": {"conditions": conditions}}) == outcome


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        ({}, ""),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]},
            "ErrImagePull: not found",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}]},
            "Unschedulable: 0/1 nodes are available",
        ),
    ],
)
def test_why_a_pod_does_not_run(status: dict[str, Any], trouble: str) -> None:
    assert health.pod_trouble({"status": status}) == trouble
