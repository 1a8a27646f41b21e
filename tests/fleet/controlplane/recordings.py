"""What Cluster API's code answered: tests/oracles/controlplane_record.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[2] / "golden/clusterapi/controlplane"


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((GOLDEN / f"{name}.json").read_text())
    return found


def names(recorded: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in recorded]
