"""The kernel, the operating system and the cgroups, held against what the kubelet needs of them.

What is needed, and how a lack of it is told, are those of k8s.io/system-validators in the version that a release is built
with.  ``verify`` decides from facts; ``facts`` reads them from a machine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.machinery.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.host.interface import Host

CGROUP_MOUNT = "/sys/fs/cgroup"
_FREEZER_SINCE = Version(5, 2, 0)
_WHITE, _GREEN, _RED, _YELLOW = 37, 32, 31, 33
_SETTING = re.compile(r"\s*(CONFIG_[A-Z0-9_]+)=([myn])")


class Setting(NamedTuple):
    """A setting of the kernel's configuration, its older name, and what it is there for."""

    name: str
    alias: str = ""
    purpose: str = ""


class Demands(msgspec.Struct, frozen=True, kw_only=True):
    """What one version of the validators asks for."""

    kernels: tuple[str, ...]
    kernel_note: str
    kernel_fails: bool
    """Whether a kernel of another version is an error, rather than a warning."""
    required: tuple[Setting, ...]
    required_v1: tuple[Setting, ...] = ()
    required_v2: tuple[Setting, ...] = ()
    cgroup_v1_note: str
    cgroup_v1_fails_since: Version | None
    """The first kubelet that does not start on cgroup v1 unless it is told to."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine has."""

    system: str
    kernel: str
    settings: Mapping[str, str] | None
    """The kernel's configuration; None where it cannot be had, for the reason in ``settings_problem``."""
    settings_problem: str = ""
    unified: bool | None
    """Whether the machine has cgroup v2; None where it has no cgroups."""
    controllers: tuple[str, ...] = ()


class Verdict(NamedTuple):
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    report: str
    """A line for everything that was looked at, in colours."""


_OPTIONAL = (
    Setting("OVERLAY_FS", "OVERLAYFS_FS", "Required for overlayfs."),
    Setting("AUFS_FS", "", "Required for aufs."),
    Setting("BLK_DEV_DM", "", "Required for devicemapper."),
    Setting("CFS_BANDWIDTH", "", "Required for CPU quota."),
    Setting("SECCOMP", "", "Required for seccomp."),
    Setting("SECCOMP_FILTER", "", "Required for seccomp mode 2."),
)
_NAMESPACES = tuple(Setting(name) for name in ("NAMESPACES", "NET_NS", "PID_NS", "IPC_NS", "UTS_NS"))
_CGROUPS = Setting("CGROUPS", "", "Required for cgroups.")
_OTHERS = (
    *(Setting(name) for name in ("CPUSETS", "MEMCG", "INET", "EXT4_FS", "PROC_FS")),
    Setting("NETFILTER_XT_TARGET_REDIRECT", "IP_NF_TARGET_REDIRECT"),
    Setting("NETFILTER_XT_MATCH_COMMENT"),
    Setting("FAIR_GROUP_SCHED"),
)
_PIDS_AND_CPU = (
    Setting("CGROUP_PIDS", "", "Required for PIDs controller."),
    Setting("CGROUP_SCHED", "", "Required for CPU controller."),
)
_KERNELS_SINCE_5 = (r"^5\.4.*$", r"^5\.10.*$", r"^5\.15.*$", r"^([6-9]|[1-9][0-9]+)\.([0-9]+)\.([0-9]+).*$")
_NOTE_SINCE_5 = (
    "Supported LTS versions from the 5.x series are 5.4, 5.10 and 5.15. Any 6.x version is also supported. "
    "For cgroups v2 support, the recommended version is 5.10 or newer"
)
_MAINTENANCE = "cgroups v1 support is in maintenance mode, please migrate to cgroups v2"

