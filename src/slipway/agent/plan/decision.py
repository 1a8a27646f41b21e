"""What an agent does next, as a function of its Secret, its journal and the time.

Two generations of writers are served.  Those that set ``plan-state`` say when a plan is to be run, and a failure is final once
``max-failures`` is reached, or at once where there is none.  Those that do not, such as elemental-operator, are followed by checksum: a
plan is run while its checksum is neither applied nor failed for good, and failures are repeated without end where ``max-failures`` is
absent.  Unlike elemental-system-agent, nothing is run again only because the agent was started: a plan that succeeded is not run twice in
a row, whatever the Secret says meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.agent.plan.journal import Journal
from slipway.api.elemental import names
from slipway.api.elemental import plan as plans

if TYPE_CHECKING:
    from collections.abc import Mapping

RETRY_SECONDS = 30.0


class PlanSecret(msgspec.Struct, frozen=True, kw_only=True):
    """The Secret of this host: its data decoded, and the annotations that the agent obeys."""

    data: Mapping[str, bytes]
    annotations: Mapping[str, str] = {}
    resource_version: str = ""

    @property
    def plan(self) -> bytes:
        return self.data.get(plans.PLAN, b"")

    def text(self, key: str) -> str:
        return self.data.get(key, b"").decode(errors="replace").strip()

    def number(self, key: str) -> int | None:
        """None where there is none, and where it is no number."""
        text = self.text(key)
        return int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) < 10 else None

    @property
    def uses_plan_state(self) -> bool:
        return bool(self.text(plans.PLAN_STATE))

    @property
    def max_failures(self) -> int | None:
        found = self.number(plans.MAX_FAILURES)
        return None if found is None or found < 0 else found


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Run the plan, from its beginning."""

    checksum: str
    attempt: int
    failures: int = 0


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Look again after so many seconds, or when the Secret changes."""

    seconds: float
    reason: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Tell the Secret what the journal has."""

    journal: Journal


class Nothing(msgspec.Struct, frozen=True, kw_only=True):
    """Look again when the Secret changes."""

    reason: str


Action = Run | Wait | Report | Nothing


def next_action(secret: PlanSecret, journal: Journal, now: float) -> Action:
    if not secret.plan:
        return Nothing(reason="the Secret has no plan")
    checksum = plans.checksum(secret.plan)
    if finished := _already_applied(secret, journal, checksum):
        return finished
    if held := _interrupted(secret, journal, checksum):
        return held
    if journal.checksum == checksum and journal.state != "none":
        return _again(secret, journal, now)
    return _first(secret, checksum)


def interruption(secret: PlanSecret) -> str:
    """``canceled``, ``paused``, what is wrong with an annotation that says neither, or nothing."""
    values = {name: secret.annotations.get(name, "false") for name in (names.PLAN_CANCELED_ANNOTATION, names.PLAN_PAUSED_ANNOTATION)}
    if values[names.PLAN_CANCELED_ANNOTATION] == "true":
        return "canceled"
    for name, value in values.items():
        if value not in ("true", "false"):
            return f'the annotation {name} is "{value}", and must be "true" or "false": the plan is held until it is'
    return "paused" if values[names.PLAN_PAUSED_ANNOTATION] == "true" else ""


def _already_applied(secret: PlanSecret, journal: Journal, checksum: str) -> Action | None:
    told = secret.text(plans.APPLIED_CHECKSUM) == checksum
    if journal.checksum == checksum and journal.state == "succeeded":
        agrees = told and secret.text(plans.PLAN_STATE) in ("", plans.SUCCEEDED)
        return Nothing(reason="the plan is applied") if agrees else Report(journal=journal)
    return Nothing(reason="the plan was applied before this agent kept a journal of it") if told else None


def _interrupted(secret: PlanSecret, journal: Journal, checksum: str) -> Action | None:
    wanted = interruption(secret)
    if not wanted:
        return None
    if wanted == "canceled":
        known = journal if journal.checksum == checksum else Journal(checksum=checksum)
        if known.reported and (known.state == "canceled" or is_final(secret, known)):
            return Nothing(reason="the plan was canceled" if known.state == "canceled" else "the plan failed before it was canceled")
        return Report(journal=msgspec.structs.replace(known, state="canceled", reported=False, running=None))
    if wanted == "paused":
        return Nothing(reason=f"the plan is held by the annotation {names.PLAN_PAUSED_ANNOTATION}")
    return Nothing(reason=wanted)


def _again(secret: PlanSecret, journal: Journal, now: float) -> Action:
    """A plan that the journal knows, and that has not succeeded."""
    if journal.state == "running":
        return Run(checksum=journal.checksum, attempt=journal.attempt + 1, failures=journal.failures)
    if not journal.reported:
        return Report(journal=journal)
    issued_anew = secret.text(plans.PLAN_STATE) == plans.PENDING and secret.text(plans.FAILED_CHECKSUM) != journal.checksum
    if issued_anew:
        return Run(checksum=journal.checksum, attempt=1)
    if journal.state == "canceled":
        return Nothing(reason="the plan was canceled: a new one is needed")
    if is_final(secret, journal):
        return Nothing(reason=f"the plan failed {journal.failures} times, and is not tried again")
    left = journal.finished + RETRY_SECONDS - now
    # More than the whole pause: the clock was set back since, and would have to catch up first.
    if 0 < left <= RETRY_SECONDS:
        return Wait(seconds=left, reason=f"the plan failed {journal.failures} times, and is tried again")
    return Run(checksum=journal.checksum, attempt=journal.attempt + 1, failures=journal.failures)


def _first(secret: PlanSecret, checksum: str) -> Action:
    """A plan that the journal does not know."""
    if secret.text(plans.PLAN_STATE) == plans.CANCELED and checkpoint(secret).get("checksum") == checksum:
        return Nothing(reason="the plan was canceled: a new one is needed")
    failures = 0
    if secret.text(plans.FAILED_CHECKSUM) == checksum:
        failures = secret.number(plans.FAILURE_COUNT) or 0
        limit = secret.max_failures
        if secret.text(plans.PLAN_STATE) == plans.FAILED or (limit is not None and failures >= limit):
            return Nothing(reason=f"the plan failed {failures} times before this agent kept a journal of it")
    return Run(checksum=checksum, attempt=failures + 1, failures=failures)


def is_final(secret: PlanSecret, journal: Journal) -> bool:
    """Whether a failure is not followed by another attempt."""
    limit = secret.max_failures
    if limit is None:
        return journal.final or secret.uses_plan_state
    return journal.final or journal.failures >= limit


def checkpoint(secret: PlanSecret) -> dict[str, Any]:
    """How far a canceled plan came, as whoever canceled it wrote it down."""
    try:
        found = msgspec.json.decode(secret.data.get(plans.PLAN_CHECKPOINT) or b"{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
