"""Every recorded template gives what Go's text/template gives: the same text or the same error (tests/oracles/gotemplate)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.machinery.gotemplate import Template, TemplateError

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[3] / "golden/gotemplate/templates.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())


def outcome(case: dict[str, Any]) -> dict[str, str]:
    try:
        template = Template.parse(case["name"], case["text"])
    except TemplateError as error:
        return {"stage": "parse", "error": str(error)}
    try:
        return {"output": template.execute(case["data"], missing_key=case["missing_key"])}
    except TemplateError as error:
        return {"stage": "execute", "error": str(error)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['group']}: {case['text'][:50]}")
def test_does_as_go_does(case: dict[str, Any]) -> None:
    assert outcome(case) == {key: case[key] for key in ("output", "stage", "error") if key in case}


def test_the_cases_cover_output_and_both_kinds_of_error() -> None:
    stages = [case.get("stage", "") for case in CASES]
    assert min(stages.count(""), stages.count("parse"), stages.count("execute")) > 150
