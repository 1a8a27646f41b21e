"""``doctor``: argv in, text out; what is looked at is in slipway.node.doctor, and what the agent knows in slipway.agent."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation


def run(call: Invocation) -> None:
    import time

    from slipway.agent import status
    from slipway.api.machinery.errors import OperatorError
    from slipway.cli.commands.managerflags import one_of
    from slipway.node.doctor import report
    from slipway.node.doctor.examination import examine
    from slipway.node.doctor.gathering import gather

    form = one_of(call, "output")
    began = time.monotonic()
    found = examine(gather(call.host, agent=lambda: status.gather(call.host), say=_say))
    if form == "json":
        import json

        sys.stdout.write(json.dumps(report.fields(found, time.monotonic() - began), indent=2) + "\n")
    else:
        sys.stdout.write(report.text(found, width=_width(), colours=_colours(call)))
    if not found.is_well:
        raise OperatorError(f"{report.counts(found)} found")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _width() -> int | None:
    """None where nobody sees the end of a line."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _colours(call: Invocation) -> bool:
    environment = call.host.environment
    return sys.stdout.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
