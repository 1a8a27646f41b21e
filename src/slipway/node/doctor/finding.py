"""What a doctor's check can find, as data: the kinds of findings with their texts, and one of them as it was found.

A text with ``{fields}`` is filled in where it is found, and is shown with their names in the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slipway.node.doctor.facts import Facts

Severity = Literal["error", "warning", "note"]
"""Something does not work; something will stop to work, or may; something is worth to be known, and nothing is wrong."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on this machine."""

    name: str
    severity: Severity
    finding: str
    evidence: str
    fix: tuple[str, ...]
    """Commands, or what to do where no command does it, one after the other."""


class Kind(NamedTuple):
    """What can be found."""

    name: str
    severity: Severity
    means: str
    fix: tuple[str, ...] = ()

    def found(self, evidence: str = "", *, fix: tuple[str, ...] = (), **fields: object) -> Finding:
        """This kind with its fields; ``fix`` where more is known of it than the kind says."""
        return Finding(
            name=self.name,
            severity=self.severity,
            finding=self.means.format_map(fields),
            evidence=evidence,
            fix=fix or tuple(line.format_map(fields) for line in self.fix),
        )


class Check(NamedTuple):
    """One subject that is looked at; ``find`` is a pure function of the facts."""

    name: str
    what: str
    kinds: tuple[Kind, ...]
    find: Callable[[Facts], Iterator[Finding]]
