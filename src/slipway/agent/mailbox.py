"""Hands the newest state of the Secret from the thread that watches to the one that works."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from slipway.kube.errors import UnauthorizedError, UntrustedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.agent.plan.decision import PlanSecret
    from slipway.agent.secret import SecretClient

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


class Mailbox:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._secret: PlanSecret | None = None
        self._unread = False
        self._puts = 0
        self._failure: Exception | None = None

    def put(self, secret: PlanSecret | None, *, sure: bool = False) -> None:
        """``sure``: the server was just asked, so that this is the newest, also of a restored server, which counts from further back."""
        with self._changed:
            if not sure and secret is not None and self._secret is not None and _number(secret) < _number(self._secret):
                return
            self._secret, self._unread, self._puts = secret, True, self._puts + 1
            self._changed.notify_all()

    def ask(self, read: Callable[[], PlanSecret | None]) -> PlanSecret | None:
        """What the server answers: the newest, unless the watch told of something newer before the answer was here."""
        with self._changed:
            puts = self._puts
        found = read()
        # The lock is one that a thread may take again.
        with self._changed:
            undisturbed = self._puts == puts
            if _version(found) != _version(self._secret) and (undisturbed or found is not None):
                self.put(found, sure=undisturbed)
        return found

    def fail(self, error: Exception) -> None:
        """Nobody can work any more; who waits gets the error."""
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    def wake(self) -> None:
        """Let who waits look around, though nothing changed."""
        with self._changed:
            self._unread = True
            self._changed.notify_all()

    def wait(self, seconds: float | None) -> PlanSecret | None:
        """The newest state once there is one that was not seen, or after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._unread or self._failure is not None, seconds)
            if self._failure is not None:
                raise self._failure
            self._unread = False
            return self._secret

    @property
    def latest(self) -> PlanSecret | None:
        with self._changed:
            return self._secret


class Watcher(threading.Thread):
    """Watches for as long as the host's credentials are good for it, over any outage."""

    def __init__(self, secret: SecretClient, mailbox: Mailbox, log: Callable[[str], None]) -> None:
        super().__init__(name="watch", daemon=True)
        self._secret = secret
        self._mailbox = mailbox
        self._log = log
        self._ending = threading.Event()

    def run(self) -> None:
        pause, told = _FIRST_PAUSE, ""
        while not self._ending.is_set():
            try:
                first = True
                for secret in self._secret.watch(self._ending.is_set):
                    if self._ending.is_set():
                        return
                    if told:
                        self._log("the API server answers again")
                    self._mailbox.put(secret, sure=first)
                    first, pause, told = False, _FIRST_PAUSE, ""
            except (UnauthorizedError, UntrustedError) as error:
                self._mailbox.fail(error)
                return
            except Exception as error:
                # Whatever it is, there is nothing else to do than to try again; it is told once.
                if str(error) != told:
                    self._log(f"the Secret cannot be watched: {error}")
                told = str(error)
                # A server that comes back is not asked by all hosts in one moment.
                self._ending.wait(pause * (0.5 + os.urandom(1)[0] / 255))
                pause = min(pause * 2, _LONGEST_PAUSE)

    def end(self) -> None:
        self._ending.set()


def _version(secret: PlanSecret | None) -> str | None:
    return None if secret is None else secret.resource_version


def _number(secret: PlanSecret) -> int:
    return int(secret.resource_version) if secret.resource_version.isdecimal() else 0
