"""What the page draws, from objects: a pure function, whose rows say nothing that the time of day alone changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from dashboard import fleets

from slipway.api.cluster.infrastructure import names
from slipway.dashboard.rows import rows
from slipway.fleet.overview.objects import Objects

NOW = datetime(2026, 1, 2, 3, 10, tzinfo=UTC)
WRONG = fleets.condition(names.PLAN_APPLIED_CONDITION, "False", names.PLAN_FAILED_REASON, "the disk is full")


def _objects() -> Objects:
    machine, below = fleets.machine("team-a", "red-0", "red", "host-1", problem=WRONG)
    return Objects(
        clusters=[fleets.cluster("team-a", "red")],
        machines=[machine],
        baremetal_machines=[below],
        inventories=[fleets.host("team-a", "host-1", pool="reds", cluster="red", machine="red-0", state="Allocated")],
        pools=[fleets.pool("team-a", "reds", "red", ["host-1"])],
    )


def test_every_thing_is_a_row_of_its_own() -> None:
    assert set(rows(_objects(), NOW)) == {"cluster/team-a/red", "machine/team-a/red-0", "host/team-a/host-1", "pool/team-a/reds"}


def test_a_cluster_does_not_repeat_its_machines() -> None:
    row = msgspec.json.decode(rows(_objects(), NOW)["cluster/team-a/red"])
    assert [(group["controlPlane"], group["desired"], "machines" in group) for group in row["groups"]] == [(True, 3, False)]


def test_what_is_red_says_what_to_do() -> None:
    made = rows(_objects(), NOW)
    for key in ("machine/team-a/red-0", "host/team-a/host-1"):
        problem = msgspec.json.decode(made[key])["problem"]
        assert (problem["reason"], problem["message"], problem["lasting"]) == (names.PLAN_FAILED_REASON, "the disk is full", True)
        assert problem["toDo"]


def test_an_hour_later_the_rows_are_the_same() -> None:
    assert rows(_objects(), NOW) == rows(_objects(), NOW + timedelta(hours=1))


def test_a_count_of_nought_is_told_and_what_is_empty_is_not() -> None:
    row = msgspec.json.decode(rows(_objects(), NOW)["pool/team-a/reds"])
    assert row["unavailable"] == 0
    host = msgspec.json.decode(rows(Objects(inventories=[fleets.host("team-a", "new")]), NOW)["host/team-a/new"])
    assert {"pool", "machine", "cluster", "quarantined", "plan"}.isdisjoint(host)


def test_a_free_host_is_a_few_hundred_bytes() -> None:
    made = rows(
        Objects(inventories=[fleets.host("team-a", f"host-{number}", pool="reds", state="Available") for number in range(100)]), NOW
    )
    assert sum(map(len, made.values())) / 100 < 400
