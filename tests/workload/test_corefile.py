"""Corefiles moved to a newer CoreDNS; expectations were recorded from coredns/corefile-migration, the library of kubeadm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.workload import corefile

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[1] / "golden/corefiles"
TEXTS = {case["name"]: case["text"] for case in yaml.safe_load((GOLDEN / "corefiles.cases.yaml").read_text())}
ROWS = [(version, row) for version, rows in json.loads((GOLDEN / "corefiles.json").read_text()).items() for row in rows]


@pytest.mark.parametrize(("version", "row"), ROWS, ids=[f"{version} {row['name']} {row['from']}" for version, row in ROWS])
def test_a_corefile_is_judged_and_migrated_as_the_library_does(version: str, row: dict[str, Any]) -> None:
    text = TEXTS[row["name"]]
    assert corefile.is_default(text) == row["default"]
    target = release_for(Version.parse(version)).coredns_version.removeprefix("v")
    if row["from"] == target:
        assert row["error"] == ""
        return
    if row["error"]:
        with pytest.raises(OperatorError) as caught:
            corefile.steps(row["from"], target, newest=target)
        assert caught.value.message == row["error"]
        return
    steps = corefile.steps(row["from"], target, newest=target)
    assert corefile.migrate(text, steps) == row["migrated"]
    assert [str(notice) for notice in corefile.unsupported(text, steps)] == row["unsupported"]
    assert [str(notice) for notice in corefile.changes(text, steps)] == row["changes"]


def test_a_block_that_belongs_to_nothing_is_refused() -> None:
    with pytest.raises(OperatorError, match=r'line 2 \("errors"\) is in a block that belongs to nothing'):
        corefile.parse("{\n errors\n}\n")


def test_the_same_version_leaves_the_text_as_it_is() -> None:
    text = ".:53   {\n  foreign\n}\n"
    assert corefile.migrate(text, corefile.steps("1.13.1", "1.13.1", newest="1.13.1")) == text
