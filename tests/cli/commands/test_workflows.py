"""The workflows from the command line: phases, the event stream, and what needs a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Run

_NO_CHECKS = "--ignore-preflight-errors=all"


@pytest.fixture(autouse=True)
def _dry_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEADM_INIT_DRYRUN_DIR", str(tmp_path))


def test_a_phase_runs_by_itself(run: Run, tmp_path: Path) -> None:
    outcome = run("init", "phase", "certs", "ca", "--cert-dir", str(tmp_path / "pki"), "--kubernetes-version", "v1.35.4")
    assert (outcome.code, outcome.out) == (0, '[certs] Generating "ca" certificate and key\n')
    assert {path.name for path in (tmp_path / "pki").iterdir()} == {"ca.crt", "ca.key"}


def test_a_phase_can_be_called_by_its_alias(run: Run) -> None:
    outcome = run("reset", "phase", "cleanupnode", "--dry-run")
    assert outcome.code == 0
    assert "[dryrun] Would remove Kubernetes-managed containers\n" in outcome.out


def test_all_of_a_group_runs_the_group(run: Run) -> None:
    outcome = run("init", "phase", "control-plane", "all", "--dry-run", "--kubernetes-version", "v1.35.4")
    assert outcome.code == 0
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        assert f'"{component}"' in outcome.out


def test_the_event_stream_is_one_json_object_a_line(run: Run) -> None:
    outcome = run("reset", "--dry-run", "--force", _NO_CHECKS, "-o", "json")
    assert outcome.code == 0
    events = [json.loads(line) for line in outcome.out.splitlines()]
    phases = [(event["event"], event["phase"]) for event in events if "phase" in event]
    assert phases == [
        ("started", "preflight"),
        ("finished", "preflight"),
        ("started", "remove-etcd-member"),
        ("finished", "remove-etcd-member"),
        ("started", "cleanup-node"),
        ("finished", "cleanup-node"),
    ]
    assert all(event["seconds"] >= 0 for event in events if "seconds" in event)


def test_a_skipped_phase_is_in_the_event_stream(run: Run) -> None:
    outcome = run("reset", "--dry-run", "--force", _NO_CHECKS, "-o", "json", "--skip-phases", "cleanup-node")
    events = [json.loads(line) for line in outcome.out.splitlines()]
    assert [event["phase"] for event in events if event["event"] == "skipped"] == ["cleanup-node"]


def test_an_unknown_event_format_is_refused(run: Run) -> None:
    outcome = run("init", "-o", "yaml", "--dry-run")
    assert outcome.code == 1
    assert outcome.err.startswith('error: invalid output format "yaml": use text or json\n')


@pytest.mark.parametrize("command", [["init", "--dry-run", "--kubernetes-version=v1.35.4"], ["reset", "--dry-run", "--force"]])
def test_an_unknown_phase_to_skip_is_refused(command: list[str], run: Run) -> None:
    outcome = run(*command, "--skip-phases", "nonesuch", _NO_CHECKS)
    assert outcome.code == 1
    assert "invalid phase name: nonesuch\n" in outcome.err
