"""What has happened between two moments."""

from __future__ import annotations

from fleet.overview.fleets import NAME, NEW, NOW, OLD, at_rest, condition, host_machine, in_a_rollout, inventory, machine

from slipway.fleet.overview.changes import Change, changes
from slipway.fleet.overview.model import Overview, overview
from slipway.fleet.overview.objects import Objects
from slipway.fleet.overview.views.lines import line


def between(before: Objects, after: Objects) -> list[Change]:
    return changes(overview(before, NOW), overview(after, NOW), NOW)


def test_nothing_happens_between_two_moments_that_are_alike() -> None:
    assert between(in_a_rollout(), in_a_rollout()) == []


def test_a_rollout_tells_how_far_it_is_and_each_machine_where_it_is() -> None:
    found = between(at_rest(), in_a_rollout())
    assert [(each.done, each.total, each.text) for each in found if each.event == "rollout"] == [(1, 3, f"{OLD} → {NEW}: 1 of 3 machines")]
    assert [(each.name, each.stage, each.host) for each in found if each.event == "machine"] == [
        ("prod-cp-a", "node", "host-1"),
        ("prod-cp-b", "reprovisioning", "host-2"),
        ("prod-cp-1", "", "host-1"),
        ("prod-cp-2", "", "host-2"),
    ]


def test_the_end_of_a_rollout_is_told() -> None:
    found = between(in_a_rollout(), at_rest())
    assert [each.text for each in found if each.event == "rollout"] == ["is done"]


def test_a_cluster_comes_and_goes() -> None:
    assert changes(Overview((), (), (), ()), overview(at_rest(), NOW), NOW)[0].text == "is there: Provisioned"
    assert (between(at_rest(), Objects())[0].name, between(at_rest(), Objects())[0].text) == (NAME, "is gone")


def test_a_problem_is_told_once_and_that_it_is_solved() -> None:
    miss = condition("ImageResolved", "False", "ImageCatalogMiss", "no key")
    ill = at_rest()._replace(baremetal_machines=[host_machine("prod-cp-0", "host-0", miss, phase="Failed")])
    problem = next(each for each in between(at_rest(), ill) if each.event == "problem")
    assert (problem.reason, problem.to_do) == ("ImageCatalogMiss", "Add the version to the ConfigMap elemental-image-catalog.")
    assert line(problem).endswith("no key → Add the version to the ConfigMap elemental-image-catalog.")
    assert [each.reason for each in between(ill, at_rest()) if each.event == "solved"] == ["ImageCatalogMiss"]


def test_what_is_waited_for_is_told_to_programs_and_not_to_people() -> None:
    drain = condition("Deleting", "True", "DrainingNode", minutes=1)
    draining = at_rest()._replace(machines=[machine("prod-cp-0", drain, node="host-0", deleted=1)])
    (wait,) = [each for each in between(at_rest(), draining) if each.event == "wait"]
    assert (wait.condition, line(wait)) == ("Deleting", "")


def test_a_host_that_comes_back_is_told() -> None:
    cleaned = at_rest()._replace(inventories=[inventory("host-5", state="Preparing")])
    free = at_rest()._replace(inventories=[inventory("host-5", state="Available")])
    assert [line(each) for each in between(cleaned, free)] == ["host-5 is clean, and back in pool"]


def test_a_machine_that_goes_after_its_host_was_cleaned_is_not_told_twice() -> None:
    cleaning = condition("HostCleaned", "False", "Cleaning")
    before = at_rest()._replace(
        machines=[machine("prod-cp-0", condition("Deleting", "True", "DeletingNode", minutes=1), node="host-0", deleted=2)],
        baremetal_machines=[host_machine("prod-cp-0", "host-0", cleaning, phase="Preparing")],
    )
    after = before._replace(baremetal_machines=[])
    assert [each for each in between(before, after) if each.event == "machine"] == []
