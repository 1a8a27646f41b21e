"""Lives of hosts as rows of spans."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from fleet.overview.fleets import NAME, NEW, NOW, OLD, SPACE, at, at_rest, condition, host_machine, in_a_rollout, inventory, machine, plane
from fleet.overview.fleets import cluster as made_cluster

from slipway.api.elemental.cycles import Cycle
from slipway.fleet.overview.objects import Objects
from slipway.fleet.overview.timeline import Row, Span, last_story, since, spans_of, timeline


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def told(spans: list[Span] | tuple[Span, ...]) -> list[tuple[str, float, float, str]]:
    """Stage, and from and to how many minutes ago."""
    return [
        (span.stage, (NOW - span.begin) / timedelta(minutes=1), (NOW - span.end) / timedelta(minutes=1), span.version) for span in spans
    ]


def life(machine: str, version: str = OLD, **minutes: float) -> Cycle:
    times: dict[str, Any] = {name: ago(value) for name, value in minutes.items()}
    return Cycle(machine=machine, version=version, **times)


def row(objects: Objects, name: str) -> Row:
    return next(each for each in timeline(objects, NOW) if each.name == name)


WHOLE: dict[str, Any] = {
    "claimed": 50,
    "planned": 49,
    "applied": 45,
    "joined": 42,
    "running": 41,
    "draining": 20,
    "drained": 18,
    "cleaned": 17,
    "released": 16,
}


@pytest.mark.parametrize(
    ("lives", "expected"),
    [
        (
            [life("a", **WHOLE)],
            [
                ("registered", 60, 50, ""),
                ("allocated", 50, 49, OLD),
                ("reprovisioning", 49, 45, OLD),
                ("booting", 45, 42, OLD),
                ("node", 42, 20, OLD),
                ("draining", 20, 18, OLD),
                ("cleaning", 18, 16, OLD),
                ("free", 16, 0, ""),
            ],
        ),
        # What nobody saw is part of what came before it.
        ([life("a", claimed=50, joined=42)], [("registered", 60, 50, ""), ("allocated", 50, 42, OLD), ("node", 42, 0, OLD)]),
        # Given up, and cleaned later.
        (
            [life("a", joined=50, drained=40, released=30, cleaned=20)],
            [
                ("registered", 60, 50, ""),
                ("node", 50, 40, OLD),
                ("cleaning", 40, 30, OLD),
                ("unavailable", 30, 20, ""),
                ("free", 20, 0, ""),
            ],
        ),
        # The next life begins at once.
        (
            [life("a", joined=50, draining=40, drained=40, cleaned=39, released=39), life("b", NEW, claimed=39, joined=30)],
            [
                ("registered", 60, 50, ""),
                ("node", 50, 40, OLD),
                ("cleaning", 40, 39, OLD),
                ("allocated", 39, 30, NEW),
                ("node", 30, 0, NEW),
            ],
        ),
        # A clock that went back does not let a span end before it begins.
        (
            [life("a", claimed=40, planned=41, joined=30)],
            [("registered", 60, 40, ""), ("reprovisioning", 40, 30, OLD), ("node", 30, 0, OLD)],
        ),
        ([], [("registered", 60, 0, "")]),
    ],
)
def test_a_record_of_lives_is_a_row_of_spans(lives: list[Cycle], expected: list[tuple[str, float, float, str]]) -> None:
    assert told(spans_of(lives, ago(60), NOW)) == expected


def recorded(machine: str, **minutes: float) -> dict[str, Any]:
    return {"machine": machine, "cluster": NAME, "version": NEW, **{name: at(value) for name, value in minutes.items()}}


def test_the_present_life_is_told_by_the_objects_where_the_record_has_nothing_yet() -> None:
    found = row(in_a_rollout(), "host-1")
    assert found.cluster == NAME
    assert told(found.spans) == [("registered", 60, 9, ""), ("allocated", 9, 6, NEW), ("node", 6, 0, NEW)]


def test_the_record_is_nearer_to_what_happened_than_a_condition_that_moved_since() -> None:
    lives = [recorded("prod-cp-0", claimed=55, planned=54, applied=50, joined=48, running=48)]
    objects = at_rest()
    back = host_machine("prod-cp-0", "host-0", condition("InventoryAllocated"), condition("NodeJoined", minutes=1))
    objects = objects._replace(
        inventories=[inventory("host-0", machine="prod-cp-0", lives=lives)], baremetal_machines=[back, *objects.baremetal_machines[1:]]
    )
    assert told(row(objects, "host-0").spans)[-1] == ("node", 48, 0, NEW)


def test_what_the_host_is_now_comes_last_whatever_the_record_says() -> None:
    lives = [recorded("prod-w-9", claimed=55, planned=54)]
    found = row(at_rest()._replace(inventories=[inventory("host-5", state="Unavailable", lives=lives)]), "host-5")
    assert told(found.spans)[-1] == ("unavailable", 50, 0, "")


def test_a_record_that_is_full_says_nothing_of_before() -> None:
    lives = [recorded(f"m{number}", claimed=50 - number, released=50 - number) for number in range(5)]
    assert row(at_rest()._replace(inventories=[inventory("host-5", state="Available", lives=lives)]), "host-5").spans[0].stage == "free"


def test_a_machine_of_other_infrastructure_has_a_row_of_its_own() -> None:
    up = condition("InfrastructureReady", minutes=50), condition("NodeHealthy", minutes=3)
    joined = {
        "involvedObject": {"kind": "Machine", "namespace": SPACE, "name": "prod-cp-0"},
        "reason": "SuccessfulSetNodeRef",
        "firstTimestamp": at(40),
    }
    theirs = machine("prod-cp-0", *up, node="n", infrastructure="DockerMachine")
    objects = Objects(
        clusters=[made_cluster(infrastructure="DockerCluster")], control_planes=[plane(replicas=1)], machines=[theirs], events=[joined]
    )
    (found,) = timeline(objects, NOW)
    assert (found.name, found.cluster) == ("prod-cp-0", NAME)
    assert told(found.spans) == [("provisioning", 60, 50, OLD), ("booting", 50, 40, OLD), ("node", 40, 0, OLD)]


def rows(*begins: float) -> list[Row]:
    return [Row("n", "h", "c", tuple(Span("node", ago(each), ago(0)) for each in begins))]


def test_the_last_story_goes_back_as_long_as_nothing_was_quiet_for_half_an_hour() -> None:
    begin = last_story(rows(300, 50, 25, 5), NOW)
    assert ago(55) < begin < ago(50)


def test_nothing_that_happened_is_no_story() -> None:
    assert last_story([], NOW) == NOW


def test_a_row_that_is_cut_begins_where_it_is_cut() -> None:
    cut = since([Row("n", "h", "c", (Span("free", ago(60), ago(30)), Span("node", ago(30), ago(0))))], ago(20))
    assert told(cut[0].spans) == [("node", 20, 0, "")]