DEMANDS = {
    "1.9.2": Demands(
        kernels=(r"^4\.19.*$", r"^4\.[2-9][0-9].*$", r"^([5-9]|[1-9][0-9]+)\.([0-9]+)\.([0-9]+).*$"),
        kernel_note="Recommended LTS version from the 4.x series is 4.19. Any 5.x or 6.x versions are also supported. "
        "For cgroups v2 support, the minimal version is 4.15 and the recommended version is 5.8+",
        kernel_fails=True,
        required=(*_NAMESPACES, Setting("CGROUPS"), *_OTHERS),
        cgroup_v1_note=_MAINTENANCE,
        cgroup_v1_fails_since=None,
    ),
    "1.10.2": Demands(
        kernels=_KERNELS_SINCE_5,
        kernel_note=_NOTE_SINCE_5,
        kernel_fails=False,
        required=(*_NAMESPACES, Setting("CGROUPS"), *_OTHERS),
        cgroup_v1_note=_MAINTENANCE,
        cgroup_v1_fails_since=None,
    ),
    "1.12.1": Demands(
        kernels=_KERNELS_SINCE_5,
        kernel_note=_NOTE_SINCE_5,
        kernel_fails=False,
        required=(*_NAMESPACES, *_OTHERS),
        required_v1=(
            _CGROUPS,
            Setting("CGROUP_CPUACCT", "", "Required for cpuacct controller, used in simple CPU accounting controller."),
            Setting("CGROUP_DEVICE", "", "Required for device controller."),
            Setting("CGROUP_FREEZER", "", "Required for freezer controller."),
            *_PIDS_AND_CPU,
        ),
        required_v2=(
            _CGROUPS,
            Setting("CGROUP_BPF", "", "Required for eBPF programs attached to cgroups, used in device controller."),
            *_PIDS_AND_CPU,
        ),
        cgroup_v1_note="cgroups v1 support is deprecated and will be removed in a future release. Please migrate to cgroups v2. "
        "To explicitly enable cgroups v1 support for kubelet v1.35 or newer, you must set the kubelet configuration option "
        "'FailCgroupV1' to 'false'. You must also explicitly skip this validation. For more information, see "
        "https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1",
        cgroup_v1_fails_since=Version(1, 35, 0, "0"),
    ),
}
_CONTROLLERS_V1 = (("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids"), ("hugetlb", "blkio"))
_CONTROLLERS_V2 = (("cpu", "cpuset", "devices", "freezer", "memory", "pids"), ("hugetlb", "io"))


def verify(facts: Facts, demands: Demands, kubelet: Version | None) -> Verdict:
    """The kernel first, then the operating system, then the cgroups."""
    errors: list[str] = []
    warnings: list[str] = []
    report: list[str] = []
    if any(re.match(pattern, facts.kernel) for pattern in demands.kernels):
        report.append(_line("KERNEL_VERSION", facts.kernel, _GREEN))
    else:
        report.append(_line("KERNEL_VERSION", facts.kernel, _RED))
        (errors if demands.kernel_fails else warnings).append(f"kernel release {facts.kernel} is unsupported. {demands.kernel_note}")
    errors += _settings(facts, demands, report)
    report.append(_line("OS", facts.system, _GREEN if facts.system == "Linux" else _RED))
    if facts.system != "Linux":
        errors.append(f"unsupported operating system: {facts.system}")
    found, noticed = _cgroups(facts, demands, kubelet, report)
    return Verdict((*errors, *found), (*warnings, *noticed), "".join(report))


def _settings(facts: Facts, demands: Demands, report: list[str]) -> list[str]:
    if facts.settings is None:
        return [f"failed to parse kernel config: {facts.settings_problem}"]
    wrong = []
    by_hierarchy = demands.required_v2 if facts.unified else demands.required_v1
    if demands.required_v1 and facts.unified is None:
        return [f'failed to get unified mountpoint: cannot get a cgroupfs mount point from "{_MOUNTS}"']
    for setting, needed in [*((each, True) for each in (*demands.required, *by_hierarchy)), *((each, False) for each in _OPTIONAL)]:
        names = [f"CONFIG_{name}" for name in (setting.name, setting.alias) if name]
        name = next((name for name in names if name in facts.settings), names[-1])
        value = facts.settings.get(name, "")
        if value in ("y", "m"):
            report.append(_line(name, "enabled" if value == "y" else "enabled (as module)", _GREEN))
            continue
        if needed:
            wrong.append(name)
        lack = "disabled" if value == "n" else "not set"
        report.append(_line(name, f"{lack} - {setting.purpose}" if setting.purpose else lack, _RED if needed else _YELLOW))
    return [f"unexpected kernel config: {' '.join(wrong)}"] if wrong else []


def _cgroups(facts: Facts, demands: Demands, kubelet: Version | None, report: list[str]) -> tuple[list[str], list[str]]:
    if facts.unified is None:
        return [f'cannot get a cgroup mount point: cannot get a cgroupfs mount point from "{_MOUNTS}"'], []
    errors: list[str] = []
    warnings: list[str] = []
    if not facts.unified:
        since = demands.cgroup_v1_fails_since
        fails = since is not None and kubelet is not None and kubelet >= since
        (errors if fails else warnings).append(demands.cgroup_v1_note)
    required, optional = _CONTROLLERS_V2 if facts.unified else _CONTROLLERS_V1
    for names, colour in ((required, _RED), (optional, _YELLOW)):
        for name in names:
            there = name in facts.controllers
            report.append(_line(f"CGROUPS_{name.upper()}", "enabled" if there else "missing", _GREEN if there else colour))
    lacking = [name for name in required if name not in facts.controllers]
    if lacking:
        errors = [f"missing required cgroups: {' '.join(lacking)}"]
    unused = [name for name in optional if name not in facts.controllers]
    if unused:
        warnings.append(f"missing optional cgroups: {' '.join(unused)}")
    return errors, warnings


