"""Strategic merge patches against recorded results of apimachinery (tests/oracles/gotypes)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.machinery.patches import strategicmerge
from slipway.api.machinery.patches.jsonpatch import PatchError
from slipway.api.machinery.yaml import goyaml

RELEASES = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
CASES = [
    pytest.param(case, int(version.split(".")[1]), case["outcome"].get("all") or case["outcome"][version], id=f"{case['name']} {version}")
    for case in json.loads((Path(__file__).parents[2] / "golden/patches/strategic.json").read_text())
    for version in RELEASES
]


def value(text: str) -> Any:
    [document] = goyaml.load(text)
    return document.value


@pytest.mark.parametrize(("case", "minor", "outcome"), CASES)
def test_a_strategic_merge_patch_does_what_apimachinery_does(case: dict[str, Any], minor: int, outcome: dict[str, Any]) -> None:
    document, patch = value(case["original"]), value(case["patch"])
    kept = copy.deepcopy((document, patch))
    if "error" in outcome:
        with pytest.raises(PatchError):
            strategicmerge.apply(document, patch, case["kind"], minor)
    else:
        assert strategicmerge.apply(document, patch, case["kind"], minor) == outcome["value"]
    assert (document, patch) == kept


@pytest.mark.parametrize(
    ("original", "patch", "words"),
    [
        (
            {"spec": {"containers": [{"name": "a"}]}},
            {"spec": {"containers": [{"image": "i"}]}},
            "does not contain declared merge key: name",
        ),
        ({"foo": {"a": 1}}, {"foo": {"b": 1}}, 'unable to find api field in struct Pod for the json field "foo"'),
        ({"metadata": {"labels": {}}}, {"metadata": {"labels": {"$patch": "x"}}}, "unknown patch type: x"),
        (
            {"spec": {"volumes": [{"name": "v"}]}},
            {"spec": {"volumes": [{"name": "v", "$retainKeys": 1}]}},
            "invalid patch format of retainKeys",
        ),
    ],
)
def test_the_reason_reads_like_apimachinery_s(original: Any, patch: Any, words: str) -> None:
    with pytest.raises(PatchError) as caught:
        strategicmerge.apply(original, patch, "Pod", 36)
    assert words in caught.value.message
