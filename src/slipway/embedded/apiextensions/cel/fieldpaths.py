"""``fieldPath`` of a rule: a path of names below the rule's node, ``.spec.name`` or ``['with.dots']``."""

from __future__ import annotations

import re
from typing import Any

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


def normalised(path: str, schema: dict[str, Any]) -> str | None:
    """The path as errors print it; None where it leads nowhere."""
    made, at = "", 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        name = found[1] if found[1] is not None else re.sub(r"\\(.)", r"\1", found[2])
        properties, additional = schema.get("properties"), schema.get("additionalProperties")
        if properties and name in properties:
            made, schema = f"{made}.{name}" if made else name, properties[name]
        elif not properties and isinstance(additional, dict):
            made, schema = f"{made}[{name}]", additional
        else:
            return None
        at = found.end()
    return made
