"""Records what Go's text/template makes of templates; needs Go.

The templates are in tests/golden/gotemplate/templates.cases.yaml, by subject: ``lines`` holds one a line, ``texts`` longer ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/gotemplate"


def questions() -> list[dict[str, Any]]:
    asked = []
    for group in yaml.safe_load((GOLDEN / "templates.cases.yaml").read_text()):
        for text in [*group.get("lines", "").split("\n")[:-1], *group.get("texts", [])]:
            common = {"Name": group.get("name", "x"), "Data": group.get("data"), "MissingKey": group.get("missing_key", "default")}
            asked.append({"group": group["group"], "Text": text, **common})
    return asked


def answers(asked: list[dict[str, Any]]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "oracle"
        environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
        subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "gotemplate", env=environment, check=True)
        lines = "".join(json.dumps({key: value for key, value in row.items() if key != "group"}) + "\n" for row in asked)
        done = subprocess.run([str(program)], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.removesuffix("\n").split("\n")]


def main() -> None:
    asked = questions()
    recorded = [
        {"group": row["group"], "name": row["Name"], "text": row["Text"], "data": row["Data"], "missing_key": row["MissingKey"], **answer}
        for row, answer in zip(asked, answers(asked), strict=True)
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in recorded)
    (GOLDEN / "templates.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
