"""What operators must not forget before a rollout, as checks."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.baremetal.rollouts.rolling import IMAGE, plane, workers

from slipway.fleet.baremetal.rollouts.guards import (
    GUARDS,
    Pool,
    Rollout,
    Surroundings,
    entry_objections,
    judged,
    objections,
    rollout,
    summary,
)

CATALOG = {"v1.33.7-2": IMAGE, "v1.34.5": IMAGE, "v1.35.4": IMAGE}


def seen(content: dict[str, Any]) -> Rollout:
    found = rollout(content)
    assert found is not None
    return found


AROUND = Surroundings(
    catalog=CATALOG,
    catalog_place="n/elemental-image-catalog",
    pools={"cp-pool": Pool(3), "w-pool": Pool(2)},
    templates={"t": "cp-pool", "w": "w-pool", "small": "small-pool"},
    rollouts=[seen(plane()), seen(workers())],
)


def about(content: dict[str, Any], around: Surroundings = AROUND) -> list[tuple[str, str]]:
    return [(each.guard, each.field) for each in objections(seen(content), around)]


@pytest.mark.parametrize(
    "content",
    [plane(), plane(api="v1beta1"), workers(), workers(api="v1beta1"), plane("v1.33.7-2"), workers("v1.33.7-2"), workers(surge="0%")],
)
def test_nothing_speaks_against_a_rollout_as_it_should_be(content: dict[str, Any]) -> None:
    assert about(content) == []


def test_machines_of_other_providers_are_none_of_our_business() -> None:
    assert rollout(workers(kind="MetalMachineTemplate", surge=1)) is None
    assert rollout({"kind": "MachineSet"}) is None
    assert rollout({"kind": "MachineDeployment", "spec": {"template": []}}) is None


@pytest.mark.parametrize("surge", [1, 2, "25%", None])
@pytest.mark.parametrize(
    ("make", "api", "field"),
    [
        (plane, "v1beta1", "spec.rolloutStrategy.rollingUpdate.maxSurge"),
        (plane, "v1beta2", "spec.rollout.strategy.rollingUpdate.maxSurge"),
        (workers, "v1beta1", "spec.strategy.rollingUpdate.maxSurge"),
        (workers, "v1beta2", "spec.rollout.strategy.rollingUpdate.maxSurge"),
    ],
)
def test_a_surge_is_told_at_the_path_that_it_has_in_its_version(surge: object, make: Any, api: str, field: str) -> None:
    # Without a word Cluster API surges by 1.
    assert about(make(surge=surge, api=api)) == [("MaxSurge", field)]


def test_the_way_for_workers_is_max_unavailable() -> None:
    (found,) = objections(seen(workers(surge=1)), AROUND)
    assert "set maxSurge to 0; to replace more machines at a time, raise maxUnavailable" in found.message


def test_machines_that_are_replaced_by_hand_have_no_surge() -> None:
    content = workers(surge=None)
    content["spec"]["rollout"]["strategy"] = {"type": "OnDelete"}
    assert about(content) == []


def test_a_control_plane_of_one_needs_a_spare_host() -> None:
    # Cluster API takes maxSurge 0 from 3 replicas on.
    spare = AROUND._replace(pools={"cp-pool": Pool(2), "w-pool": Pool(2)})
    assert about(plane(surge=1, replicas=1), spare) == []
    none = AROUND._replace(pools={"cp-pool": Pool(2, 1), "w-pool": Pool(2)})
    (found,) = objections(seen(plane(surge=1, replicas=1)), none)
    assert "it needs a spare host in its pool" in found.message


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (plane("v1.36.0"), 'the ConfigMap n/elemental-image-catalog has no key "v1.36.0": add it'),
        (workers("v1.34.9"), 'has no key "v1.34.9"'),
    ],
)
def test_a_version_without_an_image_is_told(content: dict[str, Any], sentence: str) -> None:
    found = [each for each in objections(seen(content), AROUND) if each.guard == "ImageCatalog"]
    assert [sentence in each.message for each in found] == [True]


def test_a_key_without_its_v_is_named() -> None:
    (found,) = objections(seen(workers()), AROUND._replace(catalog={"1.34.5": IMAGE}))
    assert 'rename it to "v1.34.5"' in found.message


def test_an_entry_that_is_no_image_is_a_miss() -> None:
    (found,) = objections(seen(workers()), AROUND._replace(catalog={"v1.34.5": "not an image"}))
    assert "is no image reference" in found.message


@pytest.mark.parametrize(
    ("content", "around", "sentence"),
    [
        (workers(replicas=3), AROUND, "the pool w-pool has 2 hosts, and 3 machines are wanted from it: add inventories to it"),
        (
            workers(),
            AROUND._replace(pools={"cp-pool": Pool(3), "w-pool": Pool(2, 1)}),
            "the pool w-pool has 2 hosts, 1 of them unavailable, and 2 machines are wanted",
        ),
        (
            workers(),
            AROUND._replace(templates={"t": "both", "w": "both"}, pools={"both": Pool(4)}),
            "the pool both has 4 hosts, and 5 machines are wanted from it, of which 2 are of MachineDeployment md",
        ),
        (workers(template="gone"), AROUND, "there is no BaremetalMachineTemplate gone"),
        (workers(template="small"), AROUND, "there is no MachineInventoryPool small-pool"),
    ],
)
def test_a_pool_that_is_too_small_or_missing_is_told(content: dict[str, Any], around: Surroundings, sentence: str) -> None:
    (found,) = objections(seen(content), around)
    assert found.guard == "PoolCapacity"
    assert sentence in found.message


def test_workers_ahead_of_their_control_plane_are_told() -> None:
    (found,) = objections(seen(workers("v1.35.4")), AROUND)
    assert found.guard == "WorkerSkew"
    assert "ahead of its control plane, which is v1.34.5: upgrade the control plane first" in found.message


@pytest.mark.parametrize(("at", "count"), [("v1.32.0", 0), ("v1.31.0", 0), ("v1.30.9", 1)])
def test_workers_may_be_three_minor_versions_behind(at: str, count: int) -> None:
    around = AROUND._replace(catalog=None, rollouts=[seen(plane()), seen(workers(at))])
    assert about(workers(at), around) == [("WorkerSkew", "spec.template.spec.version")] * count
    assert about(plane(), around) == [("ControlPlaneSkew", "spec.version")] * count


def test_builds_of_one_version_are_one_version() -> None:
    around = AROUND._replace(rollouts=[seen(plane("v1.34.5-3"))], catalog=None)
    assert about(workers("v1.34.5"), around) == []


def test_of_what_is_not_known_nothing_is_held_against_a_rollout() -> None:
    assert about(workers("v9.9.9"), Surroundings()) == []


MULTI: dict[str, Any] = {"annotations": {"slipway.io/multi-step-upgrade": "true"}}


@pytest.mark.parametrize(
    ("before", "after", "refused", "told"),
    [
        # A surge is refused where it is asked for, and where a rollout would begin with it.
        (None, workers(surge=1), ["MaxSurge"], []),
        (workers(), workers(surge=1), ["MaxSurge"], []),
        (workers(surge=1), workers(surge=1), [], ["MaxSurge"]),
        (workers("v1.33.7-2", surge=1), workers(surge=1), ["MaxSurge"], []),
        (None, plane(surge=None, api="v1beta1"), ["MaxSurge"], []),
        # A control plane of one cannot have another one.
        (None, plane(surge=1, replicas=1), [], []),
        (None, plane(surge=1, replicas=2), [], []),
        # A first machine without an image waits; an upgrade to one would cost a node.
        (None, plane("v1.34.6"), [], ["ImageCatalog"]),
        (plane(), plane("v1.34.6"), ["ImageCatalog"], []),
        (plane("v1.34.6"), plane("v1.34.6", replicas=5), [], ["ImageCatalog", "PoolCapacity"]),
        # More machines than hosts wait, but a move to a pool that is too small costs nodes.
        (workers(), workers(replicas=3), [], ["PoolCapacity"]),
        (workers(), workers(template="small"), ["PoolCapacity"], []),
        (None, workers(template="small"), [], ["PoolCapacity"]),
        # One minor version at a time, and the control plane first.
        (plane("v1.33.7-2"), plane("v1.35.4"), ["ControlPlaneSkew"], []),
        (plane("v1.33.7-2"), plane("v1.35.4", **MULTI), [], []),
        (plane(), plane("v1.35.4"), [], []),
        (plane("v1.35.4"), plane("v1.34.5"), [], []),
        (workers(), workers("v1.35.4"), ["WorkerSkew"], []),
        (None, workers("v1.35.4"), ["WorkerSkew"], []),
        (workers("v1.33.7-2"), workers(), [], []),
        # Who knows better says so.
        (plane(), plane("v1.34.6", annotations={"slipway.io/skip-guards": "ImageCatalog"}), [], ["ImageCatalog"]),
        (plane(), plane("v1.34.6", annotations={"slipway.io/skip-guards": "MaxSurge, PoolCapacity"}), ["ImageCatalog"], []),
        (None, workers(surge=1, annotations={"slipway.io/skip-guards": "All"}), [], ["MaxSurge"]),
    ],
)
def test_what_would_cost_a_node_is_refused_and_the_rest_is_told(
    before: dict[str, Any] | None, after: dict[str, Any], refused: list[str], told: list[str]
) -> None:
    around = AROUND
    if seen(after).is_control_plane and seen(after).replicas < 3:
        around = AROUND._replace(pools={"cp-pool": Pool(3), "w-pool": Pool(2)})
    found = judged(None if before is None else seen(before), seen(after), around)
    assert [[each.guard for each in part] for part in found] == [refused, told]


def test_without_a_spare_host_a_control_plane_of_one_is_told() -> None:
    refused, told = judged(None, seen(plane(surge=1, replicas=1)), AROUND._replace(pools={"cp-pool": Pool(1), "w-pool": Pool(2)}))
    assert (refused, [each.guard for each in told]) == ([], ["MaxSurge"])


@pytest.mark.parametrize(
    ("key", "value", "sentences"),
    [
        ("v1.34.5", IMAGE, []),
        ("v1.33.7-2", f"{IMAGE}@sha256:{'a' * 64}", []),
        ("1.34.5", IMAGE, ['the key "1.34.5" of the ConfigMap elemental-image-catalog has no leading v: name it "v1.34.5"']),
        ("very", IMAGE, ["is no Kubernetes version"]),
        ("v1.34.5", "https://example.com/image", ["is no image reference"]),
        ("v1.34.5", "", ["is no image reference"]),
        ("latest", "Not An Image", ["has no leading v", "is no image reference"]),
    ],
)
def test_entries_of_the_catalog_that_are_no_good_are_told(key: str, value: str, sentences: list[str]) -> None:
    found = entry_objections({key: value})
    assert [sentence in each.message for sentence, each in zip(sentences, found, strict=True)] == [True] * len(sentences)


def test_a_summary_says_everything_once() -> None:
    found = objections(seen(workers(surge=1, replicas=3)), AROUND)
    assert summary([*found, *found]).count(";") == 2
    assert {each.guard for each in found} <= set(GUARDS)
