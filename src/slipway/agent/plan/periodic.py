"""Periodic instructions of a plan that is applied: which are due, and what is kept of them, as elemental-system-agent has it."""

from __future__ import annotations

import math
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from slipway.agent import paths
from slipway.agent.machine import CannotStartError, Finished
from slipway.agent.plan import unixdate
from slipway.agent.plan.files import RefusedError
from slipway.agent.plan.runner import execute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.agent.machine import Machine
    from slipway.api.elemental.plan import PeriodicInstruction, Plan

_COOL_DOWN = 30
_MOST_COOL_DOWNS = 6
# One that hangs must not keep the agent from its next plan.
_TIMEOUT = 300.0
_KEPT = 16 << 10
_LONGEST = 1 << 22


class Kept(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the Secret has of one periodic instruction."""

    name: str = ""
    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0
    last_successful_run_time: str = ""
    failures: int = 0
    last_failed_run_time: str = ""


def read(packed: bytes) -> dict[str, Kept]:
    """What the Secret has; nothing where that cannot be read, as it is made anew by the next run."""
    if not packed:
        return {}
    try:
        text = zlib.decompressobj(wbits=31).decompress(packed, _LONGEST)
        return msgspec.json.decode(text, type=dict[str, Kept])
    except (zlib.error, msgspec.DecodeError):
        return {}


def pack(kept: Mapping[str, Kept]) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(msgspec.json.encode(kept)) + packer.flush()


def seconds_left(instruction: PeriodicInstruction, kept: Kept | None, now: float) -> float:
    """Until it is due; 0 or less where it is."""
    if kept is None:
        return 0.0
    waits = min(max(kept.failures, 1), _MOST_COOL_DOWNS)
    return max(
        _left(kept.last_successful_run_time, instruction.period_seconds, now),
        _left(kept.last_failed_run_time, _COOL_DOWN * waits, now) if kept.last_failed_run_time else -math.inf,
    )


def _left(written: str, pause: float, now: float) -> float:
    """How much of a pause after a moment is left; nothing of one that begins later than now, since the clock was set back meanwhile."""
    moment = unixdate.parse(written)
    left = moment.timestamp() + pause - now if moment is not None else 0.0
    return left if left <= pause else 0.0


def after(instruction: PeriodicInstruction, before: Kept | None, finished: Finished, now: float) -> Kept:
    """What is kept of a run.  Standard error is in the output where it was asked for, and else told apart from it by nobody."""
    before = before or Kept()
    time = unixdate.text(datetime.fromtimestamp(now, UTC))
    failed = finished.code != 0
    return Kept(
        name=instruction.name,
        stdout=finished.output[-_KEPT:],
        exit_code=finished.code,
        last_successful_run_time=before.last_successful_run_time if failed else time,
        failures=before.failures + 1 if failed else 0,
        last_failed_run_time=time if failed else "",
    )


def run_due(machine: Machine, plan: Plan, known: Mapping[str, Kept], stop: Callable[[], bool]) -> dict[str, Kept]:
    """What there is to be kept after those that are due were run; as it was, where none is."""
    kept = dict(known)
    for index, instruction in enumerate(plan.periodic_instructions):
        now = machine.host.now().timestamp()
        # Without a name there is nowhere to keep when it ran last.
        if not instruction.name or seconds_left(instruction, kept.get(instruction.name), now) > 0:
            continue
        before = kept.get(instruction.name)
        attempt = (before.failures if before else 0) + 1
        folder = f"{paths.WORK}/periodic/{index}"
        try:
            finished = execute(machine, instruction, folder, attempt=attempt, stop=stop, timeout=_TIMEOUT)
        except (CannotStartError, RefusedError) as error:
            finished = Finished(127, str(error).encode())
        kept[instruction.name] = after(instruction, before, finished, now)
    return kept


def next_due(plan: Plan, kept: Mapping[str, Kept], now: float) -> float | None:
    """Seconds until the next one is due; None where there is none."""
    return min((seconds_left(each, kept.get(each.name), now) for each in plan.periodic_instructions if each.name), default=None)
