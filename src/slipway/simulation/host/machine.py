"""A machine that is not there: hardware, files, services, containers, images and power.

It knows nothing of Kubernetes but that a container may be one of its components: what a kubelet does with it is the kubelet's.  The agent
works on it from a thread of its own, everything else from the event loop; both see one another's work at once.
"""

from __future__ import annotations

import errno
import hashlib
import threading
import time
import uuid
from collections import Counter
from ipaddress import IPv4Address, IPv4Interface
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.simulation.host.faults import Chance, Faults, PowerLost
from slipway.simulation.host.files import File, FileTree, Link, failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.credentials.tpm import Identity
    from slipway.simulation.host.images import ImageRegistry, OsImage
    from slipway.simulation.shell.process import Process

UNITS = ("containerd.service", "kubelet.service")
MASKS = "/etc/systemd/system"
TASKS = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
EXECUTABLE = b"\x7fSIMULATED "
_AHEAD = "/var/lib/slipway/ahead"
_VOLATILE = ("/run", "/tmp", "/proc")
_FOLDERS = ("/bin", "/dev", "/etc/systemd/system", "/oem", "/opt", "/root", "/sys", "/usr/bin", "/usr/local/bin", "/var/lib", "/var/log")


class Hardware(NamedTuple):
    name: str
    uuid: str
    serial: str
    mac: str
    address: str
    """With its prefix length, as in 10.1.0.7/24."""
    gateway: str = ""
    interface: str = "eth0"
    vendor: str = "Slipway"
    product: str = "Simulated Host"
    disk: int = 100 << 30


def hardware(name: str, number: int, *, network: str = "10.64") -> Hardware:
    """One of many, each of its own kind."""
    identity = uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4)
    third, fourth = divmod(number, 250)
    return Hardware(
        name=name,
        uuid=str(identity),
        serial=f"SIM{number:08d}",
        mac=f"02:53:{number >> 24 & 255:02x}:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}",
        address=f"{network}.{third}.{fourth + 2}/16",
        gateway=f"{network}.0.1",
    )


class Container(NamedTuple):
    """A running container, and the process that it is."""

    id: str
    pod: str
    """``namespace/name``, the Node's name not in it."""
    name: str
    pid: int
    uid: str = ""


