"""What is written into the Secret, as data: the outcome of a plan, that one is under way, and how far it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from slipway.agent.plan import decision, unixdate
from slipway.api.elemental import plan as plans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.agent.plan.decision import PlanSecret
    from slipway.agent.plan.journal import Journal, Running


_ALL_OUTPUTS = 256 << 10
"""Bytes of the outputs of a plan: the Secret has 1 MiB for everything, the plan included."""


def outputs(said: Mapping[str, bytes]) -> bytes:
    """What instructions said, as the Secret has it, each with its share of the room that there is."""
    share = max(_ALL_OUTPUTS // max(len(said), 1), 1 << 10)
    return plans.pack_output({name: output[-share:] for name, output in said.items()})


def outcome(secret: PlanSecret, journal: Journal, *, with_output: bool = True) -> dict[str, bytes]:
    """The keys that tell of the outcome in the journal; none where they are told already, or the Secret's plan is another one by now."""
    if plans.checksum(secret.plan) != journal.checksum or is_told(secret, journal):
        return {}
    written = {"succeeded": _succeeded, "failed": _failed, "canceled": _canceled}[journal.state](secret, journal, with_output)
    if plans.PROGRESS in secret.data:
        written[plans.PROGRESS] = b""
    return written


def is_told(secret: PlanSecret, journal: Journal) -> bool:
    """Whether the Secret has the outcome: what is written twice would be counted twice."""
    state = secret.text(plans.PLAN_STATE)
    if journal.state == "succeeded":
        return secret.text(plans.APPLIED_CHECKSUM) == journal.checksum and state in ("", plans.SUCCEEDED)
    failed = secret.text(plans.FAILED_CHECKSUM) == journal.checksum and (secret.number(plans.FAILURE_COUNT) or 0) >= journal.failures
    if journal.state == "canceled":
        return failed and state == plans.CANCELED
    return failed and state != plans.PENDING


def begun(secret: PlanSecret, running: Running | None) -> dict[str, bytes]:
    """That the plan is under way, and with which instruction."""
    written = {}
    if secret.uses_plan_state and secret.text(plans.PLAN_STATE) != plans.IN_PROGRESS:
        written[plans.PLAN_STATE] = plans.IN_PROGRESS.encode()
        written[plans.PLAN_REVISION] = _counted(secret, plans.PLAN_REVISION)
    if running is not None:
        told = {"instruction": running.name, "index": running.index, "of": running.of, "started": _time(running.started)}
        written[plans.PROGRESS] = msgspec.json.encode(told)
    return written


def _succeeded(secret: PlanSecret, journal: Journal, with_output: bool) -> dict[str, bytes]:
    return {
        plans.APPLIED_CHECKSUM: journal.checksum.encode(),
        plans.APPLIED_OUTPUT: journal.output if with_output else b"",
        plans.FAILED_CHECKSUM: b"",
        plans.FAILED_OUTPUT: b"",
        plans.FAILURE_COUNT: b"0",
        plans.SUCCESS_COUNT: _counted(secret, plans.SUCCESS_COUNT),
        plans.LAST_APPLY_TIME: _unix_date(journal.finished),
        **_state(secret, plans.SUCCEEDED),
    }


def _failed(secret: PlanSecret, journal: Journal, with_output: bool) -> dict[str, bytes]:
    final = decision.is_final(secret, journal)
    # Who counts only, and does not know of failures that no repetition can change, must find the limit reached.
    count = max(journal.failures, secret.max_failures or 0) if journal.final else journal.failures
    written = {
        plans.FAILED_CHECKSUM: journal.checksum.encode(),
        plans.FAILED_OUTPUT: journal.output if with_output else outputs({"plan": journal.message.encode()}),
        plans.FAILURE_COUNT: str(count).encode(),
        plans.SUCCESS_COUNT: b"0",
        plans.LAST_APPLY_TIME: _unix_date(journal.finished),
        **_state(secret, plans.FAILED if final else plans.IN_PROGRESS),
    }
    if secret.text(plans.APPLIED_CHECKSUM):
        # That of a former plan: elemental-operator would take it for the success of this one.
        written |= {plans.APPLIED_CHECKSUM: b"", plans.APPLIED_OUTPUT: b""}
    return written


def _canceled(secret: PlanSecret, journal: Journal, with_output: bool) -> dict[str, bytes]:
    """To who looks at checksums only, a plan that was canceled has failed for good."""
    told = {"checksum": journal.checksum, "completed": journal.completed, "total": journal.total}
    final = msgspec.structs.replace(journal, final=True, finished=journal.finished or journal.started)
    return {
        **_failed(secret, final, with_output),
        plans.PLAN_STATE: plans.CANCELED.encode(),
        plans.PLAN_CHECKPOINT: msgspec.json.encode(told),
    }


def _state(secret: PlanSecret, state: str) -> dict[str, bytes]:
    """Writers that do not know of plan-state must not find one: it would stand beside their next plan."""
    return {plans.PLAN_STATE: state.encode()} if secret.uses_plan_state else {}


def _counted(secret: PlanSecret, key: str) -> bytes:
    return str((secret.number(key) or 0) + 1).encode()


def _unix_date(moment: float) -> bytes:
    return unixdate.text(datetime.fromtimestamp(moment, UTC)).encode()


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
