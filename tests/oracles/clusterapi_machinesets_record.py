"""Records what Cluster API's MachineSet and MachineDeployment controllers decide; needs Go.

``python tests/oracles/clusterapi_machinesets_record.py`` copies the module, puts the files of tests/oracles/clusterapi_machinesets inside
its packages, builds them, asks about the cases of :mod:`clusterapi_machinesets_cases`, and writes the answers to
tests/golden/clusterapi/machinesets.  Times in the cases are ``now``, ``now-30s`` and so on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import CLUSTER_API, module_source

VERSION = "v1.14.2"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/clusterapi/machinesets"
FILES = {
    "machineset.go": "core/reconcilers/machineset/zz_oracle.go",
    "machinedeployment.go": "core/reconcilers/machinedeployment/zz_oracle.go",
    "main.go": "cmd/slipway-oracle/main.go",
}
TIME = re.compile(r"now(?:-([0-9]+)s)?")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def oracle() -> Path:
    """The oracle program, inside a copy of Cluster API's module, of which its API is another one."""
    work = cache_root() / "build" / VERSION / "clusterapi_machinesets"
    if not work.exists():
        shutil.copytree(module_source(CLUSTER_API, VERSION), work)
        shutil.copytree(module_source(f"{CLUSTER_API}/api", VERSION), work / "api")
        subprocess.run(["chmod", "-R", "u+w", str(work)], check=True)
    for name, place in FILES.items():
        (work / place).parent.mkdir(exist_ok=True)
        shutil.copyfile(HERE / "clusterapi_machinesets" / name, work / place)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": f"-mod=mod {os.environ.get('GOFLAGS', '')}".strip()}
    subprocess.run(["go", "build", "-p", "1", "-o", "oracle", "./cmd/slipway-oracle"], cwd=work, env=environment, check=True)
    return work / "oracle"


def at(value: Any, now: datetime) -> Any:
    """The value with times for what stands for them."""
    if isinstance(value, dict):
        return {key: at(each, now) for key, each in value.items()}
    if isinstance(value, list):
        return [at(each, now) for each in value]
    match = TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    return (now - timedelta(seconds=int(match[1] or 0))).strftime("%Y-%m-%dT%H:%M:%SZ")


def without_times(value: Any) -> Any:
    """An answer without when things changed, which is when it was recorded."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key != "lastTransitionTime"}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def stable(subject: str, question: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what differs from one recording to the next: times, and the random ends of names."""
    text = MOMENT.sub("a time", json.dumps(without_times(answer)))
    new = {"desired-machine": "machine", "desired-machineset": "machineSet"}.get(subject)
    if new is not None and question[new] is None and "answer" in answer:
        text = text.replace(answer["answer"]["metadata"]["name"][-5:], "abcde")
    found: dict[str, Any] = json.loads(text)
    return found


def main() -> None:
    sys.path.insert(0, str(HERE.parent))
    from oracles.clusterapi_machinesets_cases import CASES

    program = Path(os.environ["ORACLE"]) if "ORACLE" in os.environ else oracle()
    asked: list[dict[str, Any]] = [{"subject": subject, "question": question} for subject, rows in CASES.items() for question in rows]
    now = datetime.now(UTC)
    done = subprocess.run([str(program)], input=json.dumps(at(asked, now)), capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for subject in CASES:
        rows = [
            {"question": case["question"], **stable(subject, case["question"], answer)}
            for case, answer in zip(asked, answers, strict=True)
            if case["subject"] == subject
        ]
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        (GOLDEN / f"{subject}.json").write_text(f"[\n{lines}\n]\n")
        print(f"{subject}: {len(rows)}")


if __name__ == "__main__":
    main()
