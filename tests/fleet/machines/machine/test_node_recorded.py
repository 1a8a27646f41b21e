"""What a Node gets from its Machine is what Cluster API's Machine controller gives it, for each recorded case."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from fleet.machines.machine.recorded import rows

from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.meta import decode
from slipway.api.cluster.names import NODE_TAINTS_FROM_MACHINE_ANNOTATION, REVISION_ANNOTATION
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.patches.jsonpatch import merge
from slipway.fleet.machines.machine import node

pytestmark = pytest.mark.recorded


def revisions(case: dict[str, Any]) -> tuple[str, str] | None:
    if "machineSet" not in case or "machineDeployment" not in case:
        return None
    first, second = (
        (case[owner]["metadata"].get("annotations") or {}).get(REVISION_ANNOTATION, "") for owner in ("machineSet", "machineDeployment")
    )
    return first, second


def patched(case: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    before = deepcopy(case["node"])
    before["metadata"]["resourceVersion"] = "1"
    interruptible = ((case.get("infra") or {}).get("status") or {}).get("interruptible") is True
    given = node.given(decode(case["machine"], Machine), interruptible=interruptible, revisions=revisions(case))
    patch = node.patch(before, given)
    return merge(deepcopy(before), patch), patch


@pytest.mark.parametrize(("case", "answer"), rows("node"))
def test_the_node_becomes_what_upstream_makes_of_it(case: dict[str, Any], answer: dict[str, Any]) -> None:
    if "error" in answer:
        with pytest.raises(OperatorError):
            patched(case)
        return
    after, patch = patched(case)
    assert (after["metadata"].get("labels") or {}) == (answer["labels"] or {})
    annotations = after["metadata"].get("annotations") or {}
    wanted = answer["annotations"] or {}
    if not case["machine"]["spec"].get("taints"):
        # Upstream writes an empty list where its gate is on.
        wanted = {key: value for key, value in wanted.items() if key != NODE_TAINTS_FROM_MACHINE_ANNOTATION or key in annotations}
    assert annotations == wanted
    assert (after["spec"].get("taints") or []) == (answer["taints"] or [])
    assert bool(patch) or not answer["changed"]


@pytest.mark.parametrize(("case", "answer"), [row for row in rows("node") if "error" not in row.values[1]])
def test_a_node_that_has_everything_is_not_written_again(case: dict[str, Any], answer: dict[str, Any]) -> None:
    after, _ = patched(case)
    assert patched({**case, "node": after})[1] == {}
