"""A report for a person and for a program, and the reference of all that can be found."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

from slipway.node.doctor.examination import CHECKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.examination import Report
    from slipway.node.doctor.finding import Finding, Severity

_PROSE, _LEAST_PROSE = 96, 64
"""Columns for what was found and its evidence: where there is no end of a line, and where a table is still one."""
_COLOURS: dict[Severity, str] = {"error": "31", "warning": "33", "note": "36"}
_SEVERITY = 9
_FIELD = re.compile(r"\{(\w+)\}")
_HEADINGS = ("SEVERITY", "FINDING", "EVIDENCE", "FIX")


def text(report: Report, *, width: int | None, colours: bool) -> str:
    """What was found, what could not be seen, and the verdict in a line.

    ``width`` is that of the terminal; where a table does not fit, each finding is a block of lines.
    """
    lines = []
    findings = [finding for _, finding in report.findings]
    if findings:
        fixes = max(len(line) for finding in findings for line in (*finding.fix, _HEADINGS[3]))
        prose = _PROSE if width is None else width - _SEVERITY - fixes - 4
        if width is None or prose >= _LEAST_PROSE:
            lines += list(_table(findings, prose, colours=colours))
        else:
            lines += list(_blocks(findings, width, colours=colours))
        lines.append("")
    if report.unseen:
        lines.append("Could not be looked at:")
        lines += [f"  {unseen.what}: {unseen.why}" for unseen in report.unseen]
        lines.append("")
    lines.append(verdict(report))
    return "\n".join(lines) + "\n"


def verdict(report: Report) -> str:
    what = {
        "control plane": f"The control plane {report.node}",
        "worker": f"The worker {report.node}",
        "none": "This machine, which is no node,",
    }
    subject = what[report.role]
    if report.is_well:
        return f"{subject} is well{', as far as it could be looked at' if report.unseen else ''}."
    return f"{subject} has {counts(report)}."


def counts(report: Report) -> str:
    """``2 errors and 1 warning``."""
    told = [f"{number} {severity}{'s' if number > 1 else ''}" for severity in ("error", "warning") if (number := report.count(severity))]
    return " and ".join(told)


def fields(report: Report, seconds: float) -> dict[str, Any]:
    """The same for a program."""
    return {
        "node": report.node,
        "role": report.role,
        "well": report.is_well,
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "findings": [
            {
                "name": finding.name,
                "check": check,
                "severity": finding.severity,
                "finding": finding.finding,
                "evidence": finding.evidence,
                "fix": list(finding.fix),
            }
            for check, finding in report.findings
        ],
        "unseen": [{"what": unseen.what, "why": unseen.why} for unseen in report.unseen],
        "checks": [{"name": check.name, "what": check.what} for check in CHECKS],
        "seconds": round(seconds, 3),
    }


def reference() -> str:
    """The table of all findings, for the documentation."""
    rows = ["| check | finding | severity | what it means | what to do |", "|---|---|---|---|---|"]
    for check in CHECKS:
        for kind in check.kinds:
            steps = "; ".join(_named(line) for line in kind.fix).replace("|", "\\|")
            rows.append(f"| {check.name} | `{kind.name}` | {kind.severity} | {_named(kind.means)} | {steps} |")
    return "\n".join(rows) + "\n"


def _named(template: str) -> str:
    """A template with the names of its fields in place of their values; those that only add a clause are left out."""
    return _FIELD.sub(lambda field: "" if field[1] == "cause" and not template.endswith(": {cause}") else field[1].upper(), template)


def _table(findings: list[Finding], prose: int, *, colours: bool) -> Iterator[str]:
    """Commands are not broken into lines: they are there to be copied."""
    first = prose * 5 // 11
    second = prose - first
    yield f"{_HEADINGS[0]:<{_SEVERITY}}{_HEADINGS[1]:<{first + 2}}{_HEADINGS[2]:<{second + 2}}{_HEADINGS[3]}"
    for finding in findings:
        columns = (textwrap.wrap(finding.finding, first), textwrap.wrap(finding.evidence, second), list(finding.fix))
        for number in range(max(1, *map(len, columns))):
            cells = [column[number] if number < len(column) else "" for column in columns]
            head = _painted(finding.severity, _SEVERITY, colours=colours) if number == 0 else " " * _SEVERITY
            yield f"{head}{cells[0]:<{first + 2}}{cells[1]:<{second + 2}}{cells[2]}".rstrip()


def _blocks(findings: list[Finding], width: int, *, colours: bool) -> Iterator[str]:
    margin = " " * (_SEVERITY + 10)
    for finding in findings:
        first, *rest = textwrap.wrap(finding.finding, max(width - _SEVERITY, 40))
        yield f"{_painted(finding.severity, _SEVERITY, colours=colours)}{first}"
        yield from (f"{' ' * _SEVERITY}{line}" for line in rest)
        evidence = textwrap.wrap(finding.evidence, max(width - len(margin), 40))
        for title, lines in (("evidence", evidence), ("fix", list(finding.fix))):
            for number, line in enumerate(lines):
                yield f"{' ' * _SEVERITY}{title if number == 0 else '':<10}{line}"


def _painted(severity: Severity, width: int, *, colours: bool) -> str:
    padded = f"{severity:<{width}}"
    return f"\033[{_COLOURS[severity]}m{padded}\033[0m" if colours else padded
