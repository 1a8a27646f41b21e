"""Which Pythons Slipway is for: the one that `make` takes, and packages that are locked for each of them."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TOP = Path(__file__).parent.parent
FIND = TOP / "tools/find-python"
SUPPORTED = subprocess.run([FIND, "--supported"], capture_output=True, text=True, check=True).stdout.split()


def find(folder: Path, *versions: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([FIND, *versions], env={**os.environ, "PATH": str(folder)}, capture_output=True, text=True, check=False)


def program(path: Path, version: str) -> str:
    """Something that answers as a Python of a version does; one without a version answers as a shim of pyenv that leads nowhere."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$3" = "{version}" ]\n' if version else "#!/bin/sh\nexit 127\n")
    path.chmod(0o755)
    return f"{path}\n"


def test_the_newest_python_is_taken(tmp_path: Path) -> None:
    for version in ("3.11", "3.12"):
        program(tmp_path / f"python{version}", version)
    newest = program(tmp_path / "python3.13", "3.13")
    assert find(tmp_path).stdout == newest


def test_a_name_that_leads_nowhere_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "python3.13", "")
    older = program(tmp_path / "python3.12", "3.12")
    assert find(tmp_path).stdout == older


def test_a_second_program_of_the_same_name_is_found(tmp_path: Path) -> None:
    program(tmp_path / "shims/python3.13", "")
    real = program(tmp_path / "bin/python3.13", "3.13")
    assert find(Path(f"{tmp_path}/shims:{tmp_path}/bin")).stdout == real


def test_a_python_without_a_version_in_its_name_is_asked_for_it(tmp_path: Path) -> None:
    program(tmp_path / "python", "2.7")
    plain = program(tmp_path / "python3", "3.12")
    assert find(tmp_path).stdout == plain


def test_one_version_may_be_asked_for(tmp_path: Path) -> None:
    program(tmp_path / "python3.13", "3.13")
    older = program(tmp_path / "python3.11", "3.11")
    assert find(tmp_path, "3.11").stdout == older


def test_where_there_is_none_a_sentence_tells_what_to_install(tmp_path: Path) -> None:
    program(tmp_path / "python3", "3.10")
    done = find(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"There is no Python {' '.join(SUPPORTED)} with the module venv on PATH: install one ")


def test_the_package_names_the_pythons_that_make_takes() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    named = [text.removeprefix("Programming Language :: Python :: ") for text in project["classifiers"]]
    assert sorted(named) == sorted(SUPPORTED)
    assert project["requires-python"] == f">={min(SUPPORTED)}"


@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_what_a_package_needs_on_a_python_is_locked(lock: str, version: str) -> None:
    """pip-compile sees the conditions of one Python only, and with hashes pip installs nothing that is not locked."""
    pins = {canonicalize_name(name): pin for name, pin in re.findall(r"^([\w.-]+)==(\S+)", (TOP / lock).read_text(), re.MULTILINE)}
    python = {"python_version": version, "python_full_version": f"{version}.0", "extra": ""}
    needed = [Requirement(text) for name in pins for text in metadata.requires(name) or ()]
    needed = [each for each in needed if each.marker is None or each.marker.evaluate(python)]
    assert needed
    assert [str(each) for each in needed if not each.specifier.contains(pins.get(canonicalize_name(each.name), "0"))] == []
