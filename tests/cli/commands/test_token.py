"""``token`` on its way to a cluster: which kubeconfig is used, and what is refused before anything is asked of anybody.

The texts are the real kubeadm's; a live cluster is in tests/e2e.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import Run

TOKEN = "abcdef.0123456789abcdef"
KUBECONFIG = """apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a}}]
clusters: [{name: a, cluster: {server: 'https://127.0.0.1:%d'}}]
"""
# Nothing listens on port 1 of a machine: it was tcpmux's.
REFUSED = "cannot reach https://127.0.0.1:1: Connection refused"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "nonsense"], 'the bootstrap token "nonsense" was not of the form "\\\\A([a-z0-9]{6})\\\\.([a-z0-9]{16})\\\\z"'),
        (["create", TOKEN, "--certificate-key", "x"], "cannot use --certificate-key without --print-join-command"),
        (["create", TOKEN, "--config", "x", "--ttl", "1h"], "can not mix '--config' with arguments [ttl]"),
        (["create", TOKEN, "--usages", "foo"], 'Invalid value: ["foo"]'),
        (["create", TOKEN, "--groups", "foo"], 'Invalid value: ["foo"]'),
        (
            ["create", TOKEN, "--usages", "signing", "--groups", "system:bootstrappers:x"],
            'token groups cannot be specified unless --usages includes "authentication"',
        ),
        (["delete"], "missing argument; 'token delete' is missing token of form"),
        (["list", "--kubeconfig", "/nonexistent"], "failed to load kubeconfig: open /nonexistent: no such file or directory"),
    ],
)
def test_a_mistake_is_told_before_a_cluster_is_asked(arguments: list[str], message: str, run: Run, home: Path) -> None:
    outcome = run("token", *arguments, program="kubeadm")
    assert outcome.code == 1
    assert message in outcome.err


def test_something_that_is_no_token_is_not_deleted(run: Run, home: Path) -> None:
    (home / "conf").write_text(KUBECONFIG % 1)
    outcome = run("token", "delete", "ABC", "--kubeconfig", str(home / "conf"))
    assert "given token didn't match pattern" in outcome.err


def test_the_kubeconfig_of_the_environment_comes_before_that_of_the_user(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".kube").mkdir()
    (home / ".kube/config").write_text(KUBECONFIG % 2)
    assert "https://127.0.0.1:2" in run("token", "list").err
    (home / "other").write_text(KUBECONFIG % 1)
    monkeypatch.setenv("KUBECONFIG", f"{home}/missing:{home}/other")
    outcome = run("token", "list")
    assert outcome.code == 1
    assert f"failed to list bootstrap tokens: {REFUSED}" in outcome.err


def test_where_there_is_no_kubeconfig_the_first_place_to_look_is_named(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As GetKubeConfigPath of kubeadm 1.35.4, by GetDefaultFilename of client-go: the first of the names where none is there."""
    monkeypatch.setenv("KUBECONFIG", f"{home}/missing:{home}/other")
    outcome = run("token", "list", "--rootfs", str(home / "empty"))
    assert f"{home}/missing: no such file or directory" in outcome.err


def test_a_dry_run_shows_the_secret_though_no_cluster_answers(run: Run, home: Path) -> None:
    (home / "conf").write_text(KUBECONFIG % 1)
    outcome = run("token", "create", TOKEN, "--ttl", "0", "--dry-run", "--kubeconfig", str(home / "conf"), program="kubeadm")
    assert outcome.code == 0
    assert "[dryrun] Real object does not exist. Attempting to GET" in outcome.out
    assert "  name: bootstrap-token-abcdef\n" in outcome.out
    assert "expiration" not in outcome.out
    assert outcome.out.endswith(f"\n{TOKEN}\n")
    assert REFUSED in outcome.err
