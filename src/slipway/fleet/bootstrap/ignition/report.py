"""What is to be said about a Container Linux Config or an Ignition config: entries with a kind and a place, in Ignition's words.

``validate`` walks a value and the document that it came from side by side, and asks the checks of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.fleet.bootstrap.ignition.clc.gostructs import Struct, element, is_pointer, is_slice

if TYPE_CHECKING:
    from slipway.fleet.bootstrap.ignition.clc.yaml import Tree

ERROR, WARNING, INFO, DEPRECATED = "error", "warning", "info", "deprecated"
_LISTED = 200


class Entry(NamedTuple):
    kind: str
    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if self.line:
            return f"{self.kind} at line {self.line}, column {self.column}\n{self.message}"
        return f"{self.kind}: {self.message}"


Report = list[Entry]
Check = Callable[[Any], Report]
# By the name of a type, and of one of its fields or nothing.
Checks = Mapping[tuple[str, str], Check]


def error(message: str) -> Report:
    return [Entry(ERROR, message)]


def warning(message: str) -> Report:
    return [Entry(WARNING, message)]


def is_fatal(report: Report) -> bool:
    return any(entry.kind == ERROR for entry in report)


def text(report: Report) -> str:
    """The entries, one below the other; of very many the first ones, errors before all others."""
    if len(report) <= _LISTED:
        return "\n".join(map(str, report))
    first = sorted(report, key=lambda entry: entry.kind != ERROR)[:_LISTED]
    return "\n".join([*map(str, first), f"and {len(report) - _LISTED} more"])


def placed(report: Report, node: Tree | None) -> Report:
    """The entries, those that have no place yet at that of ``node``."""
    if node is None:
        return report
    return [entry if entry.line else entry._replace(line=node.line, column=node.column) for entry in report]


class Walk:
    """Checks values of one family of types against documents whose keys are written as ``key_name`` gives them.

    With ``unused`` keys that no field has are reported too.
    """

    def __init__(self, checks: Checks, key_name: Callable[[str], str] = str, *, unused: bool = False) -> None:
        self._checks, self._key_name, self._unused = checks, key_name, unused

    def validate(self, value: Any, type_: str, table: Mapping[str, Struct], node: Tree | None) -> Report:
        """The report on a value of a type; ``node`` is its place in the document, if it has one."""
        if is_pointer(type_):
            return [] if value is None else self.validate(value, type_[1:], table, node)
        if is_slice(type_):
            items = (node.items or []) if node is not None else []
            report: Report = []
            for index, item in enumerate(value or ()):
                child = items[index] if index < len(items) else node
                report += placed(self.validate(item, element(type_), table, child), node)
            return report
        if type_ not in table:
            return []
        check = self._checks.get((type_, ""))
        found = placed(check(value), node) if check is not None else []
        # An invalid whole makes its parts look worse than they are.
        return found if is_fatal(found) else found + placed(self._struct(value, table[type_], table, node), node)

    def _struct(self, value: dict[str, Any], struct: Struct, table: Mapping[str, Struct], node: Tree | None) -> Report:
        keys = {self._key_name(key.text): (key, child) for key, child in node.pairs} if node is not None and node.pairs is not None else {}
        report: Report = []
        for field in struct.fields:
            if field.embedded:
                report += placed(self._struct(value[field.key], table[field.type], table, None), node)
                continue
            _, child = keys.get(field.key, (None, None))
            check = self._checks.get((struct.name, field.name))
            place = node
            if check is not None:
                place = child or node
                report += placed(check(value), place)
            report += placed(self.validate(value[field.key], field.type, table, child), place)
        if self._unused:
            for name, (key, _) in keys.items():
                if name not in struct.by_key:
                    report += _unrecognized(name, key, struct)
        return report


def _unrecognized(name: str, key: Tree, struct: Struct) -> Report:
    report = [Entry(WARNING, f"Config has unrecognized key: {name}", key.line, key.column)]
    similar = next((field.key for field in struct.fields if field.key.casefold() == name.casefold()), "")
    if similar:
        report.append(Entry(INFO, f"Did you mean {similar} instead of {name}", key.line, key.column))
    return report
