"""``slipway agent`` from its command line, on a host under a folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import Run

from slipway.agent import paths
from slipway.agent.machine import RealMachine
from slipway.agent.plan.journal import Journal, JournalFile
from slipway.host.real import RealHost


def test_a_host_that_never_registered_says_so(run: Run, tmp_path: Path) -> None:
    assert json.loads(run("--rootfs", str(tmp_path), "agent", "status", "-o", "json").out) == {"registered": False, "configured": False}
    assert run("--rootfs", str(tmp_path), "agent", "status").out == "Registered:   no\n"


def test_status_tells_the_last_plan(run: Run, tmp_path: Path) -> None:
    journal = Journal(
        checksum="ab" * 32, state="failed", attempt=2, failures=2, message="why", completed=1, total=3, started=1.0, finished=2.0
    )
    JournalFile(RealMachine(RealHost(str(tmp_path)))).save(journal)
    told = json.loads(run("--rootfs", str(tmp_path), "agent", "status", "-o", "json").out)["plan"]
    assert (told["state"], told["failures"], told["message"], told["reported"]) == ("failed", 2, "why", False)
    assert "failed, not reported yet" in run("--rootfs", str(tmp_path), "agent", "status").out


def test_an_output_format_that_there_is_not_is_refused(run: Run, tmp_path: Path) -> None:
    outcome = run("--rootfs", str(tmp_path), "agent", "status", "-o", "xml")
    assert outcome.code == 1
    assert "use text or json" in outcome.err


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ([], "there is no address to register at"),
        (["--registration-url", "http://192.0.2.1/"], "not of the form https://host:port/path"),
        (["--registration-url", "https://192.0.2.1", "--token", "NO!"], "the token is none"),
        (["--registration-url", "https://192.0.2.1/x", "--auth", "face"], 'cannot prove who it is by "face"'),
        (["--registration-url", "https://192.0.2.1/x", "--registration-ca-cert", "/none.pem"], "cannot read /none.pem"),
    ],
)
def test_a_registration_that_cannot_be_is_told_with_a_sentence(run: Run, tmp_path: Path, flags: list[str], why: str) -> None:
    (tmp_path / "sys/class/net/eth0").mkdir(parents=True)
    (tmp_path / "sys/class/net/eth0/address").write_text("52:54:00:12:34:56\n")
    given = flags if "--auth" in flags else [*flags, "--auth", "mac"]
    outcome = run("--rootfs", str(tmp_path), "agent", "register", *given)
    assert outcome.code == 1
    assert why in outcome.err
    assert not (tmp_path / paths.CONNECTION.removeprefix("/")).exists()


@pytest.mark.parametrize("text", ["elemental: [", "elemental: 5", "elemental: {registration: {url: 5}}", "\x00"])
def test_a_configuration_that_is_none_is_told_with_its_file(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    outcome = run("--rootfs", str(tmp_path), "agent", "register", "--config", "/config.yaml")
    assert outcome.code == 1
    assert "this is a bug" not in outcome.err


def test_the_unit_runs_the_program_that_it_is_told(run: Run, tmp_path: Path) -> None:
    assert "ExecStart=/usr/bin/env slipway agent run\n" in run("agent", "unit").out
    run("--rootfs", str(tmp_path), "agent", "install-unit", "--program", "/opt/slipway/bin/slipway")
    written = (tmp_path / paths.UNIT.removeprefix("/")).read_text()
    assert "ExecStart=/opt/slipway/bin/slipway agent run\n" in written
    assert "Restart=always\n" in written


def test_an_agent_that_is_registered_imports_nothing_heavy(tmp_path: Path) -> None:
    """What takes its memory and its start: 25 MB and 150 ms are held by ``make bench``."""
    program = "import sys; import slipway.agent.loop, slipway.kube.transport, slipway.agent.process; print(*sys.modules)"
    imported = set(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split())
    heavy = ("asyncio", "aiohttp", "cryptography", "yaml", "logging", "grpc", "dataclasses", "shutil")
    assert [name for name in heavy if name in imported] == []
