"""Records what Cluster API's own Machine controller says of cases; needs Go.

``python tests/oracles/clusterapi_machine_record.py`` copies the module, puts the two files of tests/oracles/clusterapi_machine into the
packages whose functions are not exported, builds, asks, and writes tests/golden/clusterapi/machine: each case with its answer.

The cases are those of tests/cases/machines.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases.machines import deletion, drain, node, providers, status

from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import CLUSTER_API, module_source

VERSION = "v1.14.2"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/clusterapi/machine"

SUBJECTS = {
    "status": status.status_cases,
    "node": node.node_cases,
    "allowed": deletion.allowed_cases,
    "deletion": deletion.deletion_cases,
    "external": providers.external_cases,
    "volumes": deletion.volume_cases,
    "drain": drain.drain_cases,
}


def oracle() -> Path:
    """The oracle, built inside a copy of the module: its functions are not exported."""
    work = cache_root() / "build" / VERSION / "clusterapi_machine"
    shutil.copytree(module_source(CLUSTER_API, VERSION), work, dirs_exist_ok=True)
    shutil.copytree(module_source(f"{CLUSTER_API}/api", VERSION), work / "api", dirs_exist_ok=True)
    subprocess.run(["chmod", "-R", "u+w", str(work)], check=True)
    machine = work / "core/reconcilers/machine"
    for name, target in (("shim_machine.go", machine), ("shim_drain.go", machine / "drain"), ("main.go", work / "zz_oracle")):
        target.mkdir(exist_ok=True)
        shutil.copyfile(HERE / "clusterapi_machine" / name, target / ("main.go" if name == "main.go" else "zz_oracle.go"))
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": f"-mod=mod {os.environ.get('GOFLAGS', '')}".strip()}
    subprocess.run(["go", "build", "-o", "oracle", "./zz_oracle"], cwd=work, env=environment, check=True)
    return work / "oracle"


def main() -> None:
    program = oracle()
    for subject, cases in SUBJECTS.items():
        rows = list(cases())
        names = [name for name, _ in rows]
        assert len(set(names)) == len(names), f"two cases of {subject} have one name"
        asked = [{"name": name, "subject": subject, "case": case} for name, case in rows]
        done = subprocess.run([str(program)], input=json.dumps(asked), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{subject}: {done.stderr[:2000]}")
        answers = json.loads(done.stdout)
        lines = [json.dumps({"name": name, "case": case, "answer": answer}) for (name, case), answer in zip(rows, answers, strict=True)]
        (GOLDEN / f"{subject}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
        print(f"{subject}: {len(lines)} rows")


if __name__ == "__main__":
    main()
