"""The machine behind its interface: how files are written, and what happens under another root."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.host.real import RealHost


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def ended_process() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def test_what_a_killed_write_left_goes_with_the_next_one(tmp_path: Path) -> None:
    (tmp_path / f".admin.conf.{ended_process()}-1.partial").write_text("half")
    RealHost(str(tmp_path)).write("/admin.conf", b"whole")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"admin.conf": "whole"}


def test_what_another_process_is_writing_is_left_to_it(tmp_path: Path) -> None:
    theirs = tmp_path / f".admin.conf.{os.getppid()}-1.partial"
    theirs.write_text("half")
    RealHost(str(tmp_path)).write("/admin.conf", b"whole")
    assert theirs.exists()


def test_nothing_is_written_through_a_link_that_somebody_put_in_the_way(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    (tmp_path / f".admin.conf.{os.getpid()}-{threading.get_ident()}.partial").symlink_to(elsewhere)
    RealHost(str(tmp_path)).write("/admin.conf", b"whole")
    assert elsewhere.read_text() == "kept"
    assert (tmp_path / "admin.conf").read_text() == "whole"


def test_many_may_write_one_path_at_once(tmp_path: Path) -> None:
    """A name that two share is taken away by the one under the feet of the other."""
    program = (
        "import sys; from slipway.host.real import RealHost; host = RealHost(sys.argv[1]); sys.stdin.read()\n"
        "for number in range(300): host.write('/state', b'x' * 100)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)
    ]
    for process in processes:
        # They wait for the end of their input, so that all begin together.
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    ends = [process.communicate(timeout=60) for process in processes]
    assert [(process.returncode, error) for process, (_, error) in zip(processes, ends, strict=True)] == [(0, b"")] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    RealHost().write(str(pipe), b"whole")
    reader.join(10)
    assert read == [b"whole"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_behind_a_link_is_written_to_and_both_stay(tmp_path: Path) -> None:
    link = tmp_path / "out.yaml"
    link.symlink_to("/dev/null")
    RealHost().write(str(link), b"whole")
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_link_to_a_file_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "real.yaml"
    file.write_text("before")
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    RealHost().write(str(link), b"after")
    assert link.is_symlink()
    assert file.read_text() == "after"


def test_a_link_that_leads_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").symlink_to(outside)
    with pytest.raises(PermissionError, match="is not under"):
        RealHost(str(root)).write("/file", b"whole")
    assert outside.read_text() == "kept"


@pytest.mark.usefixtures("no_umask")
def test_folders_in_between_are_for_the_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    host = RealHost(str(tmp_path))
    host.make_dir("/etc/kubernetes/pki", 0o755)
    host.write("/var/lib/kubelet/config.yaml", b"")
    assert [mode(tmp_path / path) for path in ("etc", "etc/kubernetes", "etc/kubernetes/pki")] == [0o755] * 3
    assert [mode(tmp_path / path) for path in ("var", "var/lib", "var/lib/kubelet")] == [0o700] * 3


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "admin.conf"
    file.write_text("before")
    file.chmod(0o640)
    RealHost(str(tmp_path)).write("/admin.conf", b"after", 0o600)
    assert (file.read_text(), mode(file)) == ("after", 0o640)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "ca.key"
    file.write_text("before")
    os.chown(file, 4711, 4712)
    RealHost(str(tmp_path)).write("/ca.key", b"after")
    assert (file.stat().st_uid, file.stat().st_gid) == (4711, 4712)


def test_a_new_file_can_be_like_another(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("")
    (tmp_path / "ca.crt").chmod(0o444)
    RealHost(str(tmp_path)).write("/.ca.crt.pending", b"", like="/ca.crt")
    assert mode(tmp_path / ".ca.crt.pending") == 0o444


def test_programs_of_the_machine_do_not_run_for_another_root(tmp_path: Path) -> None:
    done = RealHost(str(tmp_path)).run("touch", str(tmp_path / "ran"))
    assert done.code != 0
    assert done.stderr == f"touch is not run: it would act on this machine and not on what is under {tmp_path}"
    assert not (tmp_path / "ran").exists()


def test_programs_are_looked_for_under_the_root(tmp_path: Path) -> None:
    host = RealHost(str(tmp_path), {"PATH": "/usr/bin"})
    assert host.which("systemctl") is None
    program = tmp_path / "usr/bin/systemctl"
    program.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)
    assert host.which("systemctl") == "/usr/bin/systemctl"
