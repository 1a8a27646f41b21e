"""The systemd unit of the agent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slipway.agent import paths

if TYPE_CHECKING:
    from slipway.host.interface import Host

_START = "/usr/bin/env slipway agent run"


def text(program: str = "") -> str:
    """The unit; ``program`` is the path of slipway where it is not found on PATH."""
    with open(os.path.join(os.path.dirname(__file__), "slipway-agent.service"), encoding="utf-8") as handle:
        unit = handle.read()
    return unit.replace(_START, f"{program} agent run") if program else unit


def install(host: Host, program: str = "") -> None:
    host.write(paths.UNIT, text(program).encode(), 0o644)
