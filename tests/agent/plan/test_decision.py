"""What an agent does next, by what its Secret and its journal say."""

from __future__ import annotations

import pytest

from slipway.agent.plan.decision import RETRY_SECONDS, Action, Nothing, PlanSecret, Report, Run, Wait, interruption, next_action
from slipway.agent.plan.journal import Journal
from slipway.api.elemental import plan as plans

RAW = b'{"instructions":[]}'
SUM = plans.checksum(RAW)
NOW = 1_000_000.0
OTHER = Journal(checksum="0" * 64, state="succeeded", reported=True)


def secret(annotations: dict[str, str] | None = None, /, **data: str) -> PlanSecret:
    values = {plans.PLAN: RAW, **{key.replace("_", "-"): value.encode() for key, value in data.items()}}
    return PlanSecret(data=values, annotations=annotations or {})


def known(state: str, **fields: object) -> Journal:
    given = {"attempt": 1, "finished": NOW - 1, "reported": True, **fields}
    return Journal(checksum=SUM, state=state, **given)  # type: ignore[arg-type]


RUN = Run(checksum=SUM, attempt=1)
OURS = {"plan_state": "pending", "max_failures": "3"}

CASES: dict[str, tuple[PlanSecret, Journal, Action | type]] = {
    # A new plan.
    "no plan": (PlanSecret(data={}), Journal(), Nothing),
    "a first plan": (secret(), Journal(), RUN),
    "a first plan with a state": (secret(**OURS), Journal(), RUN),
    "a plan after another": (secret(**OURS), OTHER, RUN),
    "a plan of a writer that left the state of the last one": (secret(plan_state="succeeded", applied_checksum="1"), OTHER, RUN),
    "in progress by an agent that kept no journal": (secret(plan_state="in-progress"), Journal(), RUN),
    # One that is done.
    "applied and told": (secret(applied_checksum=SUM), known("succeeded"), Nothing),
    "applied and not told": (secret(**OURS), known("succeeded", reported=False), Report),
    "applied, and the Secret restored to what it was before": (secret(**OURS), known("succeeded"), Report),
    "applied, and pending again with the same bytes": (secret(applied_checksum=SUM, plan_state="pending"), known("succeeded"), Report),
    "applied by an agent that kept no journal": (secret(applied_checksum=SUM), Journal(), Nothing),
    "applied by an agent that kept no journal, with a state": (secret(applied_checksum=SUM, plan_state="succeeded"), OTHER, Nothing),
    "applied long ago, and another since": (secret(**OURS), OTHER, RUN),
    # One that was interrupted.
    "killed": (secret(plan_state="in-progress"), known("running"), Run(checksum=SUM, attempt=2)),
    "killed after failures": (secret(), known("running", attempt=4, failures=2), Run(checksum=SUM, attempt=5, failures=2)),
    # One that failed.
    "failed and not told": (secret(**OURS), known("failed", failures=1, reported=False), Report),
    "failed a moment ago": (
        secret(plan_state="in-progress", max_failures="3", failed_checksum=SUM), known("failed", failures=1), Wait,
    ),
    "failed half a minute ago": (
        secret(plan_state="in-progress", max_failures="3", failed_checksum=SUM),
        known("failed", failures=1, finished=NOW - RETRY_SECONDS),
        Run(checksum=SUM, attempt=2, failures=1),
    ),
    "failed as often as it may": (secret(plan_state="failed", max_failures="3", failed_checksum=SUM), known("failed", failures=3), Nothing),
    "failed with a state and without a limit": (secret(plan_state="failed", failed_checksum=SUM), known("failed", failures=1), Nothing),
    "failed without a state and without a limit": (secret(failed_checksum=SUM), known("failed", failures=99), Wait),
    "failed for good": (secret(failed_checksum=SUM), known("failed", failures=1, final=True), Nothing),
    "failed, and issued anew": (secret(**OURS), known("failed", failures=3), RUN),
    "failed, and the clock was set back": (
        secret(failed_checksum=SUM), known("failed", failures=1, finished=NOW + 90_000), Run(checksum=SUM, attempt=2, failures=1),
    ),
    "failed before there was a journal": (
        secret(failed_checksum=SUM, failure_count="2"), Journal(), Run(checksum=SUM, attempt=3, failures=2),
    ),
    "failed for good before there was a journal": (secret(failed_checksum=SUM, failure_count="3", max_failures="3"), Journal(), Nothing),
    "failed with a count that is none": (secret(failed_checksum=SUM, failure_count="many"), Journal(), RUN),
    # One that somebody holds or canceled.
    "paused": (secret({"plan.cattle.io/paused": "true"}, **OURS), Journal(), Nothing),
    "paused no more": (secret({"plan.cattle.io/paused": "false"}, **OURS), Journal(), RUN),
    "held by an annotation that says neither": (secret({"plan.cattle.io/paused": "yes"}, **OURS), Journal(), Nothing),
    "canceled before it began": (secret({"plan.cattle.io/canceled": "true"}, **OURS), Journal(), Report),
    "canceled and told": (secret({"plan.cattle.io/canceled": "true"}, plan_state="canceled"), known("canceled"), Nothing),
    "canceled after it was applied": (secret({"plan.cattle.io/canceled": "true"}, applied_checksum=SUM), known("succeeded"), Nothing),
    "canceled, and the annotation gone": (secret(plan_state="canceled", failed_checksum=SUM), known("canceled"), Nothing),
    "canceled by an agent that kept no journal": (
        secret(plan_state="canceled", plan_checkpoint=f'{{"checksum":"{SUM}"}}'), Journal(), Nothing,
    ),
    "canceled, and another plan without a state": (secret(plan_state="canceled", plan_checkpoint='{"checksum":"0"}'), OTHER, RUN),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_comes_next(case: str) -> None:
    given, journal, expected = CASES[case]
    found = next_action(given, journal, NOW)
    assert isinstance(found, expected) if isinstance(expected, type) else found == expected


def test_a_wait_is_what_is_left_of_the_pause_between_attempts() -> None:
    found = next_action(secret(failed_checksum=SUM), known("failed", failures=1, finished=NOW - 10), NOW)
    assert isinstance(found, Wait)
    assert found.seconds == RETRY_SECONDS - 10


def test_an_annotation_that_says_neither_is_told_with_its_value() -> None:
    assert '"maybe"' in interruption(secret({"plan.cattle.io/canceled": "maybe"}))
