"""Objects that the real kubeadm made in a dry run, taken from the recorded output of the golden cases."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

GOLDEN = Path(__file__).parents[1] / "golden"


@cache
def objects(version: str, case: str = "init-default") -> dict[tuple[str, str], dict[str, Any]]:
    """What was created, by kind and name."""
    text = (GOLDEN / version / case / "stdout.txt").read_text()
    made = {}
    for block in text.split("[dryrun] Would perform action ")[1:]:
        if block.startswith("CREATE"):
            manifest = yaml.load(block.split("[dryrun] Attached object:\n", 1)[1].split("\n\n", 1)[0], yaml.BaseLoader)
            made[manifest["kind"], manifest["metadata"]["name"]] = manifest
    return made


def as_text(value: Any) -> Any:
    """A manifest with every scalar as the text that YAML has for it, so that it can be compared with a recorded one."""
    if isinstance(value, dict):
        return {name: as_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
