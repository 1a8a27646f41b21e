"""Running the command line in process, as a program of a given name and as a given kubeadm release."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from slipway.cli.main import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run("version", "-o", "short", program="kubeadm", acting_as="v1.34.10")``."""

    def call(*arguments: str, program: str = "slipway", acting_as: str = "") -> Outcome:
        monkeypatch.setattr(sys, "argv", [f"/usr/bin/{program}", *arguments])
        if acting_as:
            monkeypatch.setenv("SLIPWAY_AS_KUBEADM", acting_as)
        else:
            monkeypatch.delenv("SLIPWAY_AS_KUBEADM", raising=False)
        code = main()
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
