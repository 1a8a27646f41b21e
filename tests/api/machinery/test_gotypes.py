"""Foreign types against recorded results of Go's own decoder and encoder (tests/oracles/gotypes)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.machinery import gotypes
from slipway.api.machinery.yaml import goyaml

RELEASES = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "golden/types/documents.json").read_text())


def outcomes(want_error: bool) -> list[Any]:
    return [
        pytest.param(case, int(version.split(".")[1]), outcome, id=f"{case['name']} {version}")
        for case in CASES
        for version in RELEASES
        for outcome in [case["outcome"].get("all") or case["outcome"][version]]
        if ("error" in outcome) == want_error
    ]


def value_of(case: dict[str, Any]) -> Any:
    [document] = goyaml.load(case["yaml"])
    return document.value


@pytest.mark.parametrize(("case", "minor", "outcome"), outcomes(want_error=False))
def test_a_document_is_written_back_as_go_writes_it(case: dict[str, Any], minor: int, outcome: dict[str, Any]) -> None:
    decoded, _ = gotypes.decode(value_of(case), case["kind"], minor)
    encoded = gotypes.encode(decoded, case["kind"], minor)
    assert encoded == outcome["value"]
    assert goyaml.dump(encoded) == outcome["yaml"]


@pytest.mark.parametrize(("case", "minor", "outcome"), outcomes(want_error=False))
def test_what_go_wrote_is_read_without_a_problem_and_written_the_same(case: dict[str, Any], minor: int, outcome: dict[str, Any]) -> None:
    if case["name"] == "a pointer to the zero time":
        pytest.skip("Go writes null for it, and reads no pointer back")
    decoded, findings = gotypes.decode(outcome["value"], case["kind"], minor)
    assert findings == []
    assert gotypes.encode(decoded, case["kind"], minor) == outcome["value"]


@pytest.mark.parametrize(("case", "minor", "outcome"), outcomes(want_error=False))
def test_unknown_fields_are_those_that_go_finds(case: dict[str, Any], minor: int, outcome: dict[str, Any]) -> None:
    _, findings = gotypes.decode(value_of(case), case["kind"], minor)
    assert sorted(finding.message for finding in findings) == sorted(outcome.get("strict", []))


@pytest.mark.parametrize(("case", "minor", "outcome"), outcomes(want_error=True))
def test_what_go_cannot_decode_is_a_type_error(case: dict[str, Any], minor: int, outcome: dict[str, Any]) -> None:
    _, findings = gotypes.decode(value_of(case), case["kind"], minor)
    assert [finding.kind for finding in findings] == ["type"]


def test_every_problem_is_reported_with_its_place() -> None:
    value = {"maxPods": "x", "foo": 1, "registerWithTaints": [{"key": 5, "bar": 1}], "authentication": []}
    _, findings = gotypes.decode(value, "KubeletConfiguration", 36)
    assert {(finding.kind, finding.place) for finding in findings} == {
        ("type", ("maxPods",)),
        ("unknown", ("foo",)),
        ("type", ("registerWithTaints", 0, "key")),
        ("unknown", ("registerWithTaints", 0, "bar")),
        ("type", ("authentication",)),
    }


def test_a_document_that_is_no_object_is_a_type_error() -> None:
    _, findings = gotypes.decode([1], "Pod", 36)
    assert [(finding.kind, finding.place) for finding in findings] == [("type", ())]


@pytest.mark.parametrize(("minor", "known"), [(33, False), (34, False), (35, False), (36, True)])
def test_a_field_is_known_from_the_release_that_brought_it(minor: int, known: bool) -> None:
    assert ("tlsCurvePreferences" in gotypes.struct("KubeletConfiguration", minor).fields) is known