def _line(name: str, value: str, colour: int) -> str:
    return f"\033[0;{_WHITE}m{name}\033[0m: \033[0;{colour}m{value}\033[0m\n"


_MOUNTS = "/proc/mounts"


def facts(host: Host) -> Facts:
    """What ``verify`` has to know about a machine."""
    system, kernel = host.kernel()
    settings, problem = _kernel_settings(host, kernel)
    mounts = host.read(_MOUNTS).decode(errors="replace").splitlines() if host.exists(_MOUNTS) else []
    mounted = hierarchy(mounts, has_v1_memory=host.is_dir(f"{CGROUP_MOUNT}/memory"))
    if mounted is None:
        return Facts(system=system, kernel=kernel, settings=settings, settings_problem=problem, unified=None)
    folder, unified = mounted
    controllers = _controllers_v2(host, folder, kernel) if unified else controllers_v1(host)
    return Facts(system=system, kernel=kernel, settings=settings, settings_problem=problem, unified=unified, controllers=tuple(controllers))


def hierarchy(mounts: Iterable[str], *, has_v1_memory: bool) -> tuple[str, bool] | None:
    """Where cgroups are mounted and whether that is v2, by the lines of /proc/mounts; None where they are not.

    The usual place decides; elsewhere v2 wins over v1.
    """
    first_v1 = ""
    for fields in (line.split() for line in mounts if "cgroup" in line):
        if len(fields) < 3:
            continue
        if fields[1] == CGROUP_MOUNT:
            return CGROUP_MOUNT, not has_v1_memory if fields[2] == "tmpfs" else fields[2] == "cgroup2"
        if fields[2] == "cgroup2":
            return fields[1], True
        if fields[2] == "cgroup":
            first_v1 = first_v1 or fields[1]
    return (first_v1, False) if first_v1 else None


def parse_settings(text: str) -> dict[str, str]:
    """The settings of a kernel's configuration file that are y, m or n."""
    matches = (_SETTING.match(line) for line in text.splitlines())
    return {match[1]: match[2] for match in matches if match}


def controllers_v1(host: Host) -> list[str]:
    rows = (line.split() for line in host.read("/proc/cgroups").decode().splitlines() if not line.startswith("#"))
    return [row[0] for row in rows if len(row) >= 4 and row[3] != "0"]


def _controllers_v2(host: Host, folder: str, kernel: str) -> list[str]:
    """Devices are always there; the freezer is not listed among the controllers, but a file of every cgroup but the first."""
    children = [f"{folder}/{name}" for name in host.list_dir(folder) if host.is_dir(f"{folder}/{name}")]
    if children:
        freezer = any(host.exists(f"{child}/cgroup.freeze") for child in children)
    else:
        numbers = re.match(r"(\d+)\.(\d+)", kernel)
        freezer = numbers is not None and (int(numbers[1]), int(numbers[2])) >= (_FREEZER_SINCE.major, _FREEZER_SINCE.minor)
    listed = host.read(f"{folder}/cgroup.controllers").decode().split()
    return ["devices", *(["freezer"] if freezer else []), *listed]


def _kernel_settings(host: Host, kernel: str) -> tuple[dict[str, str] | None, str]:
    """The kernel's configuration, from wherever it is; a module may have to be loaded to see it."""
    candidates = (
        "/proc/config.gz",
        f"/boot/config-{kernel}",
        f"/usr/src/linux-{kernel}/.config",
        "/usr/src/linux/.config",
        f"/usr/lib/modules/{kernel}/config",
        f"/usr/lib/ostree-boot/config-{kernel}",
        f"/usr/lib/kernel/config-{kernel}",
        f"/usr/src/linux-headers-{kernel}/.config",
        f"/lib/modules/{kernel}/build/.config",
    )
    path = next((path for path in candidates if host.exists(path)), "")
    if path:
        return _read_settings(host, path)
    loaded = host.run("modprobe", "configs")
    if loaded.code != 0:
        output = (loaded.stdout + loaded.stderr).strip()
        return None, f'unable to load kernel module: "configs", output: "{output}", err: exit status {loaded.code}'
    try:
        path = next((path for path in candidates if host.exists(path)), "")
        return _read_settings(host, path) if path else (None, f"no config path in [{' '.join(candidates)}] is available")
    finally:
        # A check leaves the machine as it was.
        host.run("modprobe", "-r", "configs")


def _read_settings(host: Host, path: str) -> tuple[dict[str, str] | None, str]:
    import gzip

    try:
        content = host.read(path)
        text = gzip.decompress(content) if path.endswith(".gz") else content
    except (OSError, EOFError) as error:
        return None, f"{path}: {error}"
    return parse_settings(text.decode(errors="replace")), ""
