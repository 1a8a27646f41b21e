"""Conditions of webhooks that only a server which was updated can have; what is the same as in the real one is in conformance."""

from __future__ import annotations

import pytest

from slipway.embedded.access.authentication import ADMIN
from slipway.embedded.access.authorization import Authorizer
from slipway.embedded.storage.store import Store
from slipway.embedded.webhooks import conditions

REQUEST: dict[str, object] = {
    "uid": "u",
    "name": "a",
    "operation": "CREATE",
    "resource": {"group": "", "version": "v1", "resource": "configmaps"},
    "object": {"spec": {}},
    "oldObject": None,
}


def configuration(expression: str) -> dict[str, object]:
    return {"webhooks": [{"matchConditions": [{"name": "c", "expression": expression}]}]}


def test_those_that_an_update_leaves_as_they_were_are_not_looked_at() -> None:
    stored = configuration("wrong")
    assert not conditions.errors({**stored, "metadata": {"labels": {"a": "b"}}}, stored)
    assert conditions.errors(configuration("wrong too"), stored)


@pytest.mark.asyncio
async def test_one_that_is_stored_and_does_not_compile_has_no_value() -> None:
    rights = conditions.Rights(Authorizer(Store()), ADMIN)
    with pytest.raises(conditions.ConditionsError, match=r"^compilation error: must evaluate to bool but got string$"):
        await conditions.Conditions([{"name": "c", "expression": "'x'"}]).hold(REQUEST, rights)
