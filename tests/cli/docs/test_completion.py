"""Completion, asked of the shells themselves."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Run


@pytest.fixture
def script(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "completion.bash"
    path.write_text(run("completion", "bash").out)
    return path


def _bash(script: Path, *words: str) -> list[str]:
    """What bash would offer for the last of ``words``; it splits --flag=value into three."""
    program = f'source "{script}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _slipway; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", program, "bash", *words], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["con"], ["config"]),
        (["certs", "re"], ["renew"]),
        (["certificates", "re"], ["renew"]),
        (["init", "phase", "certs", "etcd-"], ["etcd-ca", "etcd-healthcheck-client", "etcd-peer", "etcd-server"]),
        (["-v", "5", "init", "--dry-run", "phase", "kube"], ["kubeconfig", "kubelet-finalize", "kubelet-start"]),
        (["init", "phase", "uploadconfig", "ku"], ["kubeadm", "kubelet"]),
        (["init", "--skip-p"], ["--skip-phases"]),
        (["init", "--skip-phases", "addon"], ["addon", "addon/coredns", "addon/kube-proxy"]),
        (["init", "--skip-phases", "=", "preflight,addon/k"], ["preflight,addon/kube-proxy"]),
        (["upgrade", "node", "--skip-phases", "pre"], ["preflight"]),
        (["version", "-o", ""], ["yaml", "json", "short"]),
        (["version", "--output", "="], ["yaml", "json", "short"]),
        (["init", "-o", "j"], ["json"]),
        (["config", "images", "list", "-o", "k"], ["kyaml"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["token", "create", "--usages", "s"], ["signing"]),
        (["version", "--skip-h"], []),
        (["init", "--node-name", ""], []),
    ],
    ids=str,
)
def test_bash_completes_commands_flags_and_values(words: list[str], offered: list[str], script: Path) -> None:
    assert _bash(script, "slipway", *words) == offered


def test_bash_completes_files(script: Path, tmp_path: Path) -> None:
    (tmp_path / "kubeadm.yaml").touch()
    (tmp_path / "patches").mkdir()
    assert _bash(script, "slipway", "init", "--config", f"{tmp_path}/kub") == [f"{tmp_path}/kubeadm.yaml"]
    assert _bash(script, "slipway", "init", "--patches", f"{tmp_path}/") == [f"{tmp_path}/patches"]


def test_the_script_is_for_the_name_that_the_program_was_called_by(run: Run) -> None:
    assert run("completion", "bash", program="kubeadm").out.endswith("complete -F _kubeadm kubeadm\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid_in_its_shell(shell: str, run: Run, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    path = tmp_path / "script"
    path.write_text(run("completion", shell).out)
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("slipway con", ["config"]),
        ("slipway init phase certs etcd-p", ["etcd-peer"]),
        ("slipway -v 5 init --skip-phases preflight,addon/k", ["preflight,addon/kube-proxy"]),
        ("slipway version -o s", ["short"]),
        ("slipway init --skip-p", ["--skip-phases"]),
    ],
)
def test_fish_completes(line: str, offered: list[str], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "slipway.fish"
    path.write_text(run("completion", "fish").out)
    done = subprocess.run(["fish", "-c", f"source {path}; complete -C {line!r}"], capture_output=True, text=True, check=True)
    assert [row.split("\t")[0] for row in done.stdout.splitlines()] == offered
