"""How far a rollout is, and when it will be over."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from fleet.overview.fleets import NEW, NOW, OLD, at_rest, cluster, condition, in_a_rollout, inventory, machine, plane, workers

from slipway.api.elemental.cycles import Cycle
from slipway.fleet.overview.machines import GroupView, MachineView
from slipway.fleet.overview.model import overview
from slipway.fleet.overview.objects import Objects
from slipway.fleet.overview.rollout import estimate, replacements, rollout


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("joined", "left", "past", "expected"),
    [
        # It began ten minutes ago.  One came after four: two more take eight, less the share of one that has passed.
        ([6], 2, None, 240),
        # Two came in nine minutes, and one has passed since.
        ([5, 1], 2, None, 480),
        # Two came in six minutes: three each.
        ([8, 4], 3, None, 360),
        # One that takes longer than the others may be there at any moment.
        ([9], 1, None, 0),
        ([], 2, None, None),
        # Nothing has come yet: what replacements took before, without what has passed.
        ([], 2, 600.0, 600),
        ([], 3, 900.0, 2100),
        # Machines that were there before it began taught nothing.
        ([30, 20], 2, None, None),
        ([6], 0, None, None),
    ],
)
def test_the_estimate_is_what_those_took_that_came(joined: list[float], left: int, past: float | None, expected: int | None) -> None:
    assert estimate([ago(each) for each in joined], left, ago(10), NOW, past) == expected


def test_without_a_beginning_there_is_no_estimate() -> None:
    assert estimate([ago(1)], 2, None, NOW) is None


def life(machine: str, **minutes: float) -> Cycle:
    times: dict[str, Any] = {name: ago(value) for name, value in minutes.items()}
    return Cycle(machine=machine, **times)


def test_a_replacement_took_from_the_end_of_a_machine_to_the_next_that_ran() -> None:
    lives = [life("a", draining=30, released=27), life("b", claimed=26, running=20, draining=10, released=9), life("c", claimed=9)]
    assert replacements([lives]) == [10 * 60 - 60]


def test_a_rollout_on_hosts_with_a_past_is_estimated_from_the_beginning() -> None:
    record = [
        {"machine": "x", "cluster": "prod", "draining": "2026-05-04T10:00:00Z", "released": "2026-05-04T10:04:00Z"},
        {"machine": "prod-cp-0", "cluster": "prod", "claimed": "2026-05-04T10:04:00Z", "running": "2026-05-04T10:15:00Z"},
    ]
    objects = at_rest()
    objects = objects._replace(
        control_planes=[plane(condition("RollingOut", minutes=5), version=NEW)],
        inventories=[inventory("host-0", machine="prod-cp-0", lives=record), *objects.inventories[1:]],
    )
    found = overview(objects, NOW).clusters[0].rollout
    assert found is not None
    assert (found.done, found.total, found.estimate_seconds) == (0, 3, 3 * 15 * 60 - 5 * 60)


def group(
    name: str, *joined: float | None, desired: int = 0, version: str = NEW, rolling: float | None = None, settled: float = 600
) -> GroupView:
    """``joined``: when its machines became Nodes; None for one that has the old version."""
    machines = tuple(
        MachineView(
            name=f"{name}-{number}",
            version=version if each is not None else OLD,
            phase="Running",
            node="n",
            host="h",
            age_seconds=0,
            stage="node",
            since=None,
            up_to_date=each is not None,
            joined=ago(each if each is not None else 600),
        )
        for number, each in enumerate(joined)
    )
    count = desired or len(machines)
    began = None if rolling is None else ago(rolling)
    return GroupView(
        "MachineDeployment", name, version, count, count, count, count, count, machines, began, None if began else ago(settled)
    )


def test_all_there_and_new_is_no_rollout() -> None:
    assert rollout([group("a", 600, 500), group("b", 400)], NOW) is None


def test_a_node_that_is_not_well_is_no_rollout() -> None:
    objects = at_rest()
    ill = machine("prod-cp-0", condition("NodeHealthy", "False"), node="host-0")
    assert overview(objects._replace(machines=[ill, *objects.machines[1:]]), NOW).clusters[0].rollout is None


def test_neither_is_one_of_other_infrastructure() -> None:
    down = [condition(each, "False") for each in ("NodeHealthy", "NodeReady", "Ready")]
    machines = [machine(f"prod-cp-{each}", *down, node=f"n{each}", infrastructure="DockerMachine") for each in range(3)]
    objects = Objects(clusters=[cluster(infrastructure="DockerCluster")], control_planes=[plane()], machines=machines)
    assert overview(objects, NOW).clusters[0].rollout is None


def test_a_group_that_ended_while_others_are_at_it_still_counts() -> None:
    found = rollout([group("a", 8, 6, settled=5), group("b", 4, None, rolling=10)], NOW)
    assert found is not None
    assert (found.done, found.total) == (3, 4)


def test_a_group_that_was_at_rest_before_does_not_count() -> None:
    found = rollout([group("a", 500, 400, settled=390), group("b", 4, None, rolling=10)], NOW)
    assert found is not None
    assert (found.done, found.total) == (1, 2)


def test_a_cluster_that_grows_comes_from_no_version() -> None:
    found = rollout([group("a", 500, 400, desired=3, rolling=2)], NOW)
    assert found is not None
    assert (found.from_versions, found.to_version, found.done, found.total, found.estimate_seconds) == ((), NEW, 2, 3, None)


def test_a_version_that_was_just_asked_for_is_a_rollout_before_any_controller_has_seen_it() -> None:
    found = overview(at_rest()._replace(machine_deployments=[workers(version=NEW)]), NOW).clusters[0].rollout
    assert found is not None
    assert (found.from_versions, found.to_version, found.done, found.total, found.began) == ((OLD,), NEW, 0, 2, None)


def test_the_target_of_an_upgrade_in_steps_is_told() -> None:
    stepping = plane(condition("RollingOut", minutes=10), version=NEW)
    stepping["metadata"]["annotations"] = {"slipway.io/upgrade-target": "v1.36.3"}
    found = overview(in_a_rollout()._replace(control_planes=[stepping]), NOW).clusters[0].rollout
    assert found is not None
    assert (found.to_version, found.target) == (NEW, "v1.36.3")


def test_ten_minors_are_more_than_nine() -> None:
    groups = [group("a", None, version="v1.9.9", rolling=1), group("b", None, version="v1.10.0", rolling=1)]
    found = rollout(groups, NOW)
    assert found is not None
    assert found.to_version == "v1.10.0"


def test_the_machines_of_a_view_can_be_read_back() -> None:
    view = overview(in_a_rollout(), NOW).clusters[0]
    assert msgspec.json.decode(msgspec.json.encode(view), type=type(view)) == view
