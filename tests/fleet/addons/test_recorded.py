"""What ConfigMaps and Secrets hold, when they are applied, and what webhooks say, compared with upstream's own code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.fieldpath import FieldError
from slipway.fleet.addons import record, webhooks
from slipway.fleet.addons.content import content

pytestmark = pytest.mark.recorded

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "golden/clusterapi/addons/rows.json").read_text())
# What upstream makes otherwise, and why ours is kept.
DIFFERENT = {
    "a text of few letters": "upstream refuses every text of less than 32 bytes, as it cannot peek so far",
    "a document without a kind": "upstream finds out when the cluster refuses it",
    "a list of JSON that is cut off": "upstream takes it for an empty list, and says that it was applied",
    "an object without a name": "upstream finds out when the cluster refuses it",
}
# Refused by both, in other words: those of the selectors of all our kinds.
OTHER_WORDS = ("In without values", "Exists with values")


def rows(*keys: str, without: str = "") -> list[Any]:
    return [pytest.param(row, id=row["name"]) for row in ROWS if all(key in row for key in keys) and without not in row]


@pytest.mark.parametrize("row", rows("resource"))
def test_manifests_their_order_and_their_hash_are_upstreams(row: dict[str, Any]) -> None:
    try:
        made = content(row["resource"])
        ours: Any = {"hash": made.hash, "objects": [f"{each['kind']}/{each['metadata']['name']}" for each in made.objects]}
    except OperatorError:
        ours = {"refused": True}
    assert (ours == row["answer"]) is (row["name"] not in DIFFERENT), (ours, row["answer"])


@pytest.mark.parametrize("row", rows("ref"))
def test_a_resource_is_applied_when_upstream_applies_it(row: dict[str, Any]) -> None:
    strategy = row["set"]["spec"]["strategy"]
    needs = record.needs_apply(row["binding"], "cni", row["ref"]["kind"], row["ref"]["name"], strategy, row["hash"])
    assert needs == row["answer"]["needs"]


def refusal(kind: str, name: str, errors: list[FieldError]) -> str:
    texts = [str(error) for error in errors]
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return f'{kind}.addons.cluster.x-k8s.io "{name}" is invalid: {shown}' if texts else ""


@pytest.mark.parametrize("row", rows("set", without="ref"))
def test_a_set_is_defaulted_and_judged_as_by_upstream(row: dict[str, Any]) -> None:
    given = webhooks.default(row["set"])
    assert given["spec"]["strategy"] == row["answer"]["strategy"]
    told = refusal("ClusterResourceSet", "cni", webhooks.validate_set(given, row.get("old")))
    if row["name"] in OTHER_WORDS:
        assert told.partition("]}: ")[0] == row["answer"]["error"].partition("]}: ")[0]
    else:
        assert told == row["answer"]["error"]


@pytest.mark.parametrize("row", rows("binding", without="ref"))
def test_a_binding_is_judged_as_by_upstream(row: dict[str, Any]) -> None:
    assert refusal("ClusterResourceSetBinding", "c", webhooks.validate_binding(row["binding"], row.get("before"))) == row["answer"]["error"]
