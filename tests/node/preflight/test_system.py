"""The kernel and its cgroups; rows of the tests of k8s.io/system-validators 1.12.1, and output of the real kubeadm 1.35.4."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from support.machine import Machine

from slipway.api.machinery.version import Version
from slipway.node.preflight import system as systemverification
from slipway.node.preflight.system import DEMANDS, Facts, verify

if TYPE_CHECKING:
    from pathlib import Path

NEWEST = DEMANDS["1.12.1"]
ALL_SETTINGS = {
    f"CONFIG_{setting.name}": "y" for setting in (*NEWEST.required, *NEWEST.required_v1, *NEWEST.required_v2, *systemverification._OPTIONAL)
}
V1_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids", "hugetlb", "blkio")
V2_CONTROLLERS = ("devices", "freezer", "cpuset", "cpu", "io", "memory", "hugetlb", "pids")


def facts(
    *,
    kernel: str = "6.12.8",
    system: str = "Linux",
    settings: dict[str, str] | None = None,
    unified: bool | None = True,
    controllers: tuple[str, ...] = V2_CONTROLLERS,
) -> Facts:
    return Facts(
        system=system,
        kernel=kernel,
        settings=ALL_SETTINGS if settings is None else settings,
        unified=unified,
        controllers=controllers,
    )


def test_a_machine_of_today_has_nothing_to_complain_about() -> None:
    verdict = verify(facts(), NEWEST, Version(1, 36, 0))
    assert (verdict.errors, verdict.warnings) == ((), ())


# TestValidateKernelVersion
@pytest.mark.parametrize(
    ("kernel", "supported"),
    [
        ("2.0.0", False), ("3.9.0", False), ("3.19.9-99-test", False), ("4.4.14+", False), ("4.17.3", False), ("4.19.3-99-test", False),
        ("4.20.3+", False), ("5.0.0", False), ("5.4.288", True), ("5.10.232", True), ("5.12.3", False), ("5.15.175", True),
        ("5.16.3", False), ("6.12.8", True), ("10.21.1", True), ("99.12.12", True),
    ],
)  # fmt: skip
def test_kernels_are_told_apart(kernel: str, supported: bool) -> None:
    verdict = verify(facts(kernel=kernel), NEWEST, None)
    assert verdict.errors == ()
    assert [warning.startswith(f"kernel release {kernel} is unsupported. ") for warning in verdict.warnings] == (
        [] if supported else [True]
    )


# KernelSpec.Versions of system-validators 1.9.2
@pytest.mark.parametrize(
    ("kernel", "supported"), [("4.18.0", False), ("4.19.3", True), ("4.20.1", True), ("5.12.3", True), ("6.1.0", True)]
)
def test_release_1_33_refuses_a_kernel_that_is_too_old(kernel: str, supported: bool) -> None:
    assert bool(verify(facts(kernel=kernel), DEMANDS["1.9.2"], None).errors) is not supported


# TestValidateCachedKernelConfig
@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, ""),
        ({"CONFIG_NET_NS": "m"}, ""),
        ({"CONFIG_NET_NS": "n"}, "CONFIG_NET_NS"),
        ({"CONFIG_NET_NS": None}, "CONFIG_NET_NS"),
        ({"CONFIG_NETFILTER_XT_TARGET_REDIRECT": None, "CONFIG_IP_NF_TARGET_REDIRECT": "m"}, ""),
        ({"CONFIG_NETFILTER_XT_TARGET_REDIRECT": None}, "CONFIG_IP_NF_TARGET_REDIRECT"),
        ({"CONFIG_SECCOMP": None, "CONFIG_AUFS_FS": "n"}, ""),
        ({"CONFIG_CGROUP_BPF": None}, "CONFIG_CGROUP_BPF"),
        ({"CONFIG_CGROUP_DEVICE": None}, ""),
    ],
)
def test_required_settings_of_the_kernel_are_demanded(changed: dict[str, str | None], wrong: str) -> None:
    settings = {name: value for name, value in {**ALL_SETTINGS, **changed}.items() if value is not None}
    verdict = verify(facts(settings=settings), NEWEST, None)
    assert verdict.errors == ((f"unexpected kernel config: {wrong}",) if wrong else ())


def test_cgroup_v1_needs_other_settings_than_v2() -> None:
    settings = {name: value for name, value in ALL_SETTINGS.items() if name not in ("CONFIG_CGROUP_BPF", "CONFIG_CGROUP_DEVICE")}
    verdict = verify(facts(settings=settings, unified=False, controllers=V1_CONTROLLERS), NEWEST, None)
    assert verdict.errors == ("unexpected kernel config: CONFIG_CGROUP_DEVICE",)


# TestIsCgroupsV1DisabledInKubelet
@pytest.mark.parametrize(("kubelet", "fails"), [("1.34.7", False), ("1.35.0-alpha.1", True), ("1.35.1", True)])
def test_cgroup_v1_is_an_error_for_a_kubelet_that_does_not_start_on_it(kubelet: str, fails: bool) -> None:
    verdict = verify(facts(unified=False, controllers=V1_CONTROLLERS), NEWEST, Version.parse(kubelet))
    told, other = (verdict.errors, verdict.warnings) if fails else (verdict.warnings, verdict.errors)
    assert [text.startswith("cgroups v1 support is deprecated") for text in told] == [True]
    assert other == ()


@pytest.mark.parametrize("validators", ["1.9.2", "1.10.2"])
def test_older_releases_only_warn_of_cgroup_v1(validators: str) -> None:
    settings = {**ALL_SETTINGS, "CONFIG_CGROUPS": "y"}
    verdict = verify(facts(settings=settings, unified=False, controllers=V1_CONTROLLERS), DEMANDS[validators], Version(1, 36, 0))
    assert verdict == ((), ("cgroups v1 support is in maintenance mode, please migrate to cgroups v2",), verdict.report)


# TestValidateCgroupSubsystem, with the controllers of the specification
def test_missing_controllers_are_named() -> None:
    verdict = verify(facts(controllers=("devices", "cpu", "cpuset", "memory", "pids", "io")), NEWEST, None)
    assert verdict.errors == ("missing required cgroups: freezer",)
    assert verdict.warnings == ("missing optional cgroups: hugetlb",)


def test_a_machine_without_cgroups_is_told_so() -> None:
    verdict = verify(facts(unified=None, controllers=()), NEWEST, None)
    assert verdict.errors[-1] == 'cannot get a cgroup mount point: cannot get a cgroupfs mount point from "/proc/mounts"'


def test_only_linux_will_do() -> None:
    assert verify(facts(system="FreeBSD"), NEWEST, None).errors == ("unsupported operating system: FreeBSD",)


def test_the_report_is_that_of_the_real_one() -> None:
    settings = {**ALL_SETTINGS, "CONFIG_INET": "m", "CONFIG_SECCOMP": "n"}
    del settings["CONFIG_AUFS_FS"]
    report = verify(facts(settings=settings), NEWEST, None).report.splitlines()
    assert report[0] == "\033[0;37mKERNEL_VERSION\033[0m: \033[0;32m6.12.8\033[0m"
    assert "\033[0;37mCONFIG_INET\033[0m: \033[0;32menabled (as module)\033[0m" in report
    assert "\033[0;37mCONFIG_AUFS_FS\033[0m: \033[0;33mnot set - Required for aufs.\033[0m" in report
    assert "\033[0;37mCONFIG_SECCOMP\033[0m: \033[0;33mdisabled - Required for seccomp.\033[0m" in report
    assert report[-1] == "\033[0;37mCGROUPS_IO\033[0m: \033[0;32menabled\033[0m"


TMPFS = "tmpfs /sys/fs/cgroup tmpfs ro,seclabel,nosuid,nodev,noexec,mode=755 0 0"
SUBSYSTEMS = (
    "cgroup /sys/fs/cgroup/cpuset cgroup rw,nosuid,nodev,noexec,relatime,cpuset",
    "cgroup /sys/fs/cgroup/memory cgroup rw,nosuid,nodev,noexec,relatime,memory",
)


# TestGetUnifiedMountpoint
@pytest.mark.parametrize(
    ("mounts", "has_v1_memory", "expected"),
    [
        (["cgroup2 /sys/fs/cgroup cgroup2 rw,seclabel,nosuid,nodev,noexec,relatime 0 0"], False, ("/sys/fs/cgroup", True)),
        (["cgroup /sys/fs/cgroup cgroup rw,seclabel,nosuid,nodev,noexec,relatime 0 0"], False, ("/sys/fs/cgroup", False)),
        ([], False, None),
        (["proc /proc proc rw,nosuid 0 0", "sysfs /sys sysfs rw,seclabel 0 0"], False, None),
        ([*SUBSYSTEMS, "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,seclabel"], False, ("/sys/fs/cgroup/unified", True)),
        (list(SUBSYSTEMS), False, ("/sys/fs/cgroup/cpuset", False)),
        ([TMPFS, *SUBSYSTEMS], True, ("/sys/fs/cgroup", False)),
        ([TMPFS, "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0"], False, ("/sys/fs/cgroup", True)),
    ],
)
def test_the_hierarchy_of_cgroups_is_found(mounts: list[str], has_v1_memory: bool, expected: tuple[str, bool] | None) -> None:
    assert systemverification.hierarchy(mounts, has_v1_memory=has_v1_memory) == expected


# TestValidateParseKernelConfig
def test_a_kernel_configuration_is_read() -> None:
    text = "# a comment\nCONFIG_1=y\n CONFIG_2=m\nCONFIG_3=n\nCONFIG_HZ=250\n# CONFIG_4 is not set\n"
    assert systemverification.parse_settings(text) == {"CONFIG_1": "y", "CONFIG_2": "m", "CONFIG_3": "n"}


def test_the_facts_of_a_machine_with_cgroup_v2(tmp_path: Path) -> None:
    host = Machine(tmp_path)
    host.put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n").put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    host.put("/sys/fs/cgroup/system.slice/cgroup.freeze", "0\n").put("/boot/config-6.1.0-18-amd64", "CONFIG_INET=y\n")
    assert systemverification.facts(host) == Facts(
        system="Linux",
        kernel="6.1.0-18-amd64",
        settings={"CONFIG_INET": "y"},
        unified=True,
        controllers=("devices", "freezer", "cpu", "memory"),
    )


def test_the_facts_of_a_machine_with_cgroup_v1(tmp_path: Path) -> None:
    host = Machine(tmp_path)
    host.put("/proc/mounts", "\n".join([TMPFS, *SUBSYSTEMS])).make_dir("/sys/fs/cgroup/memory")
    host.put("/proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t3\t4\t1\nmemory\t5\t6\t0\n")
    host.write("/proc/config.gz", gzip.compress(b"CONFIG_INET=y\n"))
    found = systemverification.facts(host)
    assert (found.unified, found.controllers, found.settings) == (False, ("cpu",), {"CONFIG_INET": "y"})


def test_a_kernel_whose_configuration_is_nowhere_says_so(tmp_path: Path) -> None:
    host = Machine(tmp_path)
    host.failing = {"modprobe configs"}
    found = systemverification.facts(host)
    assert (found.settings, found.settings_problem.startswith('unable to load kernel module: "configs"')) == (None, True)
