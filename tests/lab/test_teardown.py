"""The end of a lab: what goes, in which order, and what stays."""

from __future__ import annotations

from pathlib import Path

from lab.lab_records import LAB, host

from slipway.host.progress import TextProgress
from slipway.lab import teardown
from slipway.lab.hosts.cgroups import Hierarchy
from slipway.lab.processes import Process
from slipway.lab.record import Lab, Status

MOUNTED = [Hierarchy("/sys/fs/cgroup/cpu", 1, ("cpu",)), Hierarchy("/sys/fs/cgroup/unified", 2)]


def process(pid: int) -> Process:
    return Process(pid=pid, started=1, boot="b")


def test_who_would_start_a_host_again_ends_before_it_and_its_cgroup_after_it() -> None:
    status = Status(phase="running", launcher=process(1), container=process(2), leader=process(3))
    steps = teardown.host_steps(LAB, host(), status, MOUNTED)
    assert [(step.kind, step.what) for step in steps] == [
        ("process", "launcher of a"),
        ("process", "PID 1 of a"),
        ("process", "systemd-nspawn of a"),
        ("cgroup", "/sys/fs/cgroup/cpu/slipway-dev-0123abcd/a"),
        ("cgroup", "/sys/fs/cgroup/unified/slipway-dev-0123abcd/a"),
        ("port", "vb-0123abcd-1"),
        ("socket", "/run/slipway/0123abcd-1.notify"),
    ]
    assert [step.process for step in steps[:3]] == [process(1), process(3), process(2)]


def test_a_host_that_has_no_processes_on_record_is_looked_for_in_its_cgroups_all_the_same() -> None:
    assert [step.kind for step in teardown.host_steps(LAB, host(), Status(), MOUNTED)] == ["cgroup", "cgroup", "port", "socket"]


def test_mounts_in_a_folder_are_found_innermost_first_and_neighbours_are_not() -> None:
    mountinfo = """\
20 1 8:1 / / rw - ext4 /dev/vda rw
30 20 0:40 / /labs/dev/hosts/a/root rw - overlay slipway-lab rw
31 30 0:41 / /labs/dev/hosts/a/root/proc rw - proc proc rw
32 20 0:42 / /labs/dev-two/hosts/a/root rw - overlay slipway-lab rw
33 20 0:43 / /labs/dev/with\\040blank rw - tmpfs tmpfs rw
"""
    assert teardown.mounts_below(mountinfo, Path("/labs/dev")) == [
        "/labs/dev/with blank",
        "/labs/dev/hosts/a/root/proc",
        "/labs/dev/hosts/a/root",
    ]


def test_the_folder_of_a_lab_that_was_never_made_is_removed_and_a_strangers_is_not(tmp_path: Path) -> None:
    begun, foreign = Lab("begun", tmp_path / "begun"), Lab("foreign", tmp_path / "foreign")
    for lab, name in ((begun, ".lab.json.0a1b2c"), (foreign, "thesis.tex")):
        lab.folder.mkdir()
        (lab.folder / name).touch()
    for lab in (begun, foreign, Lab("missing", tmp_path / "missing")):
        teardown.down(lab, TextProgress())
    assert [path.name for path in tmp_path.rglob("*")] == ["foreign", "thesis.tex"]
