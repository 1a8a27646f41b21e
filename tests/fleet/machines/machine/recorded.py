"""The rows of tests/golden/clusterapi/machine: what Cluster API's own Machine controller said of cases."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from slipway.runtime.objects import timestamp

GOLDEN = Path(__file__).parents[3] / "golden/clusterapi/machine"
NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
_MOMENT = re.compile(r"\{\{(-?[0-9]+)\}\}")


def rows(subject: str) -> list[Any]:
    """One parameter a row, with its times put in."""
    text = (GOLDEN / f"{subject}.json").read_text()
    dated = _MOMENT.sub(lambda found: timestamp(NOW + timedelta(seconds=int(found[1]))), text)
    return [pytest.param(row["case"], row["answer"], id=row["name"]) for row in json.loads(dated)]
