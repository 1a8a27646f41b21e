"""What a check is, and how a list of them is run: every finding is told, and errors end the run unless they are ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.machinery.errors import PreflightError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from slipway.node.host import Host
    from slipway.node.progress import Progress


class Findings(NamedTuple):
    """What a check has to say; errors end the run."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


FINE = Findings()


class Check(msgspec.Struct, frozen=True):
    """A condition that should hold, by the name under which it can be ignored."""

    name: str
    find: Callable[[Host], Findings]


def run(checks: Iterable[Check], host: Host, progress: Progress, ignored: Collection[str]) -> None:
    """Run all checks; errors of those that are ignored become warnings."""
    errors: list[str] = []
    for check in checks:
        found = check.find(host)
        tolerated = "all" in ignored or check.name.lower() in ignored
        for warning in (*found.warnings, *(found.errors if tolerated else ())):
            progress.warn(f"\t[WARNING {check.name}]: {warning}")
        if not tolerated:
            errors += [f"\t[ERROR {check.name}]: {error}" for error in found.errors]
    if errors:
        listed = "\n".join(errors)
        progress.warn(
            f"[preflight] Some fatal errors occurred:\n{listed}\n"
            "[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`"
        )
        raise PreflightError("preflight checks failed")
