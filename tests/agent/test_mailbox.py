"""Which state of the Secret is the newest, where the watch and an answer of the server tell of different ones."""

from __future__ import annotations

import pytest

from slipway.agent.mailbox import Mailbox
from slipway.agent.plan.decision import PlanSecret

OLD, NEW = (PlanSecret(data={}, resource_version=version) for version in ("9", "10"))


def holding(secret: PlanSecret | None) -> Mailbox:
    """One that was looked into."""
    mailbox = Mailbox()
    mailbox.put(secret)
    mailbox.wait(0)
    return mailbox


@pytest.mark.parametrize(("held", "answered"), [(OLD, NEW), (NEW, OLD), (None, NEW), (OLD, None)])
def test_what_the_server_answers_is_the_newest_whatever_it_counts_from(held: PlanSecret | None, answered: PlanSecret | None) -> None:
    """A server that was restored counts from further back."""
    mailbox = holding(held)
    assert mailbox.ask(lambda: answered) == answered
    assert mailbox._unread
    assert mailbox.wait(0) == answered


@pytest.mark.parametrize("answered", [OLD, None])
def test_an_answer_does_not_replace_what_the_watch_told_since_the_question(answered: PlanSecret | None) -> None:
    """Else a plan that is given in that moment is not begun before something else happens to the Secret."""
    mailbox = holding(OLD)

    def read() -> PlanSecret | None:
        mailbox.put(NEW)
        return answered

    assert mailbox.ask(read) == answered
    assert mailbox.wait(0) == NEW


def test_an_answer_replaces_an_older_state_that_the_watch_told_since_the_question() -> None:
    mailbox = holding(None)

    def read() -> PlanSecret:
        mailbox.put(OLD)
        return NEW

    mailbox.ask(read)
    assert mailbox.wait(0) == NEW


@pytest.mark.parametrize("secret", [OLD, None])
def test_an_answer_that_says_nothing_new_wakes_nobody(secret: PlanSecret | None) -> None:
    """Who waits for a Secret that is not there would ask without a pause."""
    mailbox = holding(secret)
    mailbox.ask(lambda: secret)
    assert not mailbox._unread
