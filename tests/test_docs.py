"""What the docs say of the program's rooms is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = "cli|lab|node|fleet|agent|workload|embedded|runtime|host|kube|credentials|api"
MENTIONED = sorted(set(re.findall(rf"`((?:{ROOMS})\.[a-z0-9_.]+)`", (ROOT / "docs/architecture.md").read_text())))


@pytest.mark.parametrize("module", MENTIONED)
def test_the_modules_that_the_architecture_names_are_there(module: str) -> None:
    place = ROOT.joinpath("src", "slipway", *module.split("."))
    assert place.with_suffix(".py").exists() or place.is_dir()
