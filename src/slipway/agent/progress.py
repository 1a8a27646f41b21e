"""How far a plan is, told to the Secret now and then, and never at the plan's cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from slipway.agent.plan import report
from slipway.agent.secret import SecretGoneError
from slipway.api.machinery.errors import OperatorError
from slipway.kube.errors import ApiError, UnreachableError

if TYPE_CHECKING:
    from slipway.agent.mailbox import Mailbox
    from slipway.agent.plan.decision import PlanSecret
    from slipway.agent.plan.journal import Running
    from slipway.agent.secret import SecretClient

_THROTTLE = 2.0
"""Seconds between two writes of how far a plan is."""
_AFTER_FAILURE = 30.0
"""Seconds for which nobody is told how far a plan is, after that could not be written: the plan must not wait for the API server."""

LOST = (ApiError, UnreachableError, SecretGoneError)
"""Why the Secret could not be read or written just now."""


class Progress:
    def __init__(self, secret: SecretClient, mailbox: Mailbox) -> None:
        self._secret = secret
        self._mailbox = mailbox
        self._plan = b""
        self._running: Running | None = None
        self._owed = False
        self._not_before = 0.0

    def begin(self, plan: bytes) -> None:
        self._plan, self._running, self._owed, self._not_before = plan, None, False, 0.0

    def instruction(self, running: Running) -> None:
        self._running, self._owed = running, True
        self.tick()

    def end(self) -> None:
        self._owed = False

    def tick(self) -> None:
        now = time.monotonic()
        if not self._owed or now < self._not_before:
            return
        try:
            self._mailbox.put(self._secret.update(self._change))
            self._owed, self._not_before = False, now + _THROTTLE
        except (*LOST, OperatorError):
            # The outcome will say the same, and the journal has it.
            self._not_before = now + _AFTER_FAILURE

    def _change(self, secret: PlanSecret) -> dict[str, bytes]:
        return report.begun(secret, self._running) if secret.plan == self._plan else {}
