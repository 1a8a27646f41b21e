"""The order of versions, and the way from one to another."""

from __future__ import annotations

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.upgrades.versions import is_older, rank, way


def test_builds_come_after_their_release_and_candidates_before() -> None:
    ordered = ["v1.33.6", "v1.33.7-rc.1", "v1.33.7", "v1.33.7-1", "v1.33.7-2", "v1.33.7-10", "v1.34.0"]
    assert sorted(set(ordered), key=rank) == ordered


@pytest.mark.parametrize(
    ("one", "other"), [("v1.36.0-rc.1", "v1.36.0-rc.2"), ("v1.36.0-alpha.3", "v1.36.0-rc.0"), ("v1.36.0-rc.9", "v1.36.0-rc.10")]
)
def test_candidates_of_one_release_have_an_order_too(one: str, other: str) -> None:
    assert (is_older(one, other), is_older(other, one), is_older(one, one)) == (True, False, False)


def test_the_way_leads_over_the_newest_image_of_each_minor() -> None:
    catalog = ["v1.33.7", "v1.34.2", "v1.34.10", "v1.35.0-rc.1", "v1.34.10-1", "v1.35.4", "v1.36.0-rc.0", "v1.36.3", "latest"]
    assert way("v1.33.7", "v1.36.3", catalog) == {34: "v1.34.10-1", 35: "v1.35.4"}


def test_a_minor_without_an_image_is_an_error_that_says_which_one_to_add() -> None:
    with pytest.raises(OperatorError, match=r"leads over v1\.35, and the image catalog has no image of that: add one"):
        way("v1.34.10", "v1.36.3", ["v1.34.10", "v1.35.0-rc.1", "v1.36.3"])


@pytest.mark.parametrize(("at", "to"), [("v1.34.1", "v1.35.4"), ("v1.34.1", "v1.34.10"), ("v1.35.4", "v1.34.1")])
def test_nothing_lies_between_neighbours(at: str, to: str) -> None:
    assert way(at, to, []) == {}


def test_where_no_catalog_is_needed_the_newest_known_release_is_taken() -> None:
    assert way("1.34.1", "v1.36.3") == {35: "v1.35.4"}


def test_there_is_no_way_to_another_major() -> None:
    with pytest.raises(OperatorError, match="no way"):
        way("v1.36.3", "v2.0.0")
