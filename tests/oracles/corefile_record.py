"""Records what coredns/corefile-migration makes of Corefiles, in the version that each kubeadm was built with; needs Go.

Every Corefile of tests/golden/corefiles/corefiles.cases.yaml is moved from each of its CoreDNS versions to that of the release.
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

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import KUBERNETES, module_source

RELEASES = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
LIBRARY = "github.com/coredns/corefile-migration"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/corefiles"


def oracle(version: str) -> Path:
    """The oracle program, with the library of one Kubernetes release."""
    requirements = (module_source(KUBERNETES, version) / "go.mod").read_text()
    library = re.search(rf"{LIBRARY} (\S+)", requirements)
    caddy = re.search(r"github\.com/coredns/caddy \S+", requirements)
    if library is None or caddy is None:
        raise SystemExit(f"the go.mod of Kubernetes {version} names no {LIBRARY}")
    work = cache_root() / "build" / version / "corefile"
    work.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(HERE / "corefile/main.go", work / "main.go")
    (work / "go.mod").write_text(f"module oracle\n\ngo 1.23\n\nrequire (\n\t{LIBRARY} {library[1]}\n\t{caddy[0]}\n)\n")
    shutil.copyfile(module_source(KUBERNETES, version) / "go.sum", work / "go.sum")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    subprocess.run(["go", "build", "-mod=mod", "-o", "corefile", "."], cwd=work, env=environment, check=True)
    return work / "corefile"


def ask(program: Path, questions: list[dict[str, str]]) -> list[Any]:
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    cases = yaml.safe_load((GOLDEN / "corefiles.cases.yaml").read_text())
    recorded: dict[str, list[Any]] = {}
    for version in RELEASES:
        target = release_for(Version.parse(version)).coredns_version.removeprefix("v")
        asked = [{"name": case["name"], "From": start, "To": target, "Text": case["text"]} for case in cases for start in case["from"]]
        answers = ask(oracle(version), [{key: value for key, value in row.items() if key != "name"} for row in asked])
        recorded[version] = [
            {"name": question["name"], "from": question["From"], **answer} for question, answer in zip(asked, answers, strict=True)
        ]
    (GOLDEN / "corefiles.json").write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
