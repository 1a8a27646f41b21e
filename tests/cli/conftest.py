"""Running the command line in process, as a program of a given name and as a given kubeadm release."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from slipway.cli.main import main
from slipway.host.interface import CommandResult
from slipway.host.real import RealHost

_CHANGES = ("write", "make_dir", "remove", "rename", "unmount")
_OF_THE_MACHINE = ("/etc/", "/var/lib/", "/run/", "/proc/", "/sys/")
_QUESTIONS = ("is-active", "is-enabled", "status", "show", "cat", "list-units")


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests run as root too, on the machine itself: a command that would change it fails the test."""

    def guarded(name: str) -> None:
        change = getattr(RealHost, name)

        def call(self: RealHost, path: str, *arguments: object, **options: object) -> object:
            assert not self.location(path).startswith(_OF_THE_MACHINE), f"a test must not {name} {path} of this machine"
            return change(self, path, *arguments, **options)

        monkeypatch.setattr(RealHost, name, call)

    for name in _CHANGES:
        guarded(name)
    run_program = RealHost.run

    def ask_only(self: RealHost, *command: str) -> CommandResult:
        assert command[0] != "systemctl" or command[1] in _QUESTIONS, f"a test must not {' '.join(command)} on this machine"
        return run_program(self, *command)

    monkeypatch.setattr(RealHost, "run", ask_only)


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
