"""``slipway demo`` as a user types it: with everything that can go wrong, over several minors, and within its time and memory.

No real program is needed; the runs take half a minute each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from e2e.planes import real_server

from slipway.demo.faults import FAULTS

pytestmark = real_server
Event = dict[str, Any]
PROGRAM = [sys.executable, "-m", "slipway", "demo", "-o", "json"]


class Told(NamedTuple):
    """What a fault must tell an operator."""

    condition: str = ""
    reason: str = ""
    says: str = ""
    """In the message of the condition."""
    explains: str = ""
    """In the explanation of the whole cluster."""
    to_do: str = ""
    refused: str = ""
    """In what a guard says, before it is told to let it pass."""
    mends: str = ""
    """In the command, or the note, that mends it."""


# Each row of the guide's Troubleshooting, in its order, and then what fails in the system itself.
TOLD = {
    "catalog-miss": Told(
        "ImageResolved",
        "ImageCatalogMiss",
        'has no key "v1.35.4"',
        "elemental-image-catalog",
        "catalog",
        refused="v1.35.4",
        mends="patch configmap elemental-image-catalog",
    ),
    "registry-missing": Told(
        "ImageResolved",
        "ImageRegistryMissing",
        "cpaas.io/registry-address",
        "cpaas.io/registry-address",
        "annotation",
        mends="patch cluster demo",
    ),
    "plan-failed": Told("PlanApplied", "PlanFailed", "the upgrade fails", "could not apply", "Delete the Machine", mends="delete machine"),
    "registry-unreachable": Told(
        "PlanApplied",
        "PlanFailed",
        "the registry does not answer",
        "the registry does not answer",
        "Delete the Machine",
        mends="delete machine",
    ),
    "join-failed": Told("NodeJoined", "JoinDeadlineExceeded", "is no Node after", "is no Node after", "console", mends="delete machine"),
    "vip-lost": Told("VIPReady", "APINotReachable", "The hosts keep the peers", "", "virtual address", mends="keepalived runs again"),
    "max-surge": Told(
        "InventoryAllocated",
        "PoolExhausted",
        "has no host that is free",
        "has no host that is free",
        "Add a",
        refused="maxSurge",
        mends='"maxSurge": 0',
    ),
    "pool-exhausted": Told(
        "InventoryAllocated",
        "PoolExhausted",
        "has no host that is free",
        "has no host that is free",
        "Add a",
        mends="patch machineinventorypool",
    ),
    "host-dead": Told("NodeJoined", "JoinDeadlineExceeded", "is no Node after", "is no Node after", "console", mends="switched on"),
    "manager-killed": Told(mends="Another manager starts"),
    "api-down": Told(mends="The API server answers again"),
}


def run(folder: Path, *words: str) -> tuple[int, list[Event], str]:
    done = subprocess.run(
        [*PROGRAM, "--report", str(folder / "report.html"), *words], capture_output=True, text=True, timeout=400, check=False
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def holds(told: list[Event]) -> None:
    assert told[-1]["event"] == "verified"
    assert [check for check in told[-1]["checks"] if not check["ok"]] == []


def test_every_fault_is_here() -> None:
    assert TOLD.keys() == FAULTS.keys()


@pytest.mark.parametrize("fault", TOLD)
def test_with_a_fault_it_tells_what_is_wrong_and_what_to_do_and_ends_right(tmp_path: Path, fault: str) -> None:
    expected = TOLD[fault]
    code, told, errors = run(tmp_path, "--fault", fault, "--workers", "2", "--hosts", "6")
    assert (code, errors) == (0, ""), [each for each in told if each["event"] in ("problem", "verified")]
    holds(told)
    assert any(each["event"] == "fault" for each in told)
    if expected.condition:
        said = [each for each in told if (each.get("condition"), each.get("reason")) == (expected.condition, expected.reason)]
        assert said
        assert any(expected.says in each["text"] and expected.to_do in each["to_do"] for each in said), said
        explained = [each for each in told if each["event"] == "explained"]
        assert explained
        assert any(expected.explains in each["text"] for each in explained), explained
    refused = [each["text"] for each in told if each["event"] == "refused"]
    assert any(expected.refused in each for each in refused) if expected.refused else not refused
    assert any(expected.mends in (each.get("command") or each.get("text") or "") for each in told)
    page = (tmp_path / "report.html").read_text()
    assert "Every check holds." in page
    assert "What went wrong" in page


def test_several_minors_are_gone_through_one_by_one(tmp_path: Path) -> None:
    code, told, _ = run(tmp_path, "--from", "v1.33.13", "--to", "v1.36.3", "--control-planes", "1", "--workers", "1", "--hosts", "3")
    assert code == 0
    holds(told)
    steps = [each["text"] for each in told if each["event"] == "step" and each["name"] in ("control plane", "workers")]
    assert [next(word for word in step.replace(",", "").split() if word.startswith("v1.")) for step in steps] == [
        "v1.34.10",
        "v1.35.4",
        "v1.36.3",
        "v1.36.3",
    ]
    nodes = [each["version"] for each in told if each["event"] == "host" and each.get("stage") == "node"]
    assert nodes == ["v1.33.13", "v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3", "v1.36.3"]


def test_the_usual_run_holds_every_check_and_tells_what_it_cost(tmp_path: Path) -> None:
    with (
        (tmp_path / "events").open("w") as out,
        subprocess.Popen([*PROGRAM, "--report", str(tmp_path / "report.html")], stdout=out) as process,
    ):
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    holds([json.loads(line) for line in (tmp_path / "events").read_text().splitlines()])
    print(f"{used.ru_utime + used.ru_stime:.1f} s of work, {used.ru_maxrss / 1024:.0f} MB at most")
