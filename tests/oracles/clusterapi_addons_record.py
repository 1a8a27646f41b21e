"""Records what Cluster API makes of ClusterResourceSets: contents, hashes, when they are applied, and its webhooks' verdicts; needs Go.

``python tests/oracles/clusterapi_addons_record.py`` builds tests/oracles/clusterapi_addons inside a copy of the module, as most of it is
not exported, and asks it about tests/golden/clusterapi/addons/cases.yaml.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import CLUSTER_API, module_source

VERSION = "v1.14.2"
HERE = Path(__file__).parent
FILES = {"shim.go": "core/reconcilers/clusterresourceset/shim.go", "main.go": "cmd/slipway-oracle/main.go"}
GOLDEN = HERE.parent / "golden/clusterapi/addons"


def oracle() -> Path:
    """The oracle program, built inside a copy of the module."""
    work = cache_root() / "build" / VERSION / "clusterapi_addons"
    if not work.exists():
        shutil.copytree(module_source(CLUSTER_API, VERSION), work)
        # Its API is a module of its own, which is wanted beside it.
        shutil.copytree(module_source(f"{CLUSTER_API}/api", VERSION), work / "api")
        subprocess.run(["chmod", "-R", "u+w", str(work)], check=True)
    for name, place in FILES.items():
        (work / place).parent.mkdir(exist_ok=True)
        shutil.copyfile(HERE / "clusterapi_addons" / name, work / place)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    subprocess.run(["go", "build", "-p", "1", "-o", "oracle", "./cmd/slipway-oracle"], cwd=work, env=environment, check=True)
    return work / "oracle"


def ask(program: Path, questions: list[Any]) -> list[Any]:
    done = subprocess.run([str(program)], input=json.dumps(questions), capture_output=True, text=True, check=True)
    answers: list[Any] = json.loads(done.stdout)
    return answers


if __name__ == "__main__":
    cases = yaml.safe_load((GOLDEN / "cases.yaml").read_text())
    answers = ask(oracle(), [{key: value for key, value in case.items() if key != "name"} for case in cases])
    lines = ",\n".join(json.dumps({**case, "answer": answer}, ensure_ascii=False) for case, answer in zip(cases, answers, strict=True))
    (GOLDEN / "rows.json").write_text(f"[\n{lines}\n]\n")
