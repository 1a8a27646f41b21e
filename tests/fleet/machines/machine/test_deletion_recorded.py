"""Which steps of a deletion are left out, and which volumes are waited for, is as Cluster API has it, for each recorded case."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.machines.machine.recorded import NOW, rows

from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.meta import decode
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.machine import deletion
from slipway.fleet.machines.machine.deletion import ControlPlane, Step
from slipway.fleet.machines.machine.drain import evictions, filters, volumes
from slipway.fleet.machines.machine.drain.filters import Behavior
from slipway.fleet.machines.machine.values import External
from slipway.runtime.objects import timestamp

pytestmark = pytest.mark.recorded


def active(machines: list[dict[str, Any]]) -> int:
    return sum(
        not each["metadata"].get("deletionTimestamp")
        and CONTROL_PLANE_LABEL in each["metadata"]["labels"]
        and each["metadata"]["labels"][CLUSTER_NAME_LABEL] == "c"
        for each in machines
    )


@pytest.mark.parametrize(("case", "answer"), rows("allowed"))
def test_what_is_left_out_is_what_upstream_leaves_out(case: dict[str, Any], answer: dict[str, Any]) -> None:
    machine, infra = decode(case["machine"], Machine), case.get("infra")
    plane = None
    if "controlPlane" in case:
        found = case["controlPlane"]
        external = (found.get("status") or {}).get("externalManagedControlPlane") is True
        plane = ControlPlane(bool(found["metadata"].get("deletionTimestamp")), external)
    keep = deletion.keep_node(
        cluster_deleting=bool(case["cluster"]["metadata"].get("deletionTimestamp")),
        # The look for a Node by its provider ID is the reconciler's.
        node_name=answer["nodeRef"],
        control_plane=plane,
        active_control_plane_machines=active([case["machine"], *case["machines"]]),
    )
    assert (keep.value if keep is not None else "") == answer["node"]
    there = External(infra, missing=infra is None)
    assert deletion.may_drain(machine, there, NOW) is answer["drain"]
    assert deletion.may_wait_for_volumes(machine, there, NOW) is answer["volumes"]


@pytest.mark.parametrize(("case", "answer"), rows("volumes"))
def test_the_volumes_that_block_are_upstreams(case: dict[str, Any], answer: dict[str, Any]) -> None:
    if "error" in answer:
        with pytest.raises(OperatorError):
            volumes.attached(case["node"], case["attachments"])
        return
    attached = volumes.attached(case["node"], case.get("attachments", ()))
    skipped = [pod for pod in case.get("pods", ()) if filters.verdict(pod, [], filters.Node(), NOW).behavior is Behavior.SKIP]
    waiting = volumes.blocking(attached, case.get("volumes", ()), volumes.claims_of(skipped))
    started = case["machine"]["status"]["deletion"]["waitForNodeVolumeDetachStartTime"]
    assert volumes.message(waiting, started) == answer["message"]
    assert bool(waiting) is not answer["done"]


REASONS = {
    Step.PRE_DRAIN_HOOKS: "WaitingForPreDrainHook",
    Step.PRE_TERMINATE_HOOKS: "WaitingForPreTerminateHook",
    Step.INFRASTRUCTURE: "WaitingForInfrastructureDeletion",
    Step.BOOTSTRAP: "WaitingForBootstrapDeletion",
    Step.FINISHED: "DeletionCompleted",
}


def left_of_drain(case: dict[str, Any]) -> str:
    verdicts = [(pod, filters.verdict(pod, [], filters.Node(), NOW)) for pod in case.get("pods", ())]
    return evictions.message(evictions.begun(evictions.plan(verdicts)), timestamp(NOW))


def left_of_volumes(case: dict[str, Any]) -> str:
    node = case.get("node")
    if node is None or deletion.is_unreachable(node):
        return ""
    attached = volumes.attached(node, case.get("attachments", ()))
    return volumes.message(volumes.blocking(attached, case.get("volumes", ()), set()), timestamp(NOW))


@pytest.mark.parametrize(("case", "answer"), rows("deletion"))
def test_a_deletion_comes_as_far_as_upstreams(case: dict[str, Any], answer: dict[str, Any]) -> None:
    machine = decode(case["machine"], Machine)
    keep = deletion.keep_node(
        cluster_deleting=bool(case["cluster"]["metadata"].get("deletionTimestamp")),
        node_name=machine.status.node_ref.name,
        control_plane=None,
        active_control_plane_machines=1,
    )
    infra, config = (
        External(case.get("infra"), case.get("infraNotFound", False)),
        External(case.get("config"), case.get("configNotFound", False)),
    )
    done: set[Step] = set()
    while True:
        step = deletion.next_step(machine, keep=keep, infrastructure=infra, config=config, done=done, now=NOW)
        if step in (Step.DRAIN, Step.VOLUMES):
            left = left_of_drain(case) if step is Step.DRAIN else left_of_volumes(case)
            if left:
                reason = "DrainingNode" if step is Step.DRAIN else "WaitingForVolumeDetach"
                assert (reason, left) == (answer["reason"], answer["message"])
                return
        elif step is not Step.NODE:
            break
        done.add(step)
    assert REASONS[step] == answer["reason"]
    assert (step is Step.FINISHED) is (answer["finalizers"] == 0)
    if Step.NODE in done:
        assert not answer["node"]
