"""The files of a plan: which are refused, and what is made of the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slipway.agent.machine import RealMachine
from slipway.agent.plan import files
from slipway.agent.plan.files import FileError, RefusedError
from slipway.api.elemental.plan import PlanFile
from slipway.host.real import RealHost

UID, GID = os.getuid(), os.getgid()


@pytest.fixture
def machine(tmp_path: Path) -> RealMachine:
    return RealMachine(RealHost(str(tmp_path), {}))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("etc/passwd", "begin with /"),
        ("/etc/../srv/x", ".. in it"),
        ("/proc/sys/kernel/panic", "the kernel's"),
        ("/sys/class/x", "the kernel's"),
        ("//proc/x", "the kernel's"),
        ("/file", "folders below /"),
        ("/", "folders below /"),
        ("/etc/x\0y", "begin with /"),
    ],
)
def test_a_path_that_no_plan_can_mean_is_refused_with_a_sentence(path: str, why: str) -> None:
    with pytest.raises(RefusedError, match="is refused: ") as caught:
        files.check(PlanFile(path))
    assert why in str(caught.value)


@pytest.mark.parametrize("path", ["/", "/etc", "/var"])
def test_a_folder_of_the_root_is_never_removed(path: str) -> None:
    with pytest.raises(RefusedError, match="never remove"):
        files.check(PlanFile(path, directory=True, action="delete"))


def test_an_action_that_there_is_not_is_refused() -> None:
    with pytest.raises(RefusedError, match='"append"'):
        files.check(PlanFile("/etc/x", action="append"))


def test_a_file_has_the_permissions_of_the_plan(machine: RealMachine, tmp_path: Path) -> None:
    files.apply(machine, PlanFile("/etc/a/b", b"content", "0640", UID, GID))
    assert (tmp_path / "etc/a/b").read_bytes() == b"content"
    assert (tmp_path / "etc/a/b").stat().st_mode & 0o7777 == 0o640


def test_a_file_that_is_there_is_replaced_with_its_permissions(machine: RealMachine, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/x").write_text("before")
    (tmp_path / "etc/x").chmod(0o644)
    files.apply(machine, PlanFile("/etc/x", b"secret", "0600", UID, GID))
    assert (tmp_path / "etc/x").read_bytes() == b"secret"
    assert (tmp_path / "etc/x").stat().st_mode & 0o7777 == 0o600
    assert os.listdir(tmp_path / "etc") == ["x"]


def test_folders_on_the_way_can_be_entered_by_others(machine: RealMachine, tmp_path: Path) -> None:
    files.apply(machine, PlanFile("/srv/a/b/c", b"", "0644", UID, GID))
    assert (tmp_path / "srv/a/b").stat().st_mode & 0o7777 == 0o755


def test_a_folder_is_made(machine: RealMachine, tmp_path: Path) -> None:
    files.apply(machine, PlanFile("/srv/data", directory=True, permissions="0750", uid=UID, gid=GID))
    assert (tmp_path / "srv/data").is_dir()
    assert (tmp_path / "srv/data").stat().st_mode & 0o7777 == 0o750


@pytest.mark.parametrize("there", [True, False])
def test_a_file_is_removed_whether_it_is_there_or_not(machine: RealMachine, tmp_path: Path, there: bool) -> None:
    (tmp_path / "etc").mkdir()
    if there:
        (tmp_path / "etc/x").write_text("")
    files.apply(machine, PlanFile("/etc/x", action="delete"))
    assert not (tmp_path / "etc/x").exists()


def test_a_file_where_a_folder_is_fails_with_a_sentence(machine: RealMachine, tmp_path: Path) -> None:
    (tmp_path / "etc/x").mkdir(parents=True)
    with pytest.raises(FileError, match="there is a folder of that name"):
        files.apply(machine, PlanFile("/etc/x", b"", "0600", UID, GID))
