"""The supervisor of one host: ``python -m slipway.lab.launcher <lab folder> <host>``.

It mounts the host's root in a mount namespace of its own, which ends with it and leaves nothing mounted, boots the host, waits,
and boots it again when it reboots.  SIGTERM makes the host power off in order, SIGUSR1 takes its power away.
"""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab import processes
from slipway.lab.hosts import cgroups, files, nextboot, nspawn
from slipway.lab.network import bridge
from slipway.lab.record import Lab, notify_socket

if TYPE_CHECKING:
    from slipway.lab.hosts.files import File
    from slipway.lab.processes import Process
    from slipway.lab.record import HostRecord

STOP_PATIENCE = 30.0
"""How long a host may take to power off before its power is taken away."""
TRIAL = 300.0
"""How long an image that a host was switched to may take to come up before the one before it is booted again."""
_ASK_AGAIN = 0.1
_NSPAWN_RUN = Path("/run/systemd/nspawn")
_MULTI_USER = ("systemctl", "is-active", "--quiet", "multi-user.target")


def command(lab: Lab, host: str) -> list[str]:
    """What starts the launcher of a host."""
    from slipway.lab.programs.cache import cache_root

    environment = f"XDG_CACHE_HOME={cache_root().parent}"
    module = [sys.executable, "-m", "slipway.lab.hosts.launcher", str(lab.folder), host]
    return ["env", environment, "unshare", "--mount", "--propagation", "slave", "--", *module]


