"""JSON patches and merge patches against recorded results of evanphx/json-patch (tests/oracles/gotypes)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.machinery.patches import jsonpatch
from slipway.api.machinery.yaml import goyaml

GOLDEN = Path(__file__).parents[2] / "golden/patches"
NEWEST = "v1.36.3"


def cases(name: str) -> list[Any]:
    """The outcome of the newest library; the older one panics, or keeps silent, where the newer has an error."""
    return [
        pytest.param(case["original"], case["patch"], case["outcome"].get("all") or case["outcome"][NEWEST], id=case["name"])
        for case in json.loads((GOLDEN / f"{name}.json").read_text())
    ]


def value(text: str) -> Any:
    [document] = goyaml.load(text)
    return document.value


def check(apply: Any, original: str, patch: str, outcome: dict[str, Any]) -> None:
    document, change = value(original), value(patch)
    kept = copy.deepcopy((document, change))
    if "error" in outcome:
        with pytest.raises(jsonpatch.PatchError):
            apply(document, change)
    else:
        assert apply(document, change) == outcome["value"]
    assert (document, change) == kept


@pytest.mark.parametrize(("original", "patch", "outcome"), cases("json"))
def test_a_json_patch_does_what_the_library_does(original: str, patch: str, outcome: dict[str, Any]) -> None:
    check(jsonpatch.apply, original, patch, outcome)


@pytest.mark.parametrize(("original", "patch", "outcome"), cases("merge"))
def test_a_merge_patch_does_what_the_library_does(original: str, patch: str, outcome: dict[str, Any]) -> None:
    check(jsonpatch.merge, original, patch, outcome)


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"op": "add", "path": "/b/c", "value": 1}, 'add operation does not apply: doc is missing path: "/b/c"'),
        ({"op": "remove", "path": "/b"}, "Unable to remove nonexistent key: b"),
        ({"op": "replace", "path": "/b/c", "value": 1}, "replace operation does not apply: doc is missing path"),
        ({"op": "test", "path": "/a", "value": 2}, "testing value /a failed"),
        ({"op": "move", "from": "/b/c", "path": "/a"}, "move operation does not apply: doc is missing from path"),
        ({"op": "add", "path": "/l/7", "value": 1}, "Unable to access invalid index: 7"),
        ({"op": "merge", "path": "/a"}, "Unexpected kind: merge"),
    ],
)
def test_the_reason_reads_like_the_library_s(operation: dict[str, Any], words: str) -> None:
    with pytest.raises(jsonpatch.PatchError) as caught:
        jsonpatch.apply({"a": 1, "l": [1]}, [operation])
    assert words in caught.value.message


def test_replacing_the_document_by_a_scalar_is_refused() -> None:
    with pytest.raises(jsonpatch.PatchError, match="must be object or array"):
        jsonpatch.apply({"a": 1}, [{"op": "replace", "path": "", "value": 1}])
