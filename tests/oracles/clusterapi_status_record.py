"""Records what Cluster API's own code says of conditions, of the status of Clusters and of the health of Machines; needs Go.

``python tests/oracles/clusterapi_status_record.py`` builds tests/oracles/clusterapi_status inside a copy of the module, since half of what
it asks is not exported, asks it about the cases in tests/golden/clusterapi/*/*.cases.yaml, and writes each with its answer beside it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import CLUSTER_API, module_source

VERSION = "v1.14.2"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/clusterapi"
SUBJECTS = {
    "conditions": ("mirror", "aggregate", "summary"),
    "cluster": ("status", "descendants", "phases"),
    "healthcheck": ("target", "allowed"),
}
# The times of the cases.
GIVEN = ("2026-01-01", "2026-01-02")
PLACES = {
    "main.go": "statusoracle/main.go",
    "conditions.go": "statusoracle/conditions.go",
    "cluster.go": "core/reconcilers/cluster/zz_oracle.go",
    "phases.go": "core/reconcilers/cluster/zz_oracle_phases.go",
    "healthcheck.go": "core/reconcilers/machinehealthcheck/zz_oracle.go",
}


def oracle() -> Path:
    """The oracle program, built inside a copy of Cluster API's module, beside which its api module is wanted."""
    work = Path(os.environ.get("CLUSTERAPI_COPY") or cache_root() / "build" / VERSION / "clusterapi_status")
    if not work.exists():
        # The module cache is read-only, folders too.
        for module, folder in ((CLUSTER_API, work), (f"{CLUSTER_API}/api", work / "api")):
            shutil.copytree(module_source(module, VERSION), folder)
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    for name, place in PLACES.items():
        (work / place).parent.mkdir(exist_ok=True)
        shutil.copyfile(HERE / "clusterapi_status" / name, work / place)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    subprocess.run(["go", "build", "-p", "1", "-o", "statusoracle/oracle", "./statusoracle"], cwd=work, env=environment, check=True)
    return work / "statusoracle/oracle"


def ask(program: Path, subject: str, questions: list[Any]) -> list[Any]:
    done = subprocess.run([str(program), subject], input=json.dumps(questions), capture_output=True, text=True, check=True)
    answers: list[Any] = json.loads(done.stdout)
    return answers


def lasting(answer: Any) -> Any:
    """An answer without what differs in the next run: the times of the run itself."""
    if isinstance(answer, list):
        return [lasting(each) for each in answer]
    if isinstance(answer, str):
        return re.sub(r"(last succeeded at) \S+", r"\1 T", answer)
    if not isinstance(answer, dict):
        return answer
    kept = {key: value for key, value in answer.items() if key != "lastTransitionTime" or str(value).startswith(GIVEN)}
    return {key: lasting(value) for key, value in kept.items()}


def record(program: Path, folder: str, subject: str) -> None:
    cases = yaml.safe_load((GOLDEN / folder / f"{subject}.cases.yaml").read_text())
    rows = [{"case": case, **lasting(answer)} for case, answer in zip(cases, ask(program, subject, cases), strict=True)]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (GOLDEN / folder / f"{subject}.json").write_text(f"[\n{lines}\n]\n")


def main() -> None:
    program = oracle()
    for folder, subjects in SUBJECTS.items():
        for subject in subjects:
            record(program, folder, subject)


if __name__ == "__main__":
    main()
