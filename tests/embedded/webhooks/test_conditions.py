"""Conditions of webhooks, where this server says something else than the real one; what is the same is in conformance."""

from __future__ import annotations

import pytest

from slipway.embedded.webhooks import conditions

REQUEST: dict[str, object] = {"uid": "u", "name": "a", "operation": "CREATE", "object": {"spec": {}}, "oldObject": None}


def configuration(expression: str) -> dict[str, object]:
    return {"webhooks": [{"matchConditions": [{"name": "c", "expression": expression}]}]}


def test_one_that_asks_for_rights_is_refused_with_what_to_do() -> None:
    (error,) = conditions.errors(configuration("authorizer.group('').resource('pods').check('get').allowed()"), None)
    assert error.field == "webhooks[0].matchConditions[0].expression"
    assert "does not know the variable authorizer: let the webhook itself decide" in error.message


def test_those_that_an_update_leaves_as_they_were_are_not_looked_at() -> None:
    stored = configuration("wrong")
    assert not conditions.errors({**stored, "metadata": {"labels": {"a": "b"}}}, stored)
    assert conditions.errors(configuration("wrong too"), stored)


def test_one_that_is_stored_and_does_not_compile_has_no_value() -> None:
    with pytest.raises(conditions.ConditionsError, match=r"^compilation error: must evaluate to bool but got string$"):
        conditions.Conditions([{"name": "c", "expression": "'x'"}]).hold(REQUEST)
