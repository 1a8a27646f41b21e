"""Records what the API server's own code makes of CEL validation rules: refusals of definitions, verdicts on objects, costs; needs Go.

``python tests/oracles/cel_record.py`` builds tests/oracles/cel and asks it about the cases of tests/golden/cel: single expressions on one
object (expressions.cases.yaml), and schemas with rules on objects, created and updated (rules.cases.yaml).
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
from slipway.lab.programs.gobuild import KUBERNETES, module_source, wrapper_go_mod

VERSION = "v1.35.4"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/cel"
_TYPE_NAME = re.compile(r"selfType\d+")


def oracle(version: str) -> Path:
    """The oracle program, linked with the libraries of one Kubernetes release."""
    work = cache_root() / "build" / version / "cel"
    work.mkdir(parents=True, exist_ok=True)
    upstream = module_source(KUBERNETES, version)
    shutil.copyfile(HERE / "cel/main.go", work / "main.go")
    (work / "go.mod").write_text(wrapper_go_mod((upstream / "go.mod").read_text(), version))
    shutil.copyfile(upstream / "go.sum", work / "go.sum")
    # Keeps Kubernetes itself required, whose go.mod selects the versions of everything else.
    (work / "pin.go").write_text(f'//go:build pin\n\npackage main\n\nimport _ "{KUBERNETES}/cmd/kubeadm"\n')
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    subprocess.run(["go", "mod", "tidy", "-e"], cwd=work, env=environment, check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["go", "build", "-p", "1", "-mod=mod", "-o", "cel", "."], cwd=work, env=environment, check=True)
    return work / "cel"


def ask(program: Path, questions: list[dict[str, Any]]) -> Any:
    asked = [{"objects": [], "olds": [], **question} for question in questions]
    done = subprocess.run([str(program)], input=json.dumps(asked), capture_output=True, text=True, check=True)
    # The real server names the type of self anew each time, so that nobody relies on it.
    return json.loads(_TYPE_NAME.sub("selfType", done.stdout))


def expression_schema(fields: dict[str, Any], rule: str) -> dict[str, Any]:
    """A definition's schema with one rule on its spec."""
    spec = {"type": "object", "properties": fields, "x-kubernetes-validations": [{"rule": rule}]}
    return {"type": "object", "properties": {"spec": spec}}


def expression_object(spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": spec}


def record_expressions(program: Path) -> None:
    cases = yaml.safe_load((GOLDEN / "expressions.cases.yaml").read_text())
    thing = expression_object(cases["object"])
    questions = [{"schema": expression_schema(cases["fields"], rule), "objects": [thing]} for rule in cases["rules"]]
    rows = [{"rule": rule, **answer} for rule, answer in zip(cases["rules"], ask(program, questions), strict=True)]
    _write("expressions", rows)


def record_rules(program: Path) -> None:
    cases = yaml.safe_load((GOLDEN / "rules.cases.yaml").read_text())
    questions = [{key: case[key] for key in ("schema", "objects", "olds")} for case in cases]
    rows = [{"name": case["name"], **answer} for case, answer in zip(cases, ask(program, questions), strict=True)]
    _write("rules", rows)


def _write(name: str, rows: list[dict[str, Any]]) -> None:
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (GOLDEN / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    built = oracle(VERSION)
    record_expressions(built)
    record_rules(built)
