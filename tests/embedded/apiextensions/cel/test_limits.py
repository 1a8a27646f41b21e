"""Rules that ask for too much, or are no rules that anybody would write: refused or ended, and never the end of the server."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.embedded.apiextensions.cel import definitions
from slipway.embedded.apiextensions.cel.rules import CALL_LIMIT, OBJECT_LIMIT, Rules
from slipway.embedded.apiextensions.schema import StructuralSchema

LIST = {"type": "array", "items": {"type": "string"}}


def schema(*rules: str) -> dict[str, Any]:
    spec = {**LIST, "x-kubernetes-validations": [{"rule": rule, "message": f"rule {number}"} for number, rule in enumerate(rules)]}
    return {"type": "object", "properties": {"spec": spec}}


@pytest.mark.parametrize(
    "rule",
    [
        "(" * 300 + "true" + ")" * 300,
        "[" * 500 + "]" * 500 + " == []",
        "self.size()" + "+1" * 3000 + " > 0",
        "self" + ".a" * 3000 + " == 1",
    ],
    ids=["parentheses", "lists", "sums", "fields"],
)
def test_an_expression_that_is_nested_too_deeply_is_refused(rule: str) -> None:
    given = schema(rule)
    (error,) = definitions.errors(given, Rules(given), "spec")
    assert "expression recursion limit exceeded: 250" in error.message


def test_many_terms_are_not_deep() -> None:
    given = schema("true" + " && true" * 5000)
    assert definitions.errors(given, Rules(given), "spec") == []


def test_an_object_has_a_budget_for_all_its_rules() -> None:
    rule = "self.all(a, self.all(b, self.all(c, a + b != c)))"
    found = Rules(schema(*[rule] * 40)).validate({"spec": ["1", "2", "4"]}, None, budget=2000)
    (error,) = found.errors
    assert error.message.endswith("validation failed due to running out of cost budget, no further validation rules will be run")
    assert (OBJECT_LIMIT, CALL_LIMIT) == (10_000_000, 1_000_000)


@pytest.mark.asyncio
async def test_a_schema_without_rules_needs_no_compiler() -> None:
    plain = StructuralSchema({"type": "object", "properties": {"spec": LIST}})
    assert await plain.rule_errors({"spec": []}, None, [], []) == []
    assert plain.definition_errors("spec") == []
