"""Records what Go makes of foreign types: the packaged tables, round trips of documents, and applied patches.

``python tests/oracles/gotypes_record.py`` needs Go; it builds tests/oracles/gotypes once a release and rewrites
src/slipway/api/machinery/tables/*.json and tests/golden/{types,patches}/*.json.
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
from slipway.lab.programs.gobuild import KUBERNETES, module_source, wrapper_go_mod

RELEASES = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TABLES = ROOT / "src/slipway/api/machinery/tables"
GOLDEN = ROOT / "tests/golden"


def oracle(version: str) -> Path:
    """The oracle program, linked with the libraries of one Kubernetes release."""
    work = cache_root() / "build" / version / "gotypes"
    work.mkdir(parents=True, exist_ok=True)
    upstream = module_source(KUBERNETES, version)
    for source in (HERE / "gotypes").glob("*.go"):
        shutil.copyfile(source, work / source.name)
    (work / "go.mod").write_text(wrapper_go_mod((upstream / "go.mod").read_text(), version))
    shutil.copyfile(upstream / "go.sum", work / "go.sum")
    # Keeps Kubernetes itself required, whose go.mod selects the versions of everything else.
    (work / "pin.go").write_text(f'//go:build pin\n\npackage main\n\nimport _ "{KUBERNETES}/cmd/kubeadm"\n')
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    subprocess.run(["go", "mod", "tidy", "-e"], cwd=work, env=environment, check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["go", "build", "-mod=mod", "-o", "gotypes", "."], cwd=work, env=environment, check=True)
    return work / "gotypes"


def ask(program: Path, command: str, question: object = None) -> Any:
    done = subprocess.run([str(program), command], input=json.dumps(question), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def merged(by_minor: dict[int, dict[str, dict[str, str]]]) -> dict[str, dict[str, str | list[str]]]:
    """One table for all releases: a field that not every release has, or not in the same form, says which ones it is of."""
    result: dict[str, dict[str, str | list[str]]] = {}
    for name in sorted({name for table in by_minor.values() for name in table}):
        having = {minor: table[name] for minor, table in by_minor.items() if name in table}
        fields: dict[str, str | list[str]] = {}
        for field in sorted({field for table in having.values() for field in table}):
            spans: list[list[Any]] = []
            for minor in sorted(having):
                words = having[minor].get(field)
                if words is None:
                    continue
                if spans and spans[-1][0] == words and spans[-1][2] == minor - 1:
                    spans[-1][2] = minor
                else:
                    spans.append([words, minor, minor])
            # A type that came or went with its only user needs no marks on its fields.
            first, last = min(having), max(having)
            texts = [
                words + (f"; since={since}" if since != first else "") + (f"; until={until}" if until != last else "")
                for words, since, until in spans
            ]
            fields[field] = texts[0] if len(texts) == 1 else texts
        result[name] = fields
    return result


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")
    print(path.relative_to(ROOT))


def record_tables(programs: dict[str, Path]) -> None:
    answers = {int(version.split(".")[1]): ask(program, "types") for version, program in programs.items()}
    for family in next(iter(answers.values())):
        write_json(TABLES / f"{family}.json", merged({minor: answer[family] for minor, answer in answers.items()}))


def record_cases(programs: dict[str, Path], command: str, folder: str, *names: str) -> None:
    """Each cases file (YAML, by hand) gets a JSON file with the outcome for every release; equal outcomes are kept once."""
    for name in names:
        cases = yaml.safe_load((GOLDEN / folder / f"{name}.cases.yaml").read_text())
        # Patches are in a file for each type.
        question = [{"type": name, **case} for case in cases]
        answers = {version: ask(program, command, question) for version, program in programs.items()}
        recorded = []
        for index, case in enumerate(cases):
            outcomes = {version: answer[index] for version, answer in answers.items()}
            first = outcomes[RELEASES[0]]
            same = all(outcome == first for outcome in outcomes.values())
            recorded.append({**case, "outcome": {"all": first} if same else outcomes})
        write_json(GOLDEN / folder / f"{name}.json", recorded)


def main() -> None:
    programs = {version: oracle(version) for version in RELEASES}
    record_tables(programs)
    record_cases(programs, "roundtrip", "types", "documents")
    record_cases(programs, "patch", "patches", "json", "merge", "strategic")


if __name__ == "__main__":
    main()
