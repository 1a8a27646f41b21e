"""The JSONPath of printer columns: ``.spec.version``, ``.status.conditions[?(@.type=="Ready")].status``, ``.items[*].name``.

A missing key gives nothing.  What a path finds is shown as kubectl's JSONPath shows it: text as it is, the rest as JSON.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any, NamedTuple

_STEP = re.compile(
    r"""\.\.(?P<deep>[^.\[\]]+)
      | \.(?P<name>(?:[^.\[\]\\]|\\.)+)
      | \[\s*(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)")\s*\]
      | \[\?\(\s*@(?P<path>[^=!<>]*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<operand>"[^"]*"|'[^']*'|[^)\s]+)\s*)?\)\]
      | \[(?P<star>\*)\]
      | \[(?P<start>-?\d+)?(?P<colon>:)?(?P<stop>-?\d+)?\]
      | (?P<root>\$)
    """,
    re.VERBOSE,
)


class Step(NamedTuple):
    """One step of a path: a field, a position or range, everything, or the elements for which a comparison holds."""

    kind: str
    name: str = ""
    start: int | None = None
    stop: int | None = None
    path: tuple[Step, ...] = ()
    operator: str = ""
    operand: Any = None


def find(path: str, value: Any) -> list[Any]:
    """Everything at the path, in order; nothing for a path that cannot be read."""
    steps = _parsed(path)
    return [] if steps is None else _walk([value], steps)


def is_readable(path: str) -> bool:
    return _parsed(path) is not None


def text(value: Any) -> str:
    """A found value as text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@functools.lru_cache(maxsize=1024)
def _parsed(path: str) -> tuple[Step, ...] | None:
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None or match.end() == position:
            return None
        position = match.end()
        step = _step(match)
        if step is None:
            return None
        if step.kind != "root":
            steps.append(step)
    return tuple(steps)


def _step(match: re.Match[str]) -> Step | None:
    if match["root"]:
        return Step("root")
    if match["deep"]:
        return Step("deep", match["deep"])
    for name in (match["name"], match["single"], match["double"]):
        if name is not None:
            return Step("all") if name == "*" else Step("field", re.sub(r"\\(.)", r"\1", name))
    if match["star"]:
        return Step("all")
    if match["path"] is not None:
        inner = _parsed(match["path"])
        if inner is None:
            return None
        return Step("filter", path=inner, operator=match["operator"] or "", operand=_operand(match["operand"]))
    start = int(match["start"]) if match["start"] else None
    if match["colon"]:
        return Step("range", start=start, stop=int(match["stop"]) if match["stop"] else None)
    return None if start is None else Step("index", start=start)


def _operand(text_: str | None) -> Any:
    if text_ is None:
        return None
    if text_[0] in "'\"":
        return text_[1:-1]
    try:
        return json.loads(text_)
    except ValueError:
        return text_


def _walk(values: list[Any], steps: tuple[Step, ...]) -> list[Any]:
    for step in steps:
        values = [found for value in values for found in _follow(value, step)]
    return values


def _follow(value: Any, step: Step) -> list[Any]:
    if step.kind == "field":
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    if step.kind == "deep":
        below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        own = [value[step.name]] if isinstance(value, dict) and step.name in value else []
        return own + [found for item in below for found in _follow(item, step)]
    if step.kind == "all":
        return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    if not isinstance(value, list):
        return []
    if step.kind == "range":
        return value[step.start : step.stop]
    if step.kind == "index":
        position = step.start or 0
        return [value[position]] if -len(value) <= position < len(value) else []
    return [item for item in value if _holds(item, step)]


def _holds(item: Any, step: Step) -> bool:
    found = _walk([item], step.path)
    if not step.operator:
        return bool(found)
    if not found or type(found[0]) is not type(step.operand):
        return False
    left, right = found[0], step.operand
    if step.operator in ("==", "!="):
        return bool((left == right) is (step.operator == "=="))
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[step.operator])
