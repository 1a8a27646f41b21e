"""What a Node gets of its Machine beside what upstream's manager gives it without flags, which is in test_node_recorded."""

from __future__ import annotations

import re
from typing import Any

from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.meta import decode
from slipway.fleet.machines.machine import node
from slipway.fleet.machines.options import MachinesOptions

MANIFEST: dict[str, Any] = {
    "metadata": {
        "name": "m",
        "namespace": "ns",
        "labels": {"rack.example.com/row": "7", "node-role.kubernetes.io/edge": "", "team": "a", "steam": "b"},
        "annotations": {"example.com/asset": "4711", "example.org/asset": "4712"},
    },
    "spec": {"clusterName": "c", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": {"name": "m", "kind": "K", "apiGroup": "g"}},
}


def given(**expressions: str) -> node.Given:
    more = MachinesOptions(**{name: (re.compile(text),) for name, text in expressions.items()})
    return node.given(decode(MANIFEST, Machine), more=more)


def test_a_label_that_an_expression_matches_anywhere_goes_to_the_node() -> None:
    assert set(given().labels) == {"node-role.kubernetes.io/edge"}
    assert set(given(node_labels="team").labels) == {"node-role.kubernetes.io/edge", "team", "steam"}
    assert set(given(node_labels="^team$").labels) == {"node-role.kubernetes.io/edge", "team"}
    assert given(node_labels=r"^rack\.").labels["rack.example.com/row"] == "7"


def test_an_annotation_that_an_expression_matches_goes_to_the_node() -> None:
    assert "example.com/asset" not in given().annotations
    found = given(node_annotations=r"^example\.com/").annotations
    assert (found["example.com/asset"], "example.org/asset" in found) == ("4711", False)


def test_what_no_expression_matches_any_more_goes_from_the_node() -> None:
    first = node.patch({"metadata": {"resourceVersion": "1"}}, given(node_labels="team"))["metadata"]
    there = {"resourceVersion": "2", "labels": first["labels"], "annotations": first["annotations"]}
    assert node.patch({"metadata": there}, given())["metadata"]["labels"] == {"team": None, "steam": None}
