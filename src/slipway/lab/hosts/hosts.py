"""The hosts of a lab, as an operator handles them: create, start, stop, reboot, enter, read, unplug, delete.

Each host runs under a launcher of its own, see :mod:`slipway.lab.hosts.launcher`; the commands here write records, send signals and
wait.  A command that was carried out already changes nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.host.interface import CommandResult
from slipway.lab import processes, requirements, teardown
from slipway.lab.hosts import files, launcher, nextboot, nspawn
from slipway.lab.network import bridge
from slipway.lab.record import ImageRecord, Status, new_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.host.progress import Progress
    from slipway.lab.record import HostRecord, Lab

BOOT_PATIENCE = 120.0
_LOOK_AGAIN = 0.05
_SPARE = 15.0
"""What a launcher may take beyond a host's own end."""


class Image(Protocol):
    """An OS image, as far as a host needs to know."""

    @property
    def digest(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def layers(self) -> Sequence[Path]: ...


class HostInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What there is to tell of a host."""

    name: str
    state: str
    """off, starting, booting, running, stopping; unsupervised when its launcher died and it runs on."""
    address: str
    mac: str
    uuid: str
    serial: str
    pod_range: str
    version: str
    image: str
    staged_image: str
    link: str
    """up, or cut."""
    boots: int
    boot_seconds: float
    pid: int
    """The host's PID 1 on the machine; 0 where it does not run."""
    message: str


def create(lab: Lab, name: str, image: Image, *, user_data: str | None = None, registration: str | None = None) -> HostRecord:
    """A host that boots ``image``, off; ``user_data`` is for cloud-init, ``registration`` for the agent, both at its first boot."""
    requirements.check_machine()
    requirements.check_space(lab.folder)
    wanted = ImageRecord(digest=image.digest, version=image.version, layers=tuple(str(layer) for layer in image.layers))
    for layer in wanted.layers:
        if not Path(layer).is_dir():
            raise OperatorError(f"{layer}, a layer of the image {wanted.digest}, is not a folder: build the image again")
    record = lab.record
    with lab.locked():
        existing = {host.name: host for host in lab.hosts()}
        if name in existing:
            if existing[name].image != wanted:
                raise OperatorError(
                    f'the host "{name}" is there with another image ({existing[name].image.digest}): '
                    "delete it first, or stage the image in it and reboot"
                )
            return existing[name]
        host = new_host(record, existing.values(), name, wanted, uuid.uuid4())
        lab.save_host(host)
        folder = lab.host_folder(name)
        for path, text in ((folder.user_data, user_data), (folder.registration, registration)):
            if text is not None:
                path.touch(mode=0o600)
                path.write_text(text)
        bridge.up(lab)
        _introduce(lab, host)
    return host


def start(lab: Lab, name: str, progress: Progress, *, patience: float = BOOT_PATIENCE) -> HostInfo:
    """Boot a host, and wait until it has reached multi-user.target."""
    begin(lab, name)
    progress.say(f"[host] {name}: booting")
    info = wait_running(lab, name, patience=patience)
    progress.say(f"[host] {name}: running at {info.address}, booted in {info.boot_seconds:.1f} s")
    return info


def begin(lab: Lab, name: str) -> None:
    """Start a host's launcher and do not wait, so that several hosts boot at the same time."""
    requirements.check_machine()
    lab.host(name)
    with lab.locked():
        host = lab.host(name)
        if _is_supervised(lab.status(name)):
            return
        boots = lab.status(name).boots
        teardown.end_host(lab, host)  # what is left of a life that ended badly
        bridge.up(lab)
        processes.start(
            launcher.command(lab, name),
            lab.host_folder(name).launcher_log,
            lambda process: lab.save_status(name, Status(phase="starting", launcher=process, boots=boots)),
        )


def wait_running(lab: Lab, name: str, *, patience: float = BOOT_PATIENCE, after_boot: int = 0) -> HostInfo:
    """Wait until a host is up, in a boot later than ``after_boot``."""
    lab.host(name)

    def is_up() -> bool:
        status = lab.status(name)
        if not _is_supervised(status):
            words = _last_words(lab, name)
            raise OperatorError(f"the host {name} did not boot: {status.message or 'its launcher died'}{_likely_cause(words)}{words}")
        return status.phase == "running" and status.boots > after_boot

    if not _wait(is_up, patience):
        raise OperatorError(
            f"the host {name} has not reached multi-user.target within {patience:g} s: "
            f"`slipway lab host exec {name} -- systemctl list-jobs` shows what it waits for{_last_words(lab, name)}"
        )
    return describe(lab, lab.host(name))


def stop(lab: Lab, name: str) -> None:
    """Power a host off in order; one that does not follow has its power taken away."""
    _end(lab, name, signal.SIGTERM, nspawn.POWER_OFF)


def power_off(lab: Lab, name: str) -> None:
    """Take a host's power away: nothing in it gets a chance to save anything."""
    _end(lab, name, signal.SIGUSR1, signal.SIGKILL)


def restart(lab: Lab, name: str, progress: Progress, *, patience: float = BOOT_PATIENCE) -> HostInfo:
    """Reboot a host in order, which applies what is staged in it, and wait until it is up again."""
    status = _running_status(lab, name)
    if not _is_supervised(status):
        raise OperatorError(f"the host {name} cannot be rebooted, because its launcher died: stop it and start it again")
    nspawn.send(status.leader, nspawn.REBOOT)
    progress.say(f"[host] {name}: rebooting")
    info = wait_running(lab, name, patience=patience + launcher.STOP_PATIENCE, after_boot=status.boots)
    progress.say(f"[host] {name}: running {info.version} at {info.address}, booted in {info.boot_seconds:.1f} s")
    if info.message:
        progress.warn(f"[host] {name}: {info.message}")
    return info


def execute(lab: Lab, name: str, command: Sequence[str]) -> int:
    """Run a program in a host with this program's own input and output; its exit code."""
    done = subprocess.run(entering(lab, name, command), check=False)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def capture(lab: Lab, name: str, command: Sequence[str], *, stdin: str = "", patience: float | None = None) -> CommandResult:
    """Run a program in a host; its exit code and output."""
    try:
        done = subprocess.run(entering(lab, name, command), input=stdin, capture_output=True, text=True, check=False, timeout=patience)
    except subprocess.TimeoutExpired as error:
        raise OperatorError(f"`{' '.join(command)}` on the host {name} has not ended within {patience:g} s") from error
    return CommandResult(done.returncode, done.stdout, done.stderr)


def logs(lab: Lab, name: str, *, console: bool = False, follow: bool = False, unit: str = "", lines: int = 0) -> int:
    """Show a host's journal, or what it wrote to its console; the exit code of the program that shows it."""
    lab.host(name)
    folder = lab.host_folder(name)
    if not (folder.console if console else folder.journal).exists():
        raise OperatorError(f"the host {name} has no logs: it was never started")
    shown = subprocess.run(log_command(folder.console, folder.journal, console=console, follow=follow, unit=unit, lines=lines), check=False)
    return shown.returncode


def log_command(console_log: Path, journal: Path, *, console: bool, follow: bool, unit: str, lines: int) -> list[str]:
    """What shows a host's logs; they are files of the machine, so that a host that is off has them too."""
    if console:
        return ["tail", *(["--follow=name"] if follow else []), f"--lines={lines or '+1'}", str(console_log)]
    options = [*(["--follow"] if follow else []), *([f"--unit={unit}"] if unit else []), *([f"--lines={lines}"] if lines else [])]
    return ["journalctl", f"--directory={journal}", "--no-pager", *options]


def delete(lab: Lab, name: str) -> None:
    """Remove a host and everything that it has."""
    lab.host(name)
    with lab.locked():
        teardown.delete_host(lab, lab.host(name))


def cut(lab: Lab, name: str) -> None:
    """Drop a host's network link, as a cable that is pulled out; it stays so through reboots."""
    _set_cut(lab, name, cut=True)


def restore_link(lab: Lab, name: str) -> None:
    """Put the cable back in."""
    _set_cut(lab, name, cut=False)


def list_hosts(lab: Lab) -> list[HostInfo]:
    """Every host, for a table or for JSON."""
    return [describe(lab, host) for host in lab.hosts()]


def describe(lab: Lab, host: HostRecord) -> HostInfo:
    status = lab.status(host.name)
    state = observed(status, supervised=_is_supervised(status), alive=_is_alive(status.leader))
    died = state == "off" and status.phase != "off"
    return HostInfo(
        name=host.name,
        state=state,
        address=host.address,
        mac=host.mac,
        uuid=host.uuid,
        serial=host.serial,
        pod_range=host.pod_range,
        version=host.image.version,
        image=host.image.digest,
        staged_image=staged.reference if (staged := nextboot.staged_image(lab.host_folder(host.name))) is not None else "",
        link="cut" if host.cut else "up",
        boots=status.boots,
        boot_seconds=status.boot_seconds,
        pid=status.leader.pid if state != "off" and status.leader is not None else 0,
        message="it died, and its launcher too" if died else status.message,
    )


def observed(status: Status, *, supervised: bool, alive: bool) -> str:
    """The state of a host, which is what its launcher last wrote only as long as that runs."""
    if supervised:
        return status.phase
    return "unsupervised" if alive else "off"


def _end(lab: Lab, name: str, to_launcher: int, to_leader: int) -> None:
    lab.host(name)
    status = lab.status(name)
    if status.launcher is not None and nspawn.send(status.launcher, to_launcher):
        nspawn.ended(status.launcher, launcher.STOP_PATIENCE + _SPARE)
    elif status.leader is not None and nspawn.send(status.leader, to_leader):
        nspawn.ended(status.leader, launcher.STOP_PATIENCE)
    with lab.locked():
        host = lab.host(name)
        last = lab.status(name)
        if last.launcher == status.launcher or not _is_supervised(last):  # nobody has started it again meanwhile
            teardown.end_host(lab, host)
            lab.save_status(name, Status(boots=last.boots, message=last.message))


def _set_cut(lab: Lab, name: str, *, cut: bool) -> None:
    lab.host(name)
    with lab.locked():
        host = msgspec.structs.replace(lab.host(name), cut=cut)
        lab.save_host(host)
        bridge.set_link(lab.record, host, up=not cut)


def _introduce(lab: Lab, new: HostRecord) -> None:
    """Tell the hosts that run of one that is new; the others read of it when they boot."""
    everyone = lab.hosts()
    for host in everyone:
        leader = lab.status(host.name).leader
        if host.name == new.name or not _is_alive(leader) or leader is None:
            continue
        path = Path("/proc", str(leader.pid), "root", "etc", "hosts")
        path.write_text(files.hosts_file(path.read_text(), host, everyone))


def entering(lab: Lab, name: str, command: Sequence[str]) -> list[str]:
    """The command that runs another one in a host."""
    return nspawn.enter_command(leader(lab, name), command, os.environ)


def leader(lab: Lab, name: str) -> int:
    """The PID 1 of a host that runs, as this machine numbers it."""
    found = _running_status(lab, name).leader
    assert found is not None
    return found.pid


def _running_status(lab: Lab, name: str) -> Status:
    lab.host(name)
    status = lab.status(name)
    if not _is_alive(status.leader):
        raise OperatorError(f"the host {name} is off: start it with `slipway lab host start {name}`")
    return status


def _is_supervised(status: Status) -> bool:
    return status.launcher is not None and processes.is_running(status.launcher)


def _is_alive(process: processes.Process | None) -> bool:
    return process is not None and processes.is_running(process)


def _wait(condition: Callable[[], bool], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_AGAIN)
    return True


def _likely_cause(words: str) -> str:
    """systemd says nothing more where the machine has no inotify instance left for it."""
    if "Failed to allocate manager object" not in words:
        return ""
    limit = Path("/proc/sys/fs/inotify/max_user_instances").read_text().strip()
    return (
        f"\n  The likely cause: every host takes about 15 inotify instances, and this machine allows {limit} of them. "
        "Take another lab down, or raise fs.inotify.max_user_instances with sysctl"
    )


def _last_words(lab: Lab, name: str) -> str:
    """The end of what the launcher and the console have to say."""
    folder = lab.host_folder(name)
    lines = [
        line for log in (folder.launcher_log, folder.console) if log.exists() for line in log.read_text(errors="replace").splitlines()[-5:]
    ]
    return "".join(f"\n  {line}" for line in lines)
