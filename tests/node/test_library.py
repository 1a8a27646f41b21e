"""The example of docs/library.md is a program that runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from slipway.node.init import InitResult
from slipway.node.join import JoinResult
from slipway.node.reset import ResetResult
from slipway.node.upgrade import UpgradeResult

DOCUMENT = Path(__file__).parents[2] / "docs/library.md"


def test_the_documented_example_runs(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.S)
    path = tmp_path / "example.py"
    path.write_text(program)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    *phases, made, join = done.stdout.splitlines()
    assert made == "control-1 v1.35.4 https://api.example.com:6443"
    assert re.fullmatch(r"kubeadm join api\.example\.com:6443 --token \S+ --discovery-token-ca-cert-hash sha256:[0-9a-f]{64}", join)
    assert any(line.startswith("certs/ca: ") for line in phases)


@pytest.mark.parametrize("result", [InitResult, JoinResult, UpgradeResult, ResetResult])
def test_the_documented_fields_are_those_of_the_result(result: type[msgspec.Struct]) -> None:
    table = re.search(rf"returns an? `{result.__name__}`:\n\n((?:\|.*\n)+)", DOCUMENT.read_text())
    assert table is not None
    documented = [name for row in re.findall(r"^\| (`.*?) \|", table[1], re.M) for name in re.findall(r"`(\w+)`", row)]
    assert documented == list(result.__struct_fields__)
