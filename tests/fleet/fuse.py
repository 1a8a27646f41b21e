"""Cuts a process off at one of its requests: for tests that kill a controller at each of them."""

from __future__ import annotations


class Killed(BaseException):
    """Nothing handles this, as nothing handles a kill -9."""


class Fuse:
    """Blows at the ``at``-th request, when the API server has done it."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.left, self.error = at, error

    def __call__(self, verb: str, code: int, seconds: float) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.error("the answer is lost")
