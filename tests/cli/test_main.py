"""How the program ends: exit codes, traces, a reader that has left, an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from slipway.cli import main as program
from slipway.host.real import RealHost

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Run

_SLIPWAY = [sys.executable, "-m", "slipway"]
_HINT = "To see the stack trace of this error execute with --v=5 or higher\n"

_NEGATIVE_PORT = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint:
  bindPort: -1
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {version}
"""


def test_the_module_ends_with_the_exit_code() -> None:
    assert subprocess.run([*_SLIPWAY, "nothing"], capture_output=True, check=False).returncode == 1
    assert subprocess.run([*_SLIPWAY, "version"], capture_output=True, check=False).returncode == 0


def test_an_error_is_a_sentence_and_a_hint(run: Run) -> None:
    outcome = run("config", "validate", "--config", "/does/not/exist")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == f'error: unable to read config from "/does/not/exist" : open /does/not/exist: no such file or directory\n{_HINT}'


def test_maps_that_an_alias_makes_too_deep_are_an_error_of_the_operators(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "deep.yaml"
    config.write_text(f"a: &a {'{a: ' * 250}1{'}' * 250}\nb: {'{a: ' * 250}*a{'}' * 250}\n")
    outcome = run("config", "validate", "--config", str(config))
    assert (outcome.code, outcome.err) == (1, f"error: {config}:1: this is not valid YAML: exceeded max depth of 300\n{_HINT}")


def test_high_verbosity_shows_where_an_error_comes_from(run: Run) -> None:
    outcome = run("config", "validate", "--config", "/does/not/exist", "--v=5")
    assert outcome.code == 1
    assert "Traceback (most recent call last):" in outcome.err
    assert _HINT not in outcome.err


@pytest.mark.parametrize(
    ("version", "code", "prefix"),
    [("v1.33.13", 3, "localAPIEndpoint"), ("v1.34.10", 1, "error: "), ("v1.35.4", 1, "error: "), ("v1.36.3", 1, "error: ")],
)
def test_an_invalid_configuration_ends_as_in_the_release_that_it_asks_for(
    version: str, code: int, prefix: str, run: Run, tmp_path: Path
) -> None:
    """kubeadm 1.33.13 ends with 3 and says no ``error:``; the later ones end with 1 (seen)."""
    path = tmp_path / "kubeadm.yaml"
    path.write_text(_NEGATIVE_PORT.format(version=version))
    outcome = run("config", "validate", "--config", str(path))
    assert outcome.code == code
    assert outcome.err.startswith(prefix)


class _BrokenHost(RealHost):
    def read(self, path: str, most: int = -1) -> bytes:
        raise RuntimeError("the disk sang")


def test_a_bug_is_told_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    code = program.main(["config", "validate", "--config", "x"], _BrokenHost())
    assert code == 1
    assert capsys.readouterr().err.startswith("error: this is a bug in slipway: RuntimeError: the disk sang\n" + _HINT)


def test_a_reader_that_leaves_causes_no_traceback() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([*_SLIPWAY, "completion", "fish"], stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_interrupt_is_one_line(tmp_path: Path) -> None:
    fifo = tmp_path / "kubeadm.yaml"
    os.mkfifo(fifo)
    command = [*_SLIPWAY, "config", "validate", "--config", str(fifo)]
    # Opening succeeds when the program has opened its end; it then waits for a text that never comes.
    # A shell starts what runs in its background with SIGINT ignored, and that would be passed on.
    with (
        subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        ) as process,
        fifo.open("wb"),
    ):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + signal.SIGINT, "interrupted\n")


def test_a_deprecated_flag_is_told_once_the_command_line_is_understood(run: Run, tmp_path: Path) -> None:
    outcome = run(
        "init", "phase", "control-plane", "scheduler", "--scheduler-extra-args=v=2", "--config", str(tmp_path / "none"), "--dry-run"
    )  # fmt: skip
    # The words of kubeadm 1.35.4.
    assert outcome.err.startswith(
        "Flag --scheduler-extra-args has been deprecated, use 'ClusterConfiguration.scheduler.extraArgs' instead. "
        "This flag will be removed in a future version\n"
    )


@pytest.mark.parametrize(
    ("called", "name"), [("/usr/bin/kubeadm", "kubeadm"), ("slipway", "slipway"), ("/x/__main__.py", "slipway"), ("", "slipway")]
)
def test_the_program_knows_its_name(called: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert program.program_name() == name


def test_commands_that_kubeadm_has_not_say_a_sentence_and_no_more(run: Run, tmp_path: Path) -> None:
    outcome = run("fleet", "status", "--kubeconfig", str(tmp_path / "none"))
    assert (outcome.code, outcome.err) == (1, f"error: cannot read the kubeconfig {tmp_path / 'none'}: No such file or directory\n")
    outcome = run("fleet")
    assert (outcome.code, outcome.err.splitlines()[0][:52]) == (1, "error: what fleet is to do is missing: name one of e")
