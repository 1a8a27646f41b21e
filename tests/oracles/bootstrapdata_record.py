"""Records what Cluster API makes of KubeadmConfigs: bootstrap data in both formats, and kubeadm's configuration; needs Go.

``python tests/oracles/bootstrapdata_record.py`` builds tests/oracles/bootstrapdata and answers every case of
tests/golden/bootstrapdata/*.cases.yaml into tests/golden/bootstrapdata/<version>: a case has its data in a file of its own,
and a file that says what went wrong or what was odd, where something was.
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
GOLDEN = HERE.parent / "golden/bootstrapdata"


def oracle() -> Path:
    """The oracle program, linked with Cluster API's packages."""
    work = cache_root() / "build" / VERSION / "bootstrapdata"
    work.mkdir(parents=True, exist_ok=True)
    for name in ("main.go", "go.mod"):
        shutil.copyfile(HERE / "bootstrapdata" / name, work / name)
    shutil.copyfile(module_source(CLUSTER_API, VERSION) / "go.sum", work / "go.sum")
    flags = f"-mod=mod {os.environ.get('GOFLAGS', '')}".strip()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": flags}
    subprocess.run(["go", "build", "-o", "bootstrapdata", "."], cwd=work, env=environment, check=True)
    return work / "bootstrapdata"


def cases() -> list[dict[str, Any]]:
    return [case for file in sorted(GOLDEN.glob("*.cases.yaml")) for case in yaml.safe_load(file.read_text())["cases"]]


def main() -> None:
    asked = cases()
    done = subprocess.run([str(oracle())], input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True)
    target = GOLDEN / VERSION
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for answer in json.loads(done.stdout):
        for kind in ("value", "warnings", "error"):
            if kind in answer:
                (target / f"{answer['name']}.{kind}").write_text(answer[kind])
        if "certificates" in answer:
            (target / f"{answer['name']}.certificates").write_text(json.dumps(answer["certificates"], indent=1) + "\n")


if __name__ == "__main__":
    main()
