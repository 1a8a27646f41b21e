"""What is said to a bad command line: the real kubeadm's words and exit code, release by release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cli.conftest import Run

pytestmark = pytest.mark.recorded

_GOLDEN = Path(__file__).parents[2] / "golden"
_CASES = [
    pytest.param(path.parent.name, case, id=f"{path.parent.name} {' '.join(case['arguments'])}")
    for path in sorted(_GOLDEN.glob("*/command_errors.json"))
    for case in json.loads(path.read_text())
]


@pytest.mark.parametrize(("version", "case"), _CASES)
def test_a_bad_command_line_is_refused_as_the_real_one_refuses_it(version: str, case: dict[str, Any], run: Run) -> None:
    outcome = run(*case["arguments"], program="kubeadm", acting_as=version)
    assert (outcome.code, outcome.err, outcome.out) == (case["code"], case["stderr"], case["stdout"])


def test_all_four_releases_are_recorded() -> None:
    assert {case.values[0] for case in _CASES} == {"v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3"}
