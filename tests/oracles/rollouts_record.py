"""Records Cluster API's traces of rollouts in a form of our own; needs the Go module, and no Go.

``python tests/oracles/rollouts_record.py`` reads the logs that upstream holds its own rollout planner to, and writes to
tests/golden/clusterapi/rollouts what each starts from, the events in their order, and after each the numbers.  Rollouts in place are left
out: they are behind a feature gate that is off.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from slipway.lab.programs.gobuild import CLUSTER_API, module_source

VERSION = "v1.14.2"
GOLDEN = Path(__file__).parent.parent / "golden/clusterapi/rollouts"
TRACES = "core/reconcilers/machinedeployment/testdata"

SET = re.compile(r"^    (ms\d+): (?:from \d+/\d+ to )?(\d+)/(\d+) replicas, (\d+) available, (\d+) upToDate \((.*)\)$")
CURRENT = re.compile(r"current MachineSet (ms\d+)|MachineSet (ms\d+) created, it is now the current")
ROLLOUT = re.compile(r"MaxSurge=(\d+), MaxUnavailable=(\d+)")
RECONCILE = re.compile(r"^\[MS controller\] Iteration \d+, Reconcile (ms\d+):")
SCALED = re.compile(r"^\[MS controller\] - ms\d+ scale (?:up|down) to \d+/\d+ replicas \((.*) (created|deleted)\)$")
GONE = re.compile(r"^\[M controller\] - (m\d+) finalizer removed$")


def sets(lines: list[str]) -> dict[str, Any]:
    found = {}
    for line in lines:
        match = SET.match(line)
        if match:
            name, status, spec, available, up_to_date, machines = match.groups()
            found[name] = {
                "spec": int(spec),
                "status": int(status),
                "available": int(available),
                "upToDate": int(up_to_date),
                "machines": [machine for machine in machines.split(",") if machine],
            }
    return found


def trace(text: str) -> dict[str, Any]:
    """One log: its paragraphs each begin with a line that is not indented."""
    title, *rest = text.splitlines()
    paragraphs: list[list[str]] = []
    for line in rest:
        if line.startswith("["):
            paragraphs.append([line])
        elif line.strip():
            paragraphs[-1].append(line)
    initial, rollout = paragraphs[0], paragraphs[1][0]
    limits = ROLLOUT.search(rollout)
    row: dict[str, Any] = {
        "name": title.removeprefix("## "),
        "replicas": int(re.match(r"    md: \d+/(\d+) ", initial[1])[1]),  # type: ignore[index]
        "strategy": {"surge": int(limits[1]), "unavailable": int(limits[2])} if limits else "OnDelete",
        "sets": sets(initial),
        "events": [],
    }
    for paragraph in paragraphs[2:]:
        first = paragraph[0]
        if first == "[MD controller] - Result of rollout planner":
            current = [match[1] or match[2] for match in map(CURRENT.search, paragraph) if match]
            planned = {name: numbers["spec"] for name, numbers in after(paragraph).items()}
            row["events"].append({"planned": planned, **({"current": current[0]} if current else {})})
        elif match := RECONCILE.match(first):
            row["events"].append({"reconciled": match[1]})
        elif match := SCALED.match(first):
            row["events"][-1][match[2]] = match[1].split(",")
        elif match := GONE.match(first):
            row["events"].append({"gone": match[1]})
        elif first == "[Test] Final state":
            row["final"] = sets(paragraph)
    return row


def after(paragraph: list[str]) -> dict[str, Any]:
    """The sets after a plan: of ``from a/b to a/c`` the second half counts."""
    return sets([re.sub(r"from \d+/\d+ to ", "", line) for line in paragraph])


def main() -> None:
    sources = sorted((module_source(CLUSTER_API, VERSION) / TRACES).glob("*/*.golden"))
    applicable = [source for source in sources if not source.name.startswith("in-place")]
    found = [{"of": source.parent.name, **trace(source.read_text())} for source in applicable]
    GOLDEN.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(row) for row in found)
    (GOLDEN / "traces.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
