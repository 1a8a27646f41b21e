"""Records what Cluster API's own webhooks answer; needs Go.

``python tests/oracles/clusterapi_webhooks_record.py`` builds tests/oracles/clusterapi_webhooks, asks it about the cases of
tests/golden/clusterapi/webhooks/cases.yaml, and writes the answers to rows.json beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from slipway.api.machinery.patches.jsonpatch import merge
from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import CLUSTER_API, module_source

VERSION = "v1.14.2"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/clusterapi/webhooks"


def oracle() -> Path:
    """The oracle program, linked with Cluster API's packages."""
    work = cache_root() / "build" / VERSION / "clusterapi_webhooks"
    work.mkdir(parents=True, exist_ok=True)
    for name in ("main.go", "go.mod"):
        shutil.copyfile(HERE / "clusterapi_webhooks" / name, work / name)
    shutil.copyfile(module_source(CLUSTER_API, VERSION) / "go.sum", work / "go.sum")
    flags = f"-mod=mod {os.environ.get('GOFLAGS', '')}".strip()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": flags}
    subprocess.run(["go", "build", "-o", "webhooks", "."], cwd=work, env=environment, check=True)
    return work / "webhooks"


def questions() -> list[dict[str, Any]]:
    """The cases with their objects whole."""
    content = yaml.safe_load((GOLDEN / "cases.yaml").read_text())
    out = []
    for case in content["cases"]:
        base = content["bases"][case["kind"]]
        row = {key: case[key] for key in ("name", "kind", "subresource", "replicas") if key in case}
        row["object"] = merge(deepcopy(base), case.get("patch", {}))
        if "old" in case:
            row["old"] = merge(deepcopy(base), case["old"])
        out.append(row)
    return out


def record(program: Path) -> None:
    asked = questions()
    done = subprocess.run([str(program)], input=json.dumps(asked), capture_output=True, text=True, check=True)
    rows = [{**question, "answer": answer} for question, answer in zip(asked, json.loads(done.stdout), strict=True)]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (GOLDEN / "rows.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    record(oracle())
