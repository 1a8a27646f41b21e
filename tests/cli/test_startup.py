"""What a small command imports: start-up time is spent there."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_HEAVY = ("ssl", "asyncio", "cryptography", "rich")
_MIGRATABLE = """\
apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
kubernetesVersion: v1.35.4
"""


def _imported(*arguments: str) -> set[str]:
    program = (
        "import sys; from slipway.cli.main import main; code = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "kubeadm.yaml"
    path.write_text(_MIGRATABLE)
    return str(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["version"],
        ["version", "-o", "json"],
        ["config", "print", "init-defaults"],
        ["config", "print", "init-defaults", "--component-configs", "KubeletConfiguration,KubeProxyConfiguration"],
        ["config", "print", "join-defaults"],
        ["config", "print", "reset-defaults"],
        ["config", "print", "upgrade-defaults"],
        ["config", "validate", "--config", "FILE"],
        ["config", "migrate", "--old-config", "FILE"],
        ["config", "migrate", "--strict-compat", "--old-config", "FILE"],
        ["config", "images", "list", "--config", "FILE"],
        ["config", "images", "list", "--kubernetes-version", "v1.35.4"],
        ["config", "schema"],
        ["init", "--help"],
    ],
    ids=" ".join,
)
def test_a_small_command_imports_nothing_heavy(arguments: list[str], config: str) -> None:
    imported = _imported(*(config if argument == "FILE" else argument for argument in arguments))
    assert [name for name in _HEAVY if name in imported] == []


def test_what_msgspec_imports_for_older_pythons_is_kept_out_while_it_is_imported_and_no_longer() -> None:
    program = "import sys; from slipway.cli.main import main; main(sys.argv[1:], own_process=True); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", program, "config", "print", "init-defaults"]
    imported = set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()[-1].split())
    assert "msgspec" in imported
    assert "typing_extensions" not in imported  # neither loaded, nor refused to gRPC


@pytest.mark.parametrize(("arguments", "collects"), [(["version"], "False"), (["manager", "--kubeconfig=/none"], "True")])
def test_only_a_command_that_runs_for_long_collects_its_garbage(arguments: list[str], collects: str) -> None:
    program = (
        "import gc, sys; from slipway.cli.main import main; main(sys.argv[1:], own_process=True); print(gc.isenabled(), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == collects


def test_version_imports_next_to_nothing() -> None:
    before = set(
        subprocess.run([sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True).stdout.split()
    )
    added = {name for name in _imported("version", "-o", "short") - before if not name.startswith("slipway")}
    assert added <= {"__future__"}
