"""For what an upgrade stops: what does not end by itself, and not for what passes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fleet.overview.chains import NOW, Manifest, baremetal_machine, condition, plane, pool, well, with_worker, workers

from slipway.fleet.overview.groups import standing
from slipway.fleet.overview.objects import Objects
from slipway.fleet.upgrades.vigil import NOT_OBSERVED, PAUSED, STALLED, Patience, Vigil

PATIENCE = Patience(seen=10, observed=120, stall=3600)


def judged(objects: Objects, *after: float, happened: object = None) -> list[str]:
    """Why to stop, at each of these seconds."""
    vigil, found = Vigil(PATIENCE), []
    now = standing(objects.clusters[0], objects.control_planes, objects.machine_deployments, objects.machine_sets, objects.machines)
    group = next((each for each in now.groups if not each.settled or each.paused), now.plane)
    for each in after:
        what = happened if happened is not None else each
        found.append(vigil.reason_to_stop(objects, now, group, what, NOW + timedelta(seconds=each)))
    return found


def coming(told: Manifest) -> Objects:
    below = baremetal_machine("prod-workers-d", told, host="host-d", phase="Failed")
    return with_worker(condition("InfrastructureReady", "False"), below=below, node="")


@pytest.mark.parametrize(
    ("condition_type", "reason"),
    [
        ("ImageResolved", "ImageCatalogMiss"),
        ("ImageResolved", "ImageRegistryMissing"),
        ("PlanApplied", "PlanFailed"),
        ("NodeJoined", "JoinDeadlineExceeded"),
        ("NodeJoined", "NodeVersionDiffers"),
        ("InventoryAllocated", "InventoryLost"),
        ("InventoryAllocated", "PoolMissing"),
    ],
)
def test_what_somebody_has_to_mend_is_a_reason_once_it_was_seen_for_a_moment(condition_type: str, reason: str) -> None:
    assert judged(coming(condition(condition_type, "False", reason)), 0, 5, 10) == ["", "", reason]


@pytest.mark.parametrize(
    ("condition_type", "reason"),
    [("PlanApplied", "PlanRunning"), ("PlanApplied", "PlanPending"), ("NodeJoined", "WaitingForNode"), ("PlanApplied", "HostBusy")],
)
def test_what_comes_by_itself_is_none(condition_type: str, reason: str) -> None:
    assert judged(coming(condition(condition_type, "False", reason)), 0, 1800) == ["", ""]


def test_an_exhausted_pool_is_a_reason_when_it_lasts_and_no_host_is_coming_back() -> None:
    objects = coming(condition("InventoryAllocated", "False", "PoolExhausted", seconds=0))
    assert judged(objects._replace(pools=[pool(total=5, allocated=5)]), 0, 60, 121, 132) == ["", "", "", "PoolExhausted"]
    assert judged(objects._replace(pools=[pool(total=5, allocated=4, preparing=1)]), 0, 600) == ["", ""]


def test_a_drain_that_a_budget_blocks_is_a_reason_after_ten_minutes() -> None:
    message = "* Pod a/b: cannot evict pod as it would violate the pod's disruption budget."
    told = condition("Deleting", "True", "DrainingNode", message, seconds=0)
    objects = with_worker(told, deletionTimestamp="2026-05-04T12:00:00Z")
    assert judged(objects, 0, 300, 601, 612) == ["", "", "", "DrainingNode"]


def watched(*looks: tuple[Objects, float]) -> list[str]:
    """Why to stop waiting for the workers, at each of these seconds, with what there is then."""
    vigil, found = Vigil(PATIENCE), []
    for objects, seconds in looks:
        now = standing(objects.clusters[0], objects.control_planes, objects.machine_deployments, (), objects.machines)
        found.append(vigil.reason_to_stop(objects, now, now.workers[0], seconds, NOW + timedelta(seconds=seconds)))
    return found


def test_a_problem_that_was_mended_and_comes_again_is_looked_at_anew() -> None:
    bad, good = coming(condition("PlanApplied", "False", "PlanFailed")), coming(condition("PlanApplied"))
    assert watched((bad, 0), (good, 8), (bad, 12), (bad, 23)) == ["", "", "", "PlanFailed"]


def test_what_a_machine_waited_for_before_does_not_count_for_what_it_waits_for_now() -> None:
    def leaving(reason: str) -> Objects:
        # As Cluster API has it: the time is that of the status, which is True from the deletion on.
        return with_worker(condition("Deleting", "True", reason, seconds=0), deletionTimestamp="2026-05-04T12:00:00Z")

    drained, detaching = leaving("DrainingNode"), leaving("WaitingForVolumeDetach")
    looks = ((drained, 0), (drained, 1500), (detaching, 1502), (detaching, 1520), (detaching, 2103), (detaching, 2114))
    assert watched(*looks) == ["", "", "", "", "", "WaitingForVolumeDetach"]
    assert watched((detaching, 1502), (detaching, 1513)) == ["", "WaitingForVolumeDetach"], "who comes later trusts the time that is told"


def test_a_host_that_has_come_back_may_be_taken_before_its_pool_counts_as_exhausted() -> None:
    exhausted = coming(condition("InventoryAllocated", "False", "PoolExhausted", seconds=0))
    cleaning, clean = (exhausted._replace(pools=[pool(total=5, allocated=4, **{state: 1})]) for state in ("preparing", "available"))
    assert watched((cleaning, 0), (cleaning, 900), (clean, 902), (clean, 930)) == ["", "", "", ""]


def test_what_is_paused_stops_at_once() -> None:
    assert judged(well()._replace(machine_deployments=[workers(annotations={"cluster.x-k8s.io/paused": ""})]), 0) == [PAUSED]


def test_a_patch_that_nobody_acts_on_is_a_reason() -> None:
    assert judged(well()._replace(control_planes=[plane(generation=2)]), 0, 119, 120) == ["", "", NOT_OBSERVED]


def test_nothing_at_all_for_an_hour_is_a_reason() -> None:
    objects = coming(condition("PlanApplied", "False", "PlanRunning"))
    assert judged(objects, 0, 1, 3600, 3602, happened="the same") == ["", "", "", STALLED]
