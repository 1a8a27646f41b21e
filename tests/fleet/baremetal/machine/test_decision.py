"""What comes next in a machine's life, for everything that can be observed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slipway.fleet.baremetal.machine.decision import Joined, NodeFacts, Observed, Step, joined, made_by_plan, next_step
from slipway.fleet.baremetal.plans.planfacts import PlanFacts

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEW = Observed("m")
OURS = PlanFacts("1", "applied", "reprovision", "m", written=NOW - timedelta(hours=1))
CLEAN = OURS._replace(type="clean")
OTHER = PlanFacts("0", "applied", "clean", "last")
CLAIMED = NEW._replace(claimed=True, plan=OTHER)
GOING = CLAIMED._replace(deleting=True)


@pytest.mark.parametrize(
    ("observed", "step"),
    [
        (NEW._replace(has_owner=False), Step.WAIT_FOR_OWNER),
        (NEW._replace(has_cluster=False), Step.WAIT_FOR_CLUSTER),
        (NEW._replace(paused=True), Step.PAUSED),
        (NEW._replace(infrastructure=False), Step.WAIT_FOR_INFRASTRUCTURE),
        (NEW, Step.ALLOCATE),
        (CLAIMED, Step.WAIT_FOR_BOOTSTRAP),
        (CLAIMED._replace(plan=None), Step.WAIT_FOR_SECRET),
        (CLAIMED._replace(bootstrap=True), Step.PROVISION),
        (CLAIMED._replace(bootstrap=True, plan=OTHER._replace(outcome="failed")), Step.PROVISION),
        (CLAIMED._replace(bootstrap=True, plan=OTHER._replace(outcome="pending")), Step.WAIT_FOR_HOST),
        (CLAIMED._replace(bootstrap=True, plan=OTHER._replace(outcome="in-progress")), Step.WAIT_FOR_HOST),
        (CLAIMED._replace(plan=OURS._replace(outcome="pending")), Step.WAIT_FOR_PLAN),
        (CLAIMED._replace(plan=OURS._replace(outcome="in-progress")), Step.WAIT_FOR_PLAN),
        (CLAIMED._replace(plan=OURS._replace(outcome="failed")), Step.PLAN_FAILED),
        (CLAIMED._replace(plan=OURS), Step.WAIT_FOR_NODE),
        # A machine that runs is never provisioned again, whatever became of its host's plan Secret.
        (CLAIMED._replace(plan=None, provisioned=True, bootstrap=True), Step.WAIT_FOR_NODE),
        (CLAIMED._replace(plan=OTHER, provisioned=True, bootstrap=True), Step.WAIT_FOR_NODE),
        (CLAIMED._replace(plan=OURS._replace(outcome="failed"), provisioned=True), Step.WAIT_FOR_NODE),
        (CLAIMED._replace(plan=OURS._replace(outcome="pending"), provisioned=True), Step.WAIT_FOR_NODE),
        (NEW._replace(provisioned=True), Step.LOST),
        (NEW._replace(written=True), Step.LOST),
        # The way out.
        (GOING._replace(finalizer=False), Step.IGNORE),
        (GOING._replace(paused=True), Step.PAUSED),
        (GOING._replace(claimed=False), Step.FORGET),
        (GOING._replace(has_owner=False, has_cluster=False, claimed=False), Step.FORGET),
        (GOING, Step.RELEASE),
        (GOING._replace(force=True), Step.RELEASE),
        (GOING._replace(force=True, written=True), Step.GIVE_UP),
        (GOING._replace(force=True, plan=None), Step.GIVE_UP),
        (GOING._replace(provisioned=True), Step.CLEAN),
        (GOING._replace(plan=None), Step.WAIT_FOR_SECRET),
        (GOING._replace(plan=OURS), Step.CLEAN),
        (GOING._replace(plan=OURS._replace(outcome="failed")), Step.CLEAN),
        (GOING._replace(plan=OURS._replace(outcome="in-progress")), Step.WAIT_FOR_HOST),
        (GOING._replace(plan=OURS._replace(outcome="pending")), Step.CLEAN),
        (GOING._replace(plan=OURS._replace(outcome="pending", written=NOW - timedelta(seconds=5))), Step.WAIT_FOR_HOST),
        (GOING._replace(plan=CLEAN), Step.RELEASE),
        (GOING._replace(plan=CLEAN._replace(outcome="pending")), Step.WAIT_FOR_CLEAN),
        (GOING._replace(plan=CLEAN._replace(outcome="in-progress")), Step.WAIT_FOR_CLEAN),
        (GOING._replace(plan=CLEAN._replace(outcome="failed")), Step.CLEAN_FAILED),
        (GOING._replace(plan=CLEAN._replace(outcome="failed"), retry=True), Step.CLEAN),
        (GOING._replace(plan=CLEAN._replace(outcome="failed"), force=True), Step.GIVE_UP),
        # One that comes after another machine on the same host does not take that one's clean plan for its own.
        (GOING._replace(plan=CLEAN._replace(owner="last"), provisioned=True), Step.CLEAN),
    ],
)
def test_the_next_step(observed: Observed, step: Step) -> None:
    assert next_step(observed, NOW) is step


NEW_NODE, OLD_NODE = NodeFacts("n", "v1", "new"), NodeFacts("a", "v1", "old")


@pytest.mark.parametrize(
    ("nodes", "boots_before", "found"),
    [
        ([], "", None),
        ([NEW_NODE], "", NEW_NODE),
        ([NEW_NODE], "old", NEW_NODE),
        ([OLD_NODE], "old", None),
        ([OLD_NODE, NEW_NODE], "old", NEW_NODE),
        ([OLD_NODE, OLD_NODE._replace(boot_id="older")], "old,older", None),
    ],
)
def test_a_node_is_the_one_that_the_plan_made(nodes: list[NodeFacts], boots_before: str, found: NodeFacts | None) -> None:
    assert made_by_plan(nodes, boots_before) == found


@pytest.mark.parametrize(
    ("node", "fits", "verdict"),
    [
        (None, True, Joined.NO),
        (NEW_NODE, True, Joined.YES),
        (NEW_NODE, False, Joined.OTHER_VERSION),
        # It was registered, and what it is comes with its first status.
        (NEW_NODE._replace(version=""), False, Joined.NO),
    ],
)
def test_a_node_has_the_version_of_its_machine(node: NodeFacts | None, fits: bool, verdict: Joined) -> None:
    assert joined(node, fits=fits) is verdict