class Machine:
    """``pace`` is how long a second of the machine takes: 1.0 as it really would, 0 no time at all."""

    def __init__(self, hardware: Hardware, image: OsImage, registry: ImageRegistry, *, seed: int = 0, pace: float = 0.0) -> None:
        self.hardware, self.registry, self.pace = hardware, registry, pace
        self.faults, self.chance = Faults(), Chance(seed)
        self.tree = FileTree()
        self.installed, self.fallback = image, image
        self.staged: OsImage | None = None
        self.powered, self.ready = False, False
        """``ready``: the kernel of the installed image runs, with its services."""
        self.boots = 0
        self.boot_seconds: float | None = None
        """How long a boot takes, where that is known; else it is made up."""
        self.heartbeat: float | None = None
        """Real seconds between two signs of life of its kubelet, where they do not follow from the pace."""
        self.hostname = "localhost"
        self.active: set[str] = set()
        self.containers: dict[str, Container] = {}
        self.addresses: dict[str, list[str]] = {}
        self.reboot_wanted = threading.Event()
        self.changed: Callable[[], None] = lambda: None
        """Called after a change of power, services, containers or addresses; from any thread."""
        self.started: Counter[str] = Counter()
        """How often each program was started since the boot."""
        self.cpu_seconds = 0.0
        self.tpm: Identity | None = None
        """On its board, where it has one."""
        self._pids = 1000
        # The agent stops services from its thread while the kubelet works in another.
        self._services = threading.Lock()
        self._snapshot(image, 1)

    # Power.

    def check_power(self, boot: int) -> None:
        """Nothing goes on in a boot that is over."""
        if not self.powered or boot != self.boots:
            raise PowerLost

    def power_on(self) -> bool:
        """Whether it comes on at all; its disk is as it was, everything else is gone."""
        if self.faults.dead:
            return False
        self.boots += 1
        self.powered, self.ready = True, False
        self.reboot_wanted.clear()
        with self._services:
            self.active.clear()
            self.containers.clear()
        self.started.clear()
        self.addresses = {"lo": ["127.0.0.1/8"], self.hardware.interface: [self.hardware.address]}
        for folder in _VOLATILE:
            self.tree.remove(folder)
        for folder in (*_VOLATILE, *_FOLDERS):
            self.tree.make_dirs(folder)
        if self.tree.find("/var/run", follow=False) is None:
            self.tree.link("/var/run", "/run")
        self._proc_and_sys()
        self.changed()
        return True

    def power_off(self) -> None:
        self.powered, self.ready = False, False
        with self._services:
            self.active.clear()
            self.containers.clear()
        self.addresses.clear()
        self.changed()

    def switch_image(self) -> None:
        """What the boot loader does: the staged image, or the one before where that does not boot."""
        if self.staged is not None:
            if not self.faults.boots_fallback:
                self.fallback, self.installed = self.installed, self.staged
            self.staged = None
        self.tree.make_dirs("/usr/lib/systemd/system")
        for unit in UNITS:
            self.tree.write(f"/usr/lib/systemd/system/{unit}", b"[Install]\nWantedBy=multi-user.target\n")
        for program in ("kubelet", "kubeadm"):
            self.tree.write(f"/usr/bin/{program}", executable(program, self.installed.kubernetes), 0o755)
        self.tree.write("/etc/os-release", self.installed.os_release().encode())

    def pause(self, seconds: float, boot: int, stopped: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, as long as there is power, and nobody wants an end of it."""
        if self.pace:
            end = time.monotonic() + seconds * self.pace
            while (left := end - time.monotonic()) > 0 and not stopped():
                time.sleep(min(left, 0.05))
                self.check_power(boot)
        else:
            time.sleep(0)
        self.check_power(boot)

    # Images.

    def stage(self, image: OsImage) -> None:
        """The system of the next boot; the present one is what is fallen back to."""
        self.staged = image
        number = max((int(name) for name in self.tree.names("/.snapshots") if name.isdecimal()), default=0) + 1
        self._snapshot(image, number)
        kept = sorted((int(name) for name in self.tree.names("/.snapshots") if name.isdecimal()), reverse=True)
        for old in kept[4:]:
            self.tree.remove(f"/.snapshots/{old}")

    def check_space(self, path: str) -> None:
        """Nothing is written to a disk that is full; what is in memory is."""
        if self.faults.disk_full and not path.startswith(_VOLATILE):
            raise failure(errno.ENOSPC, path)

    def free_bytes(self) -> int:
        if self.faults.disk_full:
            return 0
        copies = sum(len(self.tree.names(folder)) for folder in ("/.snapshots", _AHEAD) if self.tree.is_dir(folder))
        return self.hardware.disk - copies * self.installed.size

    def _snapshot(self, image: OsImage, number: int) -> None:
        self.unpack(image, f"/.snapshots/{number}/snapshot")

    def unpack(self, image: OsImage, root: str) -> None:
        """The root file system of an image, as far as somebody looks into it."""
        self.tree.make_dirs(f"{root}/usr/bin")
        self.tree.make_dirs(f"{root}/etc")
        for program in ("kubelet", "kubeadm"):
            self.tree.write(f"{root}/usr/bin/{program}", executable(program, image.kubernetes), 0o755)
        self.tree.write(f"{root}/etc/os-release", image.os_release().encode())

    # Services.

    def is_masked(self, unit: str) -> bool:
        entry = self.tree.find(f"{MASKS}/{unit}", follow=False)
        return isinstance(entry, Link) and entry.target == "/dev/null"

    def start(self, unit: str) -> bool:
        """Whether it may run."""
        if self.is_masked(unit):
            return False
        self.active.add(unit)
        self.changed()
        return True

    def stop(self, unit: str) -> None:
        """When this returns the unit does nothing any more, as with systemd.  Containers stay: their shims are nobody's children."""
        with self._services:
            self.active.discard(unit)
        self.changed()

    # Containers.

    def run_container(self, pod: str, name: str, uid: str = "", *, by: str = "") -> Container | None:
        """``by`` is the unit that runs it: None where that was stopped meanwhile, and starts nothing any more."""
        with self._services:
            if by and by not in self.active:
                return None
            self._pids += 1
            made = Container(hashlib.sha256(f"{pod}/{name}/{self._pids}".encode()).hexdigest()[:24], pod, name, self._pids, uid)
            self.containers[made.id] = made
            self.tree.make_dirs(f"{TASKS}/{made.id}")
            self.tree.make_dirs(f"/proc/{made.pid}")
            self.tree.write(f"/proc/{made.pid}/comm", f"{name[:15]}\n".encode())
        self.changed()
        return made

    def end_container(self, id: str) -> None:  # noqa: A002 - the word of the runtime
        ended = self.containers.pop(id, None)
        if ended is not None:
            self.tree.remove(f"{TASKS}/{id}")
            self.tree.remove(f"/proc/{ended.pid}")
            self.changed()

    def signal(self, pid: int, *, kill: bool = False) -> bool:
        """Whether there was such a process; keepalived gives its address back when it is asked to end, and not when it is killed."""
        found = next((container for container in self.containers.values() if container.pid == pid), None)
        if found is None:
            return False
        if found.name == "keepalived":
            if self.faults.keepalived_hangs and not kill:
                return True
            if not kill:
                self.addresses[self.hardware.interface] = [self.hardware.address]
        self.end_container(found.id)
        return True

    def running(self, name: str) -> Container | None:
        return next((container for container in self.containers.values() if container.name == name), None)

    # What the kernel shows.

    def _proc_and_sys(self) -> None:
        boot_id = uuid.UUID(bytes=hashlib.sha256(f"{self.hardware.uuid} {self.boots}".encode()).digest()[:16], version=4)
        place = {
            "/proc/sys/kernel/random/boot_id": str(boot_id),
            "/proc/sys/kernel/hostname": self.hostname,
            "/proc/meminfo": "MemTotal: 16384000 kB",
            "/proc/mounts": "/dev/vda / ext4 rw,relatime 0 0",
            "/proc/cpuinfo": "processor\t: 0\nmodel name\t: Simulated",
            "/sys/class/dmi/id/product_uuid": self.hardware.uuid,
            "/sys/class/dmi/id/product_serial": self.hardware.serial,
            "/sys/class/dmi/id/product_name": self.hardware.product,
            "/sys/class/dmi/id/sys_vendor": self.hardware.vendor,
            f"/sys/class/net/{self.hardware.interface}/address": self.hardware.mac,
            f"/sys/class/net/{self.hardware.interface}/mtu": "1500",
            f"/sys/class/net/{self.hardware.interface}/operstate": "up",
            "/sys/class/net/lo/address": "00:00:00:00:00:00",
            "/proc/net/route": self._routes(),
            "/etc/resolv.conf": f"nameserver {self.hardware.gateway}",
        }
        for path, text in place.items():
            self.tree.make_dirs(path.rpartition("/")[0])
            self.tree.write(path, f"{text}\n".encode())
        if not self.tree.exists("/etc/machine-id"):
            self.tree.write("/etc/machine-id", f"{self.hardware.uuid.replace('-', '')}\n".encode())

    def _routes(self) -> str:
        own = IPv4Interface(self.hardware.address)
        words = [int.from_bytes(IPv4Address(each).packed, "little") for each in (self.hardware.gateway, own.network[0], own.netmask)]
        gateway, network, mask = (f"{word:08X}" for word in words)
        name = self.hardware.interface
        return (
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
            f"{name}\t00000000\t{gateway}\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
            f"{name}\t{network}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0"
        )

    def program(self, name: str) -> Callable[[Process], int] | None:
        from slipway.simulation.host import programs

        return programs.find(self, name)

    def begin_program(self, name: str) -> None:
        """A program is started: now is when the power may go."""
        self.started[name] += 1
        wanted, _, nth = self.faults.power_cut_at.partition(":")
        if wanted == name and self.started[name] == int(nth or 1):
            self.faults = msgspec.structs.replace(self.faults, power_cut_at="")
            self.power_off()
            raise PowerLost


def executable(program: str, version: str) -> bytes:
    return EXECUTABLE + f"{program} {version}\n".encode()


def executed(tree: FileTree, path: str) -> tuple[str, str] | None:
    """The program and the version of an executable in the tree."""
    entry = tree.find(path)
    if not isinstance(entry, File) or not entry.content.startswith(EXECUTABLE):
        return None
    program, _, version = entry.content.removeprefix(EXECUTABLE).decode().strip().partition(" ")
    return program, version
