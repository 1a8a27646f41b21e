"""A rehearsal from what was asked for to an exit code: what happens goes to standard error, the report to standard output and to a file."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.runtime import logs
from slipway.runtime.signals import heard
from slipway.simulation.plane import collect_seldom
from slipway.simulation.rehearsal.page import page
from slipway.simulation.rehearsal.rehearsal import rehearse
from slipway.simulation.rehearsal.report import as_json, as_text

if TYPE_CHECKING:
    from slipway.kube.connection import Connection
    from slipway.simulation.rehearsal.rehearsal import Wanted


def main(management: Connection, wanted: Wanted, form: str, file: str, *, verbosity: int = 0) -> int:
    """The exit code: 0 only where the upgrade would end well."""
    target = _writable(file)
    collect_seldom()
    began = time.monotonic()

    def tell(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began:6.1f}s  {line}\n")
        sys.stderr.flush()

    with logs.beside_output(verbosity):
        report = asyncio.run(heard(rehearse(management, wanted, tell)))
    if target is not None:
        target.write_text(page(report))
        tell(f"the report is in {target}")
    sys.stdout.write(as_json(report) if form == "json" else as_text(report))
    return 0 if report.ok else 1


def _writable(file: str) -> Path | None:
    """Where the report goes: what is not writable is told before anything starts."""
    if not file:
        return None
    path = Path(file)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OperatorError(f"the report cannot be written to {file}: it is to be a file in a folder that can be written to")
    return path
