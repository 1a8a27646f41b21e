"""What a deletion does next: mark, remove or nothing, by grace, finalizers and policy."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slipway.embedded.errors import StatusError
from slipway.embedded.registry.delete import DeleteOptions, next_step, options_of
from slipway.embedded.registry.resources import Catalog

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
Manifest = dict[str, Any]


def step(plural: str, manifest: Manifest, **options: Any) -> tuple[str, Manifest]:
    resource = Catalog().find("", "v1", plural)
    assert resource is not None
    given = {"metadata": {"name": "x", **manifest.pop("metadata", {})}, **manifest}
    return next_step(resource, given, DeleteOptions(**options), NOW), given["metadata"]


@pytest.mark.parametrize(
    ("finalizers", "policy", "expected", "left"),
    [
        ([], "", "remove", None),
        ([], "Background", "remove", None),
        ([], "Foreground", "mark", ["foregroundDeletion"]),
        ([], "Orphan", "mark", ["orphan"]),
        (["a/b"], "", "mark", ["a/b"]),
        (["a/b"], "Foreground", "mark", ["a/b", "foregroundDeletion"]),
        (["orphan"], "", "mark", ["orphan"]),
        (["orphan"], "Background", "remove", None),
        (["orphan", "a/b"], "Foreground", "mark", ["a/b", "foregroundDeletion"]),
    ],
)
def test_policies(finalizers: list[str], policy: str, expected: str, left: list[str] | None) -> None:
    done, metadata = step("configmaps", {"metadata": {"finalizers": list(finalizers)}}, propagation=policy)
    assert (done, metadata.get("finalizers")) == (expected, left)
    if done == "mark":
        assert metadata["deletionTimestamp"] == "2026-05-01T12:00:00Z"
        assert metadata["deletionGracePeriodSeconds"] == 0


def test_a_marked_object_counts_as_asked_for_otherwise() -> None:
    _, metadata = step("configmaps", {"metadata": {"finalizers": ["a/b"], "generation": 4}})
    assert metadata["generation"] == 5


def test_an_object_that_is_marked_already_stays_as_it_is() -> None:
    given = {"finalizers": ["a/b"], "deletionTimestamp": "2026-05-01T11:00:00Z", "deletionGracePeriodSeconds": 0}
    done, metadata = step("configmaps", {"metadata": dict(given)})
    assert (done, {key: metadata[key] for key in given}) == ("nothing", given)


@pytest.mark.parametrize(
    ("spec", "status", "seconds", "expected", "grace"),
    [
        ({}, {}, None, "remove", None),
        ({"nodeName": "n"}, {}, None, "mark", 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, {}, None, "mark", 5),
        ({"nodeName": "n"}, {}, 10, "mark", 10),
        ({"nodeName": "n"}, {}, 0, "remove", None),
        ({"nodeName": "n"}, {}, -1, "mark", 1),
        ({"nodeName": "n"}, {"phase": "Succeeded"}, None, "remove", None),
    ],
)
def test_pods_are_given_time(spec: Manifest, status: Manifest, seconds: int | None, expected: str, grace: int | None) -> None:
    done, metadata = step("pods", {"spec": spec, "status": status}, grace=seconds)
    assert (done, metadata.get("deletionGracePeriodSeconds")) == (expected, grace)


@pytest.mark.parametrize(("seconds", "expected"), [(None, "nothing"), (30, "nothing"), (40, "nothing"), (10, "mark"), (0, "remove")])
def test_the_time_of_a_pod_can_only_become_shorter(seconds: int | None, expected: str) -> None:
    metadata = {"deletionTimestamp": "2026-05-01T12:00:20Z", "deletionGracePeriodSeconds": 30}
    done, left = step("pods", {"metadata": metadata, "spec": {"nodeName": "n"}}, grace=seconds)
    assert done == expected
    if done == "mark":
        assert (left["deletionTimestamp"], left["deletionGracePeriodSeconds"]) == ("2026-05-01T12:00:00Z", 10)


def test_options_come_from_the_body_or_the_query() -> None:
    body = {"propagationPolicy": "Orphan", "gracePeriodSeconds": 3, "preconditions": {"uid": "u", "resourceVersion": "7"}}
    expected = DeleteOptions(propagation="Orphan", grace=3, uid="u", resource_version="7")
    assert options_of(body, {}) == expected
    assert options_of({}, {"propagationPolicy": "Foreground", "dryRun": "All"}) == DeleteOptions(propagation="Foreground", dry_run=True)
    assert options_of({"orphanDependents": True}, {}).orphan is True


@pytest.mark.parametrize(
    "body", [{"propagationPolicy": "Sideways"}, {"propagationPolicy": "Orphan", "orphanDependents": True}, {"gracePeriodSeconds": "x"}]
)
def test_wrong_options(body: Manifest) -> None:
    with pytest.raises(StatusError):
        options_of(body, {})
