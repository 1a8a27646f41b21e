"""What a check is, and how a list of them is run: every finding is told, and errors end the run unless they are ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.machinery.errors import PreflightError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from slipway.host.interface import Host
    from slipway.host.progress import Progress


class Findings(NamedTuple):
    """What a check has to say; errors end the run."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    output: str = ""
    """What is shown before anything else, whether the errors are ignored or not."""


FINE = Findings()


class Check(msgspec.Struct, frozen=True):
    """A condition that should hold, by the name under which it can be ignored."""

    name: str
    find: Callable[[Host], Findings]
    waits: bool = False
    """Whether most of its time passes in another process or on the network: such checks run side by side."""


def run(checks: Iterable[Check], host: Host, progress: Progress, ignored: Collection[str]) -> None:
    """Run all checks and tell their findings in order; errors of those that are ignored become warnings."""
    listed = list(checks)
    tell(zip((check.name for check in listed), find_all(listed, host), strict=True), progress, ignored)


def tell(found: Iterable[tuple[str, Findings]], progress: Progress, ignored: Collection[str]) -> None:
    """Tell what checks found, by their names."""
    errors: list[str] = []
    for name, findings in found:
        tolerated = "all" in ignored or name.lower() in ignored
        if findings.output:
            progress.show(findings.output)
        for warning in (*findings.warnings, *(findings.errors if tolerated else ())):
            progress.warn(f"\t[WARNING {name}]: {warning}")
        if not tolerated:
            errors += [f"\t[ERROR {name}]: {error}" for error in findings.errors]
    if errors:
        lines = "\n".join(errors)
        progress.warn(
            f"[preflight] Some fatal errors occurred:\n{lines}\n"
            "[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`"
        )
        raise PreflightError("preflight checks failed")


def find_all(checks: Sequence[Check], host: Host) -> list[Findings]:
    """The findings of checks, in their order; those that wait do so at the same time."""
    found: dict[int, Findings] = {}
    raised: list[BaseException] = []

    def find(index: int) -> None:
        try:
            found[index] = checks[index].find(host)
        except BaseException as error:  # told by the thread that asked
            raised.append(error)

    waiting = [index for index, check in enumerate(checks) if check.waits]
    threads = []
    if len(waiting) > 1:
        from threading import Thread

        threads = [Thread(target=find, args=(index,), daemon=True) for index in waiting]
    for thread in threads:
        thread.start()
    for index, check in enumerate(checks):
        if not (threads and check.waits):
            find(index)
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
    return [found[index] for index in range(len(checks))]
