"""A host's place in the cgroup hierarchies, decided from what is mounted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from slipway.lab.hosts import cgroups
from slipway.lab.hosts.cgroups import Hierarchy, Setting

# Lines of /proc/self/mountinfo of a machine with both (a microVM) and of Debian 12 (v2 only).
HYBRID = """\
23 1 0:21 / /sys rw,relatime - sysfs sysfs rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
UNIFIED = """\
24 1 0:22 / /sys rw,relatime shared:7 - sysfs sysfs rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
"""


def test_hierarchies_are_found_with_their_controllers() -> None:
    assert cgroups.hierarchies(HYBRID) == [
        Hierarchy("/sys/fs/cgroup/cpu,cpuacct", 1, ("cpu", "cpuacct")),
        Hierarchy("/sys/fs/cgroup/cpuset", 1, ("cpuset",)),
        Hierarchy("/sys/fs/cgroup/systemd", 1, ("name=systemd",)),
        Hierarchy("/sys/fs/cgroup/unified", 2),
    ]
    assert cgroups.hierarchies(UNIFIED) == [Hierarchy("/sys/fs/cgroup", 2)]


def test_on_v1_a_host_has_a_folder_in_every_hierarchy_which_becomes_its_root() -> None:
    place = cgroups.place(cgroups.hierarchies(HYBRID), "lab", "h1")
    roots = ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"]
    assert list(place.folders) == [folder for root in roots for folder in (f"{root}/lab", f"{root}/lab/h1")]
    lines = place.entry.splitlines()
    for root in roots:
        # Enter first: once the folder is mounted over the hierarchy, its path is another.
        assert lines.index(f"echo $$ > {root}/lab/h1/cgroup.procs") < lines.index(f"mount --bind {root}/lab/h1 {root}")
    assert lines[0] == "set -e"
    assert lines[-1] == 'exec unshare --cgroup -- "$@"'


def test_on_v1_processors_and_memory_are_handed_down_one_level_after_the_other() -> None:
    root = "/sys/fs/cgroup/cpuset"
    assert cgroups.place(cgroups.hierarchies(HYBRID), "lab", "h1").settings == (
        Setting(f"{root}/lab/cpuset.cpus", source=f"{root}/cpuset.cpus"),
        Setting(f"{root}/lab/cpuset.mems", source=f"{root}/cpuset.mems"),
        Setting(f"{root}/lab/h1/cpuset.cpus", source=f"{root}/lab/cpuset.cpus"),
        Setting(f"{root}/lab/h1/cpuset.mems", source=f"{root}/lab/cpuset.mems"),
    )


def test_on_v2_one_folder_is_enough_and_controllers_are_handed_down_to_it() -> None:
    place = cgroups.place(cgroups.hierarchies(UNIFIED), "lab", "h1", "cpuset cpu memory\n")
    assert place.folders == ("/sys/fs/cgroup/lab", "/sys/fs/cgroup/lab/h1")
    assert place.settings == (
        Setting("/sys/fs/cgroup/cgroup.subtree_control", value="+cpuset +cpu +memory"),
        Setting("/sys/fs/cgroup/lab/cgroup.subtree_control", value="+cpuset +cpu +memory"),
    )
    assert place.entry == 'set -e\necho $$ > /sys/fs/cgroup/lab/h1/cgroup.procs\nexec "$@"\n'


def test_on_v2_without_controllers_nothing_is_handed_down() -> None:
    assert cgroups.place(cgroups.hierarchies(UNIFIED), "lab", "h1", "\n").settings == ()


def test_the_entry_script_enters_and_passes_its_arguments_on(tmp_path: Path) -> None:
    folder = tmp_path / "with blank"
    (folder / "lab" / "h1").mkdir(parents=True)
    script = cgroups.place([Hierarchy(str(folder), 2)], "lab", "h1").entry
    # Only root may mount and unshare: what stands before and what is executed is left of the script.
    script = "\n".join(line.replace("exec unshare --cgroup --", "exec") for line in script.splitlines() if not line.startswith("mount"))
    done = subprocess.run(["sh", "-c", script, "sh", "printf", "%s|", "a b", "$c"], capture_output=True, text=True, check=True)
    assert done.stdout == "a b|$c|"
    assert (folder / "lab" / "h1" / "cgroup.procs").read_text().strip().isdigit()


def test_members_are_those_of_all_folders_below(tmp_path: Path) -> None:
    for folder, content in {"h1": "11\n12\n", "h1/kubepods": "", "h1/kubepods/pod1": "0\n13\n"}.items():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "cgroup.procs").write_text(content)
    assert cgroups.members([str(tmp_path / "h1"), str(tmp_path / "missing")]) == {11, 12, 13}


def test_folders_that_a_kubelet_left_below_are_removed_and_missing_ones_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "lab" / "h1" / "kubepods" / "besteffort" / "pod1").mkdir(parents=True)
    (tmp_path / "lab" / "h2").mkdir()
    cgroups.remove([str(tmp_path / "lab" / "h1"), str(tmp_path / "lab" / "h3")])
    assert [entry.name for entry in (tmp_path / "lab").iterdir()] == ["h2"]


@pytest.mark.parametrize("names", [("lab",), ("lab", "h1")])
def test_the_folders_of_a_lab_and_of_a_host_are_found_from_the_record_alone(names: tuple[str, ...]) -> None:
    assert cgroups.folders_of(cgroups.hierarchies(UNIFIED), *names) == ["/".join(("/sys/fs/cgroup", *names))]
