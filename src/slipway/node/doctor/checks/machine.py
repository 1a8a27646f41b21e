"""The machine under the node: swap, the clock, disks and cgroups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.version import Version
from slipway.node.doctor.finding import Check, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.facts import Disk, Facts
    from slipway.node.doctor.finding import Finding

_CLOCK_SECONDS = 30
_FULL_PART, _FULL_BYTES = 0.005, 64 << 20
_CGROUP_V1_REFUSED_SINCE = Version(1, 35, 0, "0")
_NEEDED_V2 = ("cpu", "cpuset", "memory", "pids")
_NEEDED_V1 = ("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids")
# The kubelet's defaults (pkg/kubelet/apis/config/v1beta1/defaults_linux.go of Kubernetes 1.35.4).
_EVICTION = {"nodefs.available": "10%", "imagefs.available": "15%", "nodefs.inodesFree": "5%", "imagefs.inodesFree": "5%"}
_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "": 1}
_FREE = (
    "df -h {path}; du -xh --max-depth=2 {path} | sort -h | tail",
    "crictl rmi --prune",
    "journalctl --vacuum-size=200M",
)

SWAP = Kind(
    "swap-on",
    "error",
    "swap is on, and the kubelet does not start with it",
    ("swapoff -a", "take the swap out of /etc/fstab", "or set failSwapOn: false in /var/lib/kubelet/config.yaml"),
)
SWAP_BEFORE = Kind(
    "swap-on-before-join",
    "warning",
    "swap is on: a kubelet does not start with it, unless it is told to",
    ("swapoff -a", "take the swap out of /etc/fstab"),
)
SWAP_RETURNS = Kind(
    "swap-returns",
    "warning",
    "swap is off and still in /etc/fstab: after a reboot the kubelet does not start",
    ("take the swap out of /etc/fstab",),
)
UNSYNCHRONIZED = Kind(
    "clock-not-synchronized", "warning", "nothing keeps this machine's clock right", ("timedatectl set-ntp true", "or install chrony")
)
CLOCK_DIFFERS = Kind(
    "clock-differs",
    "error",
    "this machine's clock is {seconds} s {direction} the API server's: certificates and leases are judged wrongly",
    ("timedatectl set-ntp true", "chronyc makestep (with chrony)"),
)
FULL = Kind("disk-full", "error", "the disk under {path} is full ({free} MiB of {total} MiB are free): {purpose}", _FREE)
EVICTING = Kind(
    "disk-low",
    "error",
    "the disk under {path} has {part} % free, and below {threshold} the kubelet evicts Pods and takes no new ones",
    _FREE,
)
NO_INODES = Kind(
    "inodes-low",
    "error",
    "the disk under {path} has {part} % of its inodes free: no more files can be made, or Pods are evicted",
    ("df -i {path}", *_FREE[1:]),
)
NO_CGROUPS = Kind("cgroups-missing", "error", "no cgroups are mounted", ("boot with systemd, which mounts /sys/fs/cgroup",))
CGROUP_V1 = Kind(
    "cgroup-v1-refused",
    "error",
    "this machine has cgroup v1, with which kubelet {version} does not start",
    ("boot with systemd.unified_cgroup_hierarchy=1", "or set failCgroupV1: false in /var/lib/kubelet/config.yaml"),
)
CGROUP_V1_NOTE = Kind(
    "cgroup-v1",
    "note",
    "this machine has cgroup v1, with which kubelets from v1.35 on start only where failCgroupV1 is false",
    ("boot with systemd.unified_cgroup_hierarchy=1",),
)
NO_CONTROLLERS = Kind(
    "cgroup-controllers-missing",
    "error",
    "the kernel has no cgroup controllers {names}, which the kubelet needs",
    ("boot with cgroup_enable=memory and without cgroup_disable in the kernel's command line",),
)


class _Threshold(NamedTuple):
    signal: str
    text: str

    def met(self, free: int, total: int) -> bool:
        """Whether there is less than it asks for; a quantity that is none is never met."""
        if self.text.endswith("%"):
            return total > 0 and free * 100 < _number(self.text[:-1]) * total
        unit = next((unit for unit in _UNITS if unit and self.text.endswith(unit)), "")
        return free < _number(self.text.removesuffix(unit)) * _UNITS[unit]


def find(facts: Facts) -> Iterator[Finding]:
    yield from _swap(facts)
    yield from _clock(facts)
    for disk in facts.disks:
        yield from _disk(facts, disk)
    yield from _cgroups(facts)


def _swap(facts: Facts) -> Iterator[Finding]:
    config = facts.kubelet.config
    if config.get("failSwapOn") is False:
        return
    if facts.swaps:
        yield (SWAP if facts.is_node else SWAP_BEFORE).found(f"/proc/swaps: {', '.join(facts.swaps)}")
    elif facts.swap_in_fstab and facts.is_node:
        yield SWAP_RETURNS.found(f"/etc/fstab: {facts.swap_in_fstab[0]}")


def _clock(facts: Facts) -> Iterator[Finding]:
    if facts.clock.synchronized is False:
        yield UNSYNCHRONIZED.found("timedatectl show: NTPSynchronized=no")
    ahead = facts.api.ahead if facts.api is not None else None
    if facts.api is not None and ahead is not None and abs(ahead) >= _CLOCK_SECONDS:
        direction = "ahead of" if ahead > 0 else "behind"
        yield CLOCK_DIFFERS.found(
            f"the header Date of {facts.api.server}; it is {facts.now:%Y-%m-%d %H:%M:%S} UTC here",
            seconds=round(abs(ahead)),
            direction=direction,
        )


def _disk(facts: Facts, disk: Disk) -> Iterator[Finding]:
    space = disk.space
    shown: dict[str, Any] = {"path": disk.path, "purpose": disk.purpose}
    evidence = f"{disk.path}: {space.free} of {space.total} bytes free"
    image = disk.purpose.startswith("images")
    thresholds = {**_EVICTION, **(facts.kubelet.config.get("evictionHard") or {})} if facts.is_node and _evicts(disk) else {}
    prefix = "imagefs" if image else "nodefs"
    room = _Threshold(f"{prefix}.available", str(thresholds.get(f"{prefix}.available", "0%")))
    if space.total and (space.free < _FULL_PART * space.total or space.free < min(_FULL_BYTES, space.total // 10)):
        yield FULL.found(evidence, free=space.free >> 20, total=space.total >> 20, **shown)
    elif room.met(space.free, space.total):
        yield EVICTING.found(evidence, part=round(100 * space.free / space.total, 1), threshold=f"{room.signal}<{room.text}", **shown)
    inodes = _Threshold(f"{prefix}.inodesFree", str(thresholds.get(f"{prefix}.inodesFree", "1%")))
    if space.inodes and inodes.met(space.inodes_free, space.inodes):
        yield NO_INODES.found(
            f"{disk.path}: {space.inodes_free} of {space.inodes} inodes free",
            part=round(100 * space.inodes_free / space.inodes, 1),
            **shown,
        )


def _evicts(disk: Disk) -> bool:
    """Whether the kubelet watches it: its own folder, and that of images."""
    return disk.purpose.startswith(("images", "the kubelet"))


def _cgroups(facts: Facts) -> Iterator[Finding]:
    if facts.unified is None:
        yield NO_CGROUPS.found("/proc/mounts has no cgroup and no cgroup2")
        return
    if not facts.unified:
        version = _version(facts.kubelet.version)
        refused = version is not None and version >= _CGROUP_V1_REFUSED_SINCE and facts.kubelet.config.get("failCgroupV1") is not False
        # One that runs was told otherwise, wherever.
        if facts.is_node and refused and (facts.kubelet.unit is None or facts.kubelet.unit.active != "active"):
            yield CGROUP_V1.found("/sys/fs/cgroup is no cgroup2; failCgroupV1 is not false", version=f"v{version}")
        else:
            yield CGROUP_V1_NOTE.found("/sys/fs/cgroup is no cgroup2")
    needed = _NEEDED_V2 if facts.unified else _NEEDED_V1
    lacking = [name for name in needed if name not in facts.controllers]
    if lacking:
        yield NO_CONTROLLERS.found(f"the kernel has {', '.join(facts.controllers) or 'none'}", names=", ".join(lacking))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _version(text: str) -> Version | None:
    try:
        return Version.parse(text)
    except ValueError:
        return None


CHECK = Check(
    "machine",
    "swap, the clock, disks and cgroups",
    (
        SWAP,
        SWAP_BEFORE,
        SWAP_RETURNS,
        UNSYNCHRONIZED,
        CLOCK_DIFFERS,
        FULL,
        EVICTING,
        NO_INODES,
        NO_CGROUPS,
        CGROUP_V1,
        CGROUP_V1_NOTE,
        NO_CONTROLLERS,
    ),
    find,
)
