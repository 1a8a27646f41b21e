"""Rules in CEL against what the API server's own code makes of them: refusals, verdicts, messages, warnings and costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.embedded.apiextensions.cel import definitions
from slipway.embedded.apiextensions.cel.rules import OBJECT_LIMIT, Rules

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[3] / "golden/cel"
PATH = "spec.validation.openAPIV3Schema"
SYNTAX = "only the first error of the syntax is told, in words of our own where the generated parser's depend on its tables"
ESTIMATE = "the cost is limited when a rule runs, not estimated when it is written"
DIFFERENT = {
    "self. == 1": SYNTAX,
    "'abc": SYNTAX,
    "self.in == 1": SYNTAX,
    "self.s == 'abc' ? : 1": SYNTAX,
    "self.?s.optMap(x, x + '!').orValue('') == 'abc!'": ESTIMATE,
    "self.l.transformList(i, v, v + string(i)) == ['a0','b1','c2']": ESTIMATE,
    "['a'].indexOf('b') == -1": ESTIMATE,
    "format.uuid().validate('123e4567-e89b-12d3-a456-426614174000') == optional.none()": ESTIMATE,
    "self.s.find('(') == ''": "what is wrong with a pattern is told in RE2's words, not Go's",
}

CASES = yaml.safe_load((GOLDEN / "expressions.cases.yaml").read_text())
EXPRESSIONS = json.loads((GOLDEN / "expressions.json").read_text())
SCHEMAS = yaml.safe_load((GOLDEN / "rules.cases.yaml").read_text())
ANSWERS = json.loads((GOLDEN / "rules.json").read_text())


def refusals(schema: dict[str, Any]) -> list[str]:
    return sorted(str(error) for error in definitions.errors(schema, Rules(schema), PATH))


def verdict(rules: Rules, manifest: dict[str, Any], old: dict[str, Any] | None) -> dict[str, Any]:
    found = rules.validate(manifest, old)
    errors = sorted(str(error) for error in found.errors)
    return {"errors": errors, "warnings": sorted(found.warnings), "cost": _cost(errors, OBJECT_LIMIT - found.budget)}


def recorded(answer: dict[str, Any]) -> dict[str, Any]:
    errors = sorted(answer["errors"])
    return {"errors": errors, "warnings": sorted(answer["warnings"]), "cost": _cost(errors, answer["cost"])}


def _cost(errors: list[str], cost: int) -> int | None:
    """What an evaluation costs that fails half-way is nobody's concern."""
    return None if any("evaluating rule" in error or "call arguments did not match" in error for error in errors) else cost


@pytest.mark.parametrize("row", EXPRESSIONS, ids=[row["rule"] for row in EXPRESSIONS])
def test_an_expression_means_what_it_means_to_the_real_server(row: dict[str, Any]) -> None:
    spec = {"type": "object", "properties": CASES["fields"], "x-kubernetes-validations": [{"rule": row["rule"]}]}
    schema = {"type": "object", "properties": {"spec": spec}}
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": CASES["object"]}
    refused = refusals(schema)
    ours = refused, [] if refused else [verdict(Rules(schema), thing, None)]
    real = sorted(row["definition"]), [recorded(answer) for answer in row["verdicts"]]
    assert (ours == real) is (row["rule"] not in DIFFERENT), (ours, real)


@pytest.mark.parametrize(("case", "answer"), list(zip(SCHEMAS, ANSWERS, strict=True)), ids=[case["name"] for case in SCHEMAS])
def test_rules_of_a_schema_judge_as_the_real_server_does(case: dict[str, Any], answer: dict[str, Any]) -> None:
    refused = refusals(case["schema"])
    assert refused == sorted(answer["definition"])
    if refused:
        return
    rules = Rules(case["schema"])
    olds = [*case["olds"], *[None] * (len(case["objects"]) - len(case["olds"]))]
    assert [verdict(rules, *pair) for pair in zip(case["objects"], olds, strict=True)] == [recorded(each) for each in answer["verdicts"]]