class Launcher:
    """One host's supervisor."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab = lab
        self._name = name
        self._folder = lab.host_folder(name)
        self._record = lab.record
        self._status = lab.status(name)
        self._wakeup, wake = socket.socketpair()
        wake.setblocking(False)
        self._wake = wake
        self._stop_by: float | None = None
        self._trial_until: float | None = None
        """When an image that has not been seen to come up is given up."""

    def run(self) -> None:
        signal.set_wakeup_fd(self._wake.fileno())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, lambda _number, _frame: None)  # the wake-up socket carries the number
        message = ""
        try:
            # systemd-nspawn leaves locks and folders there; in this mount namespace they go with it.
            _NSPAWN_RUN.mkdir(parents=True, exist_ok=True)
            bridge.run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(_NSPAWN_RUN))
            while True:
                code = self._life()
                if code != nspawn.REBOOT_EXIT_CODE or self._stop_by is not None:
                    break
            if code != 0 and self._stop_by is None:
                message = f"systemd-nspawn ended with exit code {code}, see {self._folder.console}"
        except OperatorError as error:
            message = error.message
            raise
        finally:
            self._update(phase="off", launcher=None, container=None, leader=None, message=message)

    def _life(self) -> int:
        """One life of the host; where the image that it was switched to does not come up, that of the one before."""
        host = self._prepare()
        if host.fallback is None:
            return self._boot(host)
        why = f"it had not reached multi-user.target within {TRIAL:g} s"
        try:
            code = self._boot(host)
            if self._trial_until is None or self._stop_by is not None or code == nspawn.REBOOT_EXIT_CODE:
                return code
            if time.monotonic() < self._trial_until:
                why = f"systemd-nspawn ended with exit code {code}, see {self._folder.console}"
        except OperatorError as error:
            why = error.message
        return self._boot(self._fall_back(why))

    def _fall_back(self, why: str) -> HostRecord:
        """Boot what was booted before, as a boot loader does with a snapshot that does not come up."""
        with self._lab.locked():
            host = self._lab.host(self._name)
            assert host.fallback is not None
            message = f"the image {host.image.digest} did not boot and {host.fallback.digest} was booted instead: {why}"
            host = msgspec.structs.replace(host, image=host.fallback, fallback=None)
            nextboot.drop_system(self._folder)
            self._lab.save_host(host)
        self._trial_until = None
        self._update(message=message, leader=None)
        return host

    def _boot(self, host: HostRecord) -> int:
        """One boot; the exit code of systemd-nspawn."""
        began = time.monotonic()
        self._trial_until = began + TRIAL if host.fallback is not None else None
        at = notify_socket(self._record, host)
        self._mount(host)
        try:
            self._write_files(host)
            place = cgroups.make(self._record.cgroup, self._name)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
                at.unlink(missing_ok=True)
                at.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                notify.bind(str(at))
                boot = nspawn.boot_command(self._record, host, self._folder)
                enter = ["unshare", "--mount", "--propagation", "slave", "--", "sh", "-c", place.entry, "sh"]
                environment = [f"NOTIFY_SOCKET={at}", "TERM=dumb"]
                container = processes.start(["env", *environment, *enter, *boot], self._folder.console, self._record_container)
                code = self._supervise(host, container, notify, began)
        finally:
            cgroups.remove(cgroups.folders_of(cgroups.mounted_here(), self._record.cgroup, self._name))
            bridge.run("umount", str(self._folder.root))
            at.unlink(missing_ok=True)
        return code

    def _prepare(self) -> HostRecord:
        """Apply what waits for a reboot, on the machine's side."""
        with self._lab.locked():
            host = self._lab.host(self._name)
            for name in nspawn.PERSISTENT:
                (self._folder.persistent / name).mkdir(parents=True, exist_ok=True)
            for folder in (self._folder.upper, self._folder.work, self._folder.root):
                folder.mkdir(exist_ok=True)
            self._folder.upper.chmod(0o755)  # it becomes the host's /
            boot = nextboot.decide(
                host.image,
                nextboot.staged_image(self._folder),
                lambda staged: nextboot.image_of(self._folder, staged),
                marked=nextboot.is_marked(self._folder),
            )
            nextboot.apply(self._folder, boot)
            host = msgspec.structs.replace(host, image=boot.image, fallback=host.image if boot.switched else host.fallback)
            self._lab.save_host(host)
            nextboot.forget(self._folder)
        self._update(message=boot.message)
        return host

    def _mount(self, host: HostRecord) -> None:
        for layer in host.image.layers:
            if not Path(layer).is_dir():
                raise OperatorError(f"{layer}, a layer of the image {host.image.digest}, is gone: build the image again")
        try:
            bridge.run(*nspawn.overlay_command(host.image.layers, self._folder))
        except OperatorError as error:
            hint = "a lab's folder must be on a file system such as ext4, XFS or Btrfs, and not on an overlay itself"
            raise OperatorError(f"{error.message}; {hint}") from error

    def _write_files(self, host: HostRecord) -> None:
        hosts_before = self._folder.root / "etc" / "hosts"
        wanted = files.files(self._record, host, self._lab.hosts(), hosts_before=hosts_before.read_text() if hosts_before.exists() else "")
        if self._status.boots == 0:
            wanted += files.first_files(host, user_data=_text(self._folder.user_data), registration=_text(self._folder.registration))
        for file in wanted:
            write_file(self._folder.root, file)
        (self._folder.root / "var" / "log" / "journal").mkdir(parents=True, exist_ok=True)  # a journal that outlives a boot

    def _record_container(self, container: Process) -> None:
        self._update(phase="booting", container=container, leader=None, boots=self._status.boots + 1, boot_seconds=0.0)

    def _supervise(self, host: HostRecord, container: Process, notify: socket.socket, began: float) -> int:
        handle = os.pidfd_open(container.pid)
        with selectors.DefaultSelector() as selector:
            selector.register(handle, selectors.EVENT_READ)
            selector.register(notify, selectors.EVENT_READ)
            selector.register(self._wakeup, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select(self._timeout())}
                if handle in ready:
                    break
                if notify in ready:
                    self._on_notification(host, notify.recv(4096).decode())
                if self._wakeup in ready:
                    self._on_signals(self._wakeup.recv(64))
                if self._status.phase == "booting" and self._is_up():
                    self._accept_image()
                    self._update(phase="running", boot_seconds=round(time.monotonic() - began, 2))
                if any(by is not None and time.monotonic() > by for by in (self._stop_by, self._trial_until)):
                    self._cut_power()
        os.close(handle)
        return os.waitstatus_to_exitcode(os.waitpid(container.pid, 0)[1])

    def _accept_image(self) -> None:
        """The image that the host was switched to has come up: there is no way back, and no need of one."""
        self._trial_until = None
        with self._lab.locked():
            host = msgspec.structs.replace(self._lab.host(self._name), fallback=None)
            self._lab.save_host(host)
            nextboot.drop_layers(self._folder, host.image)

    def _timeout(self) -> float | None:
        if self._stop_by is not None:
            return max(0.0, self._stop_by - time.monotonic()) + _ASK_AGAIN
        return _ASK_AGAIN if self._status.phase == "booting" else None

    def _on_notification(self, host: HostRecord, text: str) -> None:
        pid = nspawn.leader_in(text)
        if pid is None or self._status.leader is not None:
            return
        self._update(leader=nspawn.identify(pid))
        if host.cut:
            bridge.set_link(self._record, host, up=False)
        if self._stop_by is not None:
            nspawn.send(self._status.leader, nspawn.POWER_OFF)

    def _on_signals(self, numbers: bytes) -> None:
        if signal.SIGUSR1 in numbers:
            self._stop_by = time.monotonic()
        elif self._stop_by is None:
            self._stop_by = time.monotonic() + STOP_PATIENCE
            nspawn.send(self._status.leader, nspawn.POWER_OFF)
        self._update(phase="stopping")

    def _cut_power(self) -> None:
        if not nspawn.send(self._status.leader, signal.SIGKILL):
            nspawn.send(self._status.container, signal.SIGKILL)

    def _is_up(self) -> bool:
        leader = self._status.leader
        if leader is None:
            return False
        asking = nspawn.enter_command(leader.pid, _MULTI_USER, {})
        return subprocess.run(asking, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0

    def _update(self, **changes: object) -> None:
        self._status = msgspec.structs.replace(self._status, **changes)
        self._lab.save_status(self._name, self._status)


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def write_file(root: Path, file: File) -> None:
    """Write a file of a host, in place of what the image has there, be it a symbolic link."""
    path = root / file.path.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.slipway")
    partial.unlink(missing_ok=True)
    if file.target:
        partial.symlink_to(file.target)
    else:
        partial.write_bytes(file.content.encode() if isinstance(file.content, str) else file.content)
        partial.chmod(file.mode)
    partial.rename(path)


def main(argv: list[str]) -> int:
    folder, host = Path(argv[0]), argv[1]
    os.umask(0o022)
    print(f"launcher of {shlex.quote(host)}, process {os.getpid()}", flush=True)
    try:
        Launcher(Lab(folder.name, folder), host).run()
    except OperatorError as error:
        print(f"error: {error.message}", flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
