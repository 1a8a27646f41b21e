"""A management plane: etcd, the API server and the controller manager of one Kubernetes version, as processes.

It has the TLS, the RBAC and the admission of a real control plane, and no nodes: it is what controllers that manage
other clusters work with.  All that it has is in one folder, and whatever a crash left there, ``up`` and ``down`` go on from it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.host.progress import WarningsOnly
from slipway.lab import processes
from slipway.lab.management import log, plan, ports, status
from slipway.lab.management.plan import PROGRAMS
from slipway.lab.management.state import State, load, save
from slipway.lab.management.status import HEALTHY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from slipway.host.progress import Progress
    from slipway.lab.processes import Process
    from slipway.node.context import NodeContext

_HEALTHY_WITHIN = 60.0
_ENDED_WITHIN = 15.0
_REMINDER_AFTER = 5.0
_TITLES = {"etcd": "etcd", "kube-apiserver": "the API server", "kube-controller-manager": "the controller manager"}


class ManagementPlane(msgspec.Struct, frozen=True, kw_only=True):
    """A management plane that is healthy."""

    folder: Path
    version: str
    server: str
    kubeconfig: Path
    ports: dict[str, int]
    processes: dict[str, Process]


def up(folder: Path, version: str, programs: Mapping[str, Path], progress: Progress, *, address: str | None = None) -> ManagementPlane:
    """Make a management plane healthy: what is missing is made and started, what runs is left alone.

    A new one's API server listens on ``address``, or on loopback; one that is there stays where it is.
    """
    wanted = plan.parse_version(version)
    check_programs(programs, wanted)
    begun = time.monotonic()
    with _made(folder.absolute()) as place, _claimed(place):
        state = load(place) or State(version=f"v{wanted}", address=address or ports.LOOPBACK)
        check_address(state, address)
        healthy = status.status(place).healthy
        running = _running(state)
        check_version(state, wanted, running, has_data=(place / plan.ETCD_DATA).exists())
        if healthy:
            progress.say(f"[management] The management plane in {place} is up and healthy: nothing to do")
        else:
            state.version = f"v{wanted}"
            state.ports = _ports(place, state, running, progress)
            save(place, state)
            ctx = plan.context(place, wanted, state.ports, WarningsOnly(progress), state.address)
            _bring_up(_Run(place, state, ctx, progress), programs, running)
            progress.say(f"[management] Healthy after {time.monotonic() - begun:.1f} s")
        return ManagementPlane(
            folder=place,
            version=state.version,
            server=plan.server(state.ports, state.address),
            kubeconfig=plan.kubeconfig_path(place),
            ports=dict(state.ports),
            processes=dict(state.processes),
        )


def down(folder: Path, progress: Progress, *, purge: bool = False) -> None:
    """End the processes of a management plane, and with ``purge`` remove its files, too; nothing else is touched."""
    place = folder.absolute()
    if load(place) is None:
        progress.say(f"[management] There is no management plane in {place}")
        return
    with _claimed(place):
        state = load(place)
        if state is None:
            return
        for name in reversed(PROGRAMS):
            if name in state.processes:
                _end(name, state.processes[name], progress)
                del state.processes[name]
                save(place, state)
        if purge:
            _remove(place, progress)


def check_programs(programs: Mapping[str, Path], version: Version) -> None:
    """OperatorError where a program is not there or cannot be run."""
    for name in PROGRAMS:
        hint = f"`slipway lab components v{version}` gets it"
        if name not in programs:
            raise OperatorError(f"the program {name} is missing: {hint}")
        if not programs[name].is_file():
            raise OperatorError(f"the program {name} is missing: {programs[name]} is not there; {hint}")
        if not os.access(programs[name], os.X_OK):
            raise OperatorError(f"the program {name} cannot be run: {programs[name]} is not executable; `chmod +x` makes it so")


def check_version(state: State, wanted: Version, running: Collection[str], *, has_data: bool) -> None:
    """OperatorError where the plane cannot become one of that version: while another one runs, or with newer data."""
    if state.version == f"v{wanted}":
        return
    if running:
        raise OperatorError(f"the management plane runs {state.version}: end it with `down` before it is started as v{wanted}")
    has = Version.parse(state.version)
    if has_data and (has.major, has.minor) > (wanted.major, wanted.minor):
        raise OperatorError(
            f"the data of the management plane is that of {state.version}, and v{wanted} cannot read it: "
            f"start a version from v{has.major}.{has.minor} on, or remove the data with `down --purge`"
        )


def check_address(state: State, wanted: str | None) -> None:
    """OperatorError where the plane is asked for at another address: its certificates and kubeconfigs name the one that it has."""
    if wanted is not None and wanted != state.address:
        raise OperatorError(
            f"the management plane listens on {state.address} and not on {wanted}: begin anew after `slipway lab management down`"
        )


class _Run:
    """One run of ``up`` on its way."""

    def __init__(self, place: Path, state: State, ctx: NodeContext, progress: Progress) -> None:
        self.place, self.state, self.ctx, self.progress = place, state, ctx, progress
        self.started: list[str] = []

    def start(self, name: str, program: Path) -> None:
        path = plan.log_path(self.place, name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if path.exists():
            path.replace(path.with_suffix(".log.1"))
        self.progress.say(f"[management] Starting {_TITLES[name]} on port {self.state.ports[name]}")
        processes.start(plan.command(self.ctx, name, program), path, lambda process: self._record(name, process))

    def wait(self, name: str, program: Path) -> None:
        process, reminded = self.state.processes[name], time.monotonic()

        def remind(why: str) -> None:
            nonlocal reminded
            if time.monotonic() - reminded > _REMINDER_AFTER:
                self.progress.say(f"[management] Still waiting for {_TITLES[name]}: {why}")
                reminded = time.monotonic()

        self.progress.say(f"[management] Waiting for {_TITLES[name]} to be healthy")
        endpoint = status.endpoint(self.place, self.state, name)
        why = status.wait(endpoint, _HEALTHY_WITHIN, lambda: processes.is_running(process), remind)
        if why != HEALTHY and name not in self.started and not processes.is_running(process):
            # It had lost what it depends on, which is back by now.
            self.start(name, program)
            self.wait(name, program)
        elif why != HEALTHY:
            raise failure(name, why if processes.is_running(process) else "", plan.log_path(self.place, name))

    def undo(self) -> None:
        """End what this run has started."""
        for name in reversed(self.started):
            _end(name, self.state.processes.pop(name), self.progress)
        try:
            save(self.place, self.state)
        except OperatorError as error:
            # On a full disk the old record stays; it names processes that have ended, which does no harm.
            self.progress.warn(f"[management] {error.message}")

    def _record(self, name: str, process: Process) -> None:
        self.state.processes[name] = process
        save(self.place, self.state)
        self.started.append(name)


def _bring_up(run: _Run, programs: Mapping[str, Path], running: Collection[str]) -> None:
    """Start what is missing, each program as soon as the one that it depends on answers."""
    missing = {name: programs[name] for name in PROGRAMS if name not in running}
    try:
        plan.make_etcd_credentials(run.ctx)
        if "etcd" in missing:
            run.start("etcd", missing["etcd"])
        plan.make_other_credentials(run.ctx)
        for name in PROGRAMS:
            if name in missing and name not in run.started:
                run.start(name, missing[name])
            run.wait(name, programs[name])
    except OSError as error:
        run.undo()
        raise OperatorError(f"cannot use {error.filename or run.place}: {error.strerror or error}") from error
    except BaseException:
        run.undo()
        raise


def failure(name: str, why: str, written: Path) -> OperatorError:
    """What to tell of a program that did not become healthy; without a reason it has ended."""
    lines = log.tail(written)
    happened = f"did not become healthy within {_HEALTHY_WITHIN:.0f} s: {why}" if why else "ended while it was starting"
    cause = log.likely_cause(lines)
    likely = f" Most likely {cause}." if cause else ""
    said = "".join(f"\n    {line}" for line in log.shown(lines)) or " nothing"
    return OperatorError(f"{name} {happened}.{likely} The last that it wrote to {written}:{said}")


def _ports(place: Path, state: State, running: Collection[str], progress: Progress) -> dict[str, int]:
    """The ports on record, or others where they are taken; a plane that runs in part cannot have others."""
    if running:
        for name, port in state.ports.items():
            if plan.owner(name) not in running and not ports.is_free(port):
                raise OperatorError(
                    f"another program listens on port {port}, which is that of {name} (`ss -ltnp` shows it): "
                    "end it, or run `down` and `up` again to have other ports chosen"
                )
        return state.ports
    chosen = ports.choose(plan.PORTS, state.ports, str(place), ports.is_free)
    for name, port in state.ports.items():
        if chosen[name] != port:
            progress.warn(f"[management] Port {port} of {name} is taken by another program: {chosen[name]} is used from now on")
    return chosen


def _running(state: State) -> set[str]:
    return {name for name, process in state.processes.items() if processes.is_running(process)}


def _end(name: str, process: Process, progress: Progress) -> None:
    if processes.is_replaced(process):
        progress.warn(f"[management] {name} has ended before, and another program has its process number {process.pid}: it is left alone")
    elif not processes.is_running(process):
        progress.say(f"[management] {name} has ended before")
    else:
        progress.say(f"[management] Ending {_TITLES[name]} (process {process.pid})")
        if not processes.stop(process, _ENDED_WITHIN):
            progress.warn(f"[management] {name} did not end within {_ENDED_WITHIN:.0f} s and was killed")


def _remove(place: Path, progress: Progress) -> None:
    """Remove the files of a plane, its record last; the folder goes with them unless it has something else in it."""
    for name in plan.FILES:
        path = place / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    left = sorted(os.listdir(place))
    if left:
        progress.warn(f"[management] {place} is kept, because it has other things in it: {', '.join(left)}")
        return
    place.rmdir()
    progress.say(f"[management] Removed {place}")


@contextmanager
def _made(place: Path) -> Iterator[Path]:
    """The folder, made where it is missing, and removed again where nothing came into it."""
    missing = [folder for folder in (place, *place.parents) if not folder.exists()]
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(f"cannot make the folder {place}: {error.strerror}; name one that can be made") from error
    try:
        if not os.access(place, os.W_OK | os.X_OK):
            raise OperatorError(f"cannot write into the folder {place}: name another one, or run as its owner or as root")
        yield place
    finally:
        for folder in missing:
            if not folder.is_dir() or any(folder.iterdir()):
                break
            folder.rmdir()


@contextmanager
def _claimed(place: Path) -> Iterator[None]:
    """Keep other runs away from the folder."""
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatorError(f"another run works on the management plane in {place}: wait until it has ended") from None
        if not place.exists() or not os.path.samestat(os.fstat(handle), os.stat(place)):
            raise OperatorError(f"another run has just removed the management plane in {place}: run it again")
        yield
    finally:
        os.close(handle)
