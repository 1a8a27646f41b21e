"""Whether an API server answers at an address, asked ten times a second by connections of their own."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from itertools import pairwise
from typing import Self

_PERIOD, _TIMEOUT = 0.1, 1.0


class ApiProbe:
    """Asks for /readyz while the block runs, whoever answers; ``asked`` and ``failed`` are how often."""

    def __init__(self, address: str, port: int = 6443) -> None:
        self._address, self._port = address, port
        self._trust = ssl._create_unverified_context()
        self.asked = self.failed = 0
        self._answered: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def outage(self, since: float) -> float:
        """The longest time between two answers from a moment on."""
        return max(seconds for _, seconds in self.gaps(since))

    def gaps(self, since: float, least: float = 0.0) -> list[tuple[float, float]]:
        """The times between two answers from a moment on that were not shorter: when each began, and its seconds."""
        times = [since, *(moment for moment in self._answered if moment > since), time.monotonic()]
        return [(earlier, later - earlier) for earlier, later in pairwise(times) if later - earlier >= least]

    def answers(self) -> bool:
        return bool(self._answered) and time.monotonic() - self._answered[-1] < 3 * _PERIOD

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD):
            self.asked += 1
            if self._answers():
                self._answered.append(time.monotonic())
            else:
                self.failed += 1

    def _answers(self) -> bool:
        connection = http.client.HTTPSConnection(self._address, self._port, timeout=_TIMEOUT, context=self._trust)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
