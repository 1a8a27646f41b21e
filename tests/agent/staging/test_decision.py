"""What is done about the image that a host is to have ahead."""

from __future__ import annotations

import pytest

from slipway.agent.staging.decision import Drop, Failure, Fetch, Job, Record, Rest, facts, is_other_version, next_job
from slipway.api.elemental import staging
from slipway.api.elemental.staging import Wanted

TAG, PINNED = "r/os:v1", f"r/os@sha256:{'a' * 64}"


def name(image: str) -> str:
    return staging.place(image).rpartition("/")[2]


def here(image: str = TAG) -> dict[str, Record | None]:
    return {name(image): Record(reference=image, digest="sha256:b")}


@pytest.mark.parametrize(
    ("wanted", "found", "failure", "checked", "expected"),
    [
        (None, {}, None, None, Rest()),
        (TAG, {}, None, None, Fetch(Wanted(TAG))),
        (None, here(), None, None, Drop((name(TAG),))),
        (PINNED, here(), None, None, Drop((name(TAG),))),
        (TAG, {name(TAG): None}, None, None, Drop((name(TAG),))),
        (TAG, {**here(), f"{name(TAG)}.partial": None}, None, 0.0, Drop((f"{name(TAG)}.partial",))),
        (PINNED, here(PINNED), None, None, Rest()),
        (TAG, here(), None, None, Fetch(Wanted(TAG), "sha256:b")),
        (TAG, here(), None, 900.0, Rest(200.0)),
        (TAG, here(), None, 700.0, Fetch(Wanted(TAG), "sha256:b")),
        (TAG, {}, Failure(TAG, "why", 990.0), None, Rest(50.0)),
        (TAG, {}, Failure(TAG, "why", 940.0), None, Fetch(Wanted(TAG))),
        (TAG, {}, Failure(TAG, "why", 940.0, 2), None, Rest(60.0)),
        (TAG, {}, Failure(TAG, "why", 990.0, 40), None, Rest(890.0)),
        (TAG, {}, Failure(PINNED, "why", 990.0), None, Fetch(Wanted(TAG))),
        (TAG, {}, Failure(TAG, "why", 9999.0), None, Fetch(Wanted(TAG))),
    ],
    ids=[
        *("nothing-wanted", "missing", "not-wanted-any-more", "another-wanted", "without-a-record", "a-rest-of-a-fetch", "by-digest"),
        *("tag-not-compared-yet", "tag-compared", "tag-compared-long-ago", "failed-just-now", "failed-a-minute-ago", "failed-twice"),
        *("failed-for-long", "another-failed", "clock-set-back"),
    ],
)
def test_the_next_job_follows_from_what_is_wanted_and_there(
    wanted: str | None, found: dict[str, Record | None], failure: Failure | None, checked: float | None, expected: Job
) -> None:
    assert next_job(Wanted(wanted) if wanted else None, found, failure, checked, 1000.0) == expected


@pytest.mark.parametrize(
    ("wanted", "told", "other"),
    [
        ("v1.35.4", "v1.35.4", False),
        ("v1.35.4-2", "v1.35.4", False),
        ("v1.35.4", "v1.34.1", True),
        ("v1.35.4", "", False),
        ("", "v1", False),
    ],
)
def test_a_kubelet_of_another_version_is_noticed(wanted: str, told: str, other: bool) -> None:
    assert is_other_version(wanted, told) is other


def test_the_host_tells_of_the_image_that_is_wanted_and_of_no_other() -> None:
    wanted = Wanted(TAG)
    assert facts(None, None, None) is None
    assert facts(wanted, None, Failure(PINNED, "why", 0.0)) == {"image": TAG, "state": "Fetching"}
    assert facts(wanted, None, Failure(TAG, "why", 0.0)) == {"image": TAG, "state": "Failed", "message": "why"}
    assert facts(wanted, here()[name(TAG)], None) == {"image": TAG, "state": "Staged", "digest": "sha256:b", "version": "", "bytes": 0}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"image": 7}', '{"image": ""}', "\udcff"])
def test_an_annotation_that_says_nothing_asks_for_nothing(text: str) -> None:
    assert staging.decode(text) is None


def test_what_is_asked_for_comes_through() -> None:
    wanted = Wanted(TAG, "v1.35.4", "2026-01-01T00:00:00Z")
    assert staging.decode(staging.encode(wanted)) == wanted
