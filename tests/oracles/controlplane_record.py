"""Records what Cluster API's controller of control planes decides, wants and tells; needs Go.

``python tests/oracles/controlplane_record.py`` copies the module, puts tests/oracles/clusterapi_controlplane inside (the code that decides
is not exported), builds it, asks about the cases and writes the answers to tests/golden/clusterapi/controlplane.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from oracles import controlplane_cases as cases  # noqa: E402
from oracles import controlplane_objects as objects  # noqa: E402

from slipway.lab.programs.cache import cache_root  # noqa: E402
from slipway.lab.programs.gobuild import CLUSTER_API, module_source  # noqa: E402

VERSION = "v1.14.2"
GOLDEN = HERE.parent / "golden/clusterapi/controlplane"
KUBEADM = "controlplane/kubeadm"
PLACES = {
    "planner.go": f"{KUBEADM}/reconcilers/kubeadmcontrolplane/oracle_planner.go",
    "drift.go": f"{KUBEADM}/pkg/oracle_drift.go",
    "main.go": f"{KUBEADM}/oracle/main.go",
}


def oracle() -> Path:
    """The program, built inside a copy of the module; its API is a module of its own, which the copy wants beside it."""
    work = cache_root() / "build" / VERSION / "clusterapi_controlplane"
    if not work.exists():
        shutil.copytree(module_source(CLUSTER_API, VERSION), work)
        shutil.copytree(module_source(f"{CLUSTER_API}/api", VERSION), work / "api")
        for folder, _, files in os.walk(work):
            for name in (".", *files):
                Path(folder, name).chmod(0o755)
    for name, place in PLACES.items():
        (work / place).parent.mkdir(exist_ok=True)
        shutil.copyfile(HERE / "clusterapi_controlplane" / name, work / place)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": f"-mod=mod {os.environ.get('GOFLAGS', '')}".strip()}
    subprocess.run(["go", "build", "-p", "1", "-o", "oracle", f"./{KUBEADM}/oracle"], cwd=work, env=environment, check=True)
    return work / "oracle"


def record(program: Path, command: str, asked: dict[str, Any]) -> None:
    done = subprocess.run([str(program), command], input=json.dumps(list(asked.values())), stdout=subprocess.PIPE, text=True, check=True)
    answers = json.loads(done.stdout)
    rows = [{"name": name, "case": case, "answer": answer} for (name, case), answer in zip(asked.items(), answers, strict=True)]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    (GOLDEN / f"{command}.json").write_text(f"[\n{lines}\n]\n")


def main() -> None:
    program = Path(os.environ["ORACLE"]) if "ORACLE" in os.environ else oracle()
    record(program, "steps", {**cases.written(), **cases.drawn(120, seed=12)})
    record(program, "status", objects.statuses())
    record(program, "drift", objects.drifts())
    record(program, "desired", objects.desired())
    record(program, "kubeconfig", objects.kubeconfigs())


if __name__ == "__main__":
    main()
