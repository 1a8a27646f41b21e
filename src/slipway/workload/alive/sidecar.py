"""The side car of keepalived: brings it new peers, keeps the Lease of the address, and takes away what a keepalived left that was killed
or hangs.

It talks to the API server of its own host, since the virtual address is what it serves.  It does so with the host's admin.conf, of which
it takes the certificates and not the server.  A smaller credential would guard nothing: who is root in a container of this host that has
its network has the keys of the cluster's authority beside it; a ServiceAccount has no token before there is an API; and the kubelet's
certificate may read no ConfigMap that its Pods do not refer to, nor write a Lease that is not its Node's.

Without the API everything stays as it is: the last file stands, and the Lease is nobody's condition.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.host import netlink
from slipway.kube import connection, kubeconfig
from slipway.kube.client import Client
from slipway.kube.errors import ApiError
from slipway.workload.alive import keepalived, lease, pod, pulse, values
from slipway.workload.alive.lease import Action, Memory, Situation
from slipway.workload.alive.pulse import Beat, Pulse
from slipway.workload.alive.values import CONFIG_MAP, LEASE, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.workload.alive.values import Values

ADMIN_KUBECONFIG = f"{pod.KUBERNETES_FOLDER}/admin.conf"
# A name that every serving certificate of kubeadm has, whatever address the API server advertises.
_SERVER_NAME = "kubernetes"

_WATCH_SECONDS = 300.0
_RETRY_SECONDS = 5.0
_LEAVE_SECONDS = 20.0
_LOOK_SECONDS = 0.05
# Others take over three seconds after they last heard of this host: by then an address without a keepalived must be gone.
_GUARD_SECONDS = 0.5
_CALM_SECONDS = 1.0
_REQUEST_SECONDS = 5.0


class Files(NamedTuple):
    """Where everything is."""

    values: Path = Path(pod.VALUES)
    configuration: Path = Path(pod.CONFIGURATION)
    give_way: Path = Path(keepalived.YIELD_FILE)
    process_id: Path = Path(keepalived.PROCESS_ID_FILE)
    vrrp_id: Path = Path(keepalived.VRRP_ID_FILE)
    kubeconfig: Path = Path(ADMIN_KUBECONFIG)


def run(files: Files | None = None) -> None:
    """Until SIGTERM: then keepalived is ended first, and its address awaited to be gone."""
    files = files or Files()
    try:
        known = values.decode(files.values.read_bytes(), str(files.values))
    except OSError as error:
        raise OperatorError(f"cannot read {files.values}, which comes with the host's user-data: {error.strerror or error}") from None
    name = os.environ.get("NODE_NAME") or os.uname().nodename
    side_car = SideCar(name, known, files)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: side_car.stop.set())
    side_car.run()


class SideCar:
    """One thread watches the ConfigMap, the other one looks after the Lease."""

    def __init__(
        self,
        name: str,
        known: Values,
        files: Files,
        *,
        addresses: Callable[[str], list[str]] = netlink.addresses,
        remove_address: Callable[[str, str, int], None] = netlink.remove_address,
        connect: Callable[[], Client] | None = None,
        fault_of: Callable[[Path], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._known = known
        self._files = files
        self._addresses = addresses
        self._remove_address = remove_address
        self._clock = clock
        # Since when the address has been without a keepalived; None where it is not.
        self._orphaned_at: float | None = None
        self._pulse = Pulse(Beat(), clock())
        self._connect = connect or self._connect_to_this_host
        self._fault_of = fault_of or _fault_of
        self._memory = Memory()
        self._last = Action.NOTHING
        self._given_way = False
        self._patience = lease.FIRST_PATIENCE
        # When it last gave way or came back.
        self._turned = -lease.LONGEST_PATIENCE
        self._told: dict[str, str] = {}
        self._lease_client: Client | None = None
        self.stop = threading.Event()

    def run(self) -> None:
        self._set_given_way(given_way=False)
        self._say(f"{self._known.vip} on {self._known.interface}, with {', '.join(self._known.peers)}")
        watching = threading.Thread(target=self._watch_for_ever, name="peers", daemon=True)
        watching.start()
        next_look = 0.0
        while not self.stop.wait(_GUARD_SECONDS):
            self.guard()
            if (now := time.monotonic()) >= next_look:
                next_look = now + lease.PERIOD_SECONDS
                self.arbitrate()
        self.leave()

    def has_address(self) -> bool:
        try:
            return self._known.vip in self._addresses(self._known.interface)
        except OSError:
            return False  # the device is gone, and what it had

    def guard(self) -> None:
        """Take the address away from a keepalived that does not look after it: one that is gone, or one that hangs, which is ended.

        The next one may be long in coming, as the kubelet waits ever longer before it starts a container again.
        """
        now, holder = self._clock(), self.has_address()
        main = pulse.process(self._files.process_id)
        self._pulse = self._pulse.felt(pulse.beat(self._files.vrrp_id), now)
        if main is None:
            # One that starts has a while until it must be heard of.
            self._pulse = Pulse(Beat(), now)
            if not holder:
                self._orphaned_at = None
            elif self._orphaned_at is None:
                self._orphaned_at = now
            elif now - self._orphaned_at >= _CALM_SECONDS:
                self._take_away("is gone")
            return
        self._orphaned_at = None
        if not self._pulse.hangs(now, holder=holder):
            return
        if holder:
            self._take_away("hangs")
        self._say(f"keepalived has done nothing for {now - self._pulse.since:.1f} s and is ended, so that the kubelet starts it anew")
        for process in (self._pulse.beat.process, main):
            if process:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def _take_away(self, why: str) -> None:
        try:
            self._remove_address(self._known.interface, self._known.vip, 32)
            self._say(f"keepalived {why} and left {self._known.vip} behind: taken away")
        except OSError as error:
            self._say_once("orphan", f"keepalived {why} and left {self._known.vip} behind, which cannot be taken away: {error}")

    def arbitrate(self) -> None:
        """Look at the Lease once, where that is of interest, and do what follows from it."""
        now = time.monotonic()
        situation = Situation(self._name, self.has_address(), self._given_way, now, patient=now - self._turned < self._patience)
        if not lease.is_of_interest(situation, self._last):
            return
        try:
            action = self._judge(situation)
        except OperatorError as error:
            # Nobody to ask: VRRP alone decides, as it would without a Lease.
            self._say_once("lease", f"the Lease cannot be kept: {error.message}")
            self._forget_client()
            self._memory, action = Memory(), Action.COME_BACK if self._given_way else Action.NOTHING
        else:
            self._told.pop("lease", None)
        if action is Action.GIVE_WAY:
            self._say(f"{self._memory.holder} has the address as well and holds the Lease: this host gives way")
            self._patience, self._turned = lease.patience(self._patience, now - self._turned), now
            self._set_given_way(given_way=True)
        elif action is Action.COME_BACK:
            self._say("this host may have the address again")
            self._turned = now
            self._set_given_way(given_way=False)

    def watch_once(self, seconds: float) -> None:
        """Follow the ConfigMap for a while."""
        client = self._connect()
        try:
            selected = {"metadata.name": CONFIG_MAP}
            for event in client.watch("v1", "ConfigMap", NAMESPACE, fields=selected, timeout=seconds):
                self._told.pop("peers", None)
                # One that was deleted says nothing about peers, and the last file stands.
                if event.type != "DELETED":
                    self.apply(values.updated(self._known, event.object))
        finally:
            client.close()

    def apply(self, wanted: Values) -> None:
        """Write the file where it changes, and have keepalived read it; one that keepalived does not take is not left there."""
        text = keepalived.rendered(wanted)
        path = self._files.configuration
        if path.exists() and path.read_text() == text:
            return
        partial = path.with_name(f".{path.name}.new")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if fault := self._fault_of(partial):
            partial.unlink()
            raise OperatorError(f"keepalived does not take the new configuration, and the old one stands: {fault}")
        partial.rename(path)
        self._say(f"the peers are {', '.join(wanted.peers)}")
        self._signal(signal.SIGHUP)

    def leave(self) -> None:
        """End keepalived, which takes the address away, and wait until it is gone."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + _LEAVE_SECONDS
        while self.has_address():
            if time.monotonic() > deadline:
                raise OperatorError(
                    f"{self._known.vip} is still on {self._known.interface} {_LEAVE_SECONDS:g} s after keepalived was told to end: "
                    f"remove it with `ip address delete {self._known.vip}/32 dev {self._known.interface}`"
                )
            time.sleep(_LOOK_SECONDS)
        self._say(f"{self._known.vip} is not on this host")
        if self._last is Action.HOLD:
            self.arbitrate()

    def _judge(self, situation: Situation) -> Action:
        if self._lease_client is None:
            self._lease_client = self._connect()
        client = self._lease_client
        found = client.get(lease.API_VERSION, lease.KIND, LEASE, NAMESPACE)
        action, self._memory = lease.decide(self._memory, situation, found)
        now = datetime.now(UTC)
        try:
            if action is Action.HOLD:
                written = lease.held(found, self._name, now)
                _ = client.create(written) if found is None else client.update(written)
            elif action is Action.RELEASE and found is not None:
                client.update(lease.released(found, now))
        except ApiError as error:
            if error.code != 409:
                raise
            # Somebody else wrote at the same moment: the next look shows who.
            return Action.NOTHING
        self._last = action
        return action

    def _watch_for_ever(self) -> None:
        while not self.stop.is_set():
            pause = _CALM_SECONDS
            try:
                self.watch_once(_WATCH_SECONDS)
            except (OperatorError, OSError) as error:
                self._say_once("peers", f"the peers stay as they are: {error}")
                pause = _RETRY_SECONDS
            self.stop.wait(pause)

    def _connect_to_this_host(self) -> Client:
        path = self._files.kubeconfig
        try:
            document = kubeconfig.load(path.read_bytes(), str(path))
        except OSError as error:
            raise OperatorError(f"cannot read {path}: {error.strerror or error}") from None
        found = connection.from_kubeconfig(document, lambda name: Path(name).read_bytes(), source=str(path))
        here = _replaced(found, server=f"https://{self._known.address}:{self._known.port}", tls_server_name=_SERVER_NAME)
        return Client(here, timeout=_REQUEST_SECONDS, environment={})

    def _forget_client(self) -> None:
        """The next one reads the credentials anew: they are renewed from time to time."""
        if self._lease_client is not None:
            self._lease_client.close()
            self._lease_client = None

    def _set_given_way(self, *, given_way: bool) -> None:
        self._files.give_way.write_text("1\n" if given_way else "0\n")
        self._given_way = given_way

    def _signal(self, number: signal.Signals) -> None:
        process = pulse.process(self._files.process_id)
        if process is None:
            self._say(f"keepalived does not run, so nobody gets {number.name}")
            return
        os.kill(process, number)

    def _say_once(self, about: str, text: str) -> None:
        """What goes on for minutes is told when it begins."""
        if self._told.get(about) != text:
            self._told[about] = text
            self._say(text)

    def _say(self, text: str) -> None:
        sys.stdout.write(f"[alive] {text}\n")
        sys.stdout.flush()


def _fault_of(path: Path) -> str:
    """What keepalived has against a configuration; empty where it takes it."""
    import subprocess

    command = [pod.PROGRAM, "--config-test", f"--use-file={path}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LEAVE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not say within {_LEAVE_SECONDS:g} s"
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip() or f"it ended with {done.returncode}"


def _replaced(found: connection.Connection, *, server: str, tls_server_name: str) -> connection.Connection:
    import msgspec

    return msgspec.structs.replace(found, server=server, tls_server_name=tls_server_name, proxy_url="")
