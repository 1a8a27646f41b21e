"""How a management plane is: which of its programs run, and what they say about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.lab import processes
from slipway.lab.management import health, plan
from slipway.lab.management import state as managementstate
from slipway.lab.management.plan import PROGRAMS
from slipway.lab.management.ports import LOOPBACK
from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from ssl import SSLContext

_HEALTH_PATHS = {"etcd": "/readyz", "kube-apiserver": "/readyz", "kube-controller-manager": "/healthz"}


class ProgramStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How one of the programs is."""

    name: str
    pid: int
    port: int
    running: bool
    healthy: bool
    reason: str
    """What keeps it from being healthy."""
    log: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How a management plane is, as data for JSON."""

    folder: str
    exists: bool
    healthy: bool
    version: str = ""
    server: str = ""
    kubeconfig: str = ""
    programs: tuple[ProgramStatus, ...] = ()


def status(folder: Path) -> Status:
    """What is there now; nothing is changed."""
    folder = folder.absolute()
    state = managementstate.load(folder)
    if state is None:
        return Status(folder=str(folder), exists=False, healthy=False)
    programs = tuple(_program(folder, state, name) for name in PROGRAMS)
    return Status(
        folder=str(folder),
        exists=True,
        healthy=all(program.healthy for program in programs),
        version=state.version,
        server=plan.server(state.ports),
        kubeconfig=str(plan.kubeconfig_path(folder)),
        programs=programs,
    )


def endpoint(folder: Path, ports: Mapping[str, int], name: str) -> health.Endpoint:
    """Where a program is asked how it is; the certificates must be there."""
    return health.Endpoint(address=LOOPBACK, port=ports[name], path=_HEALTH_PATHS[name], context=_client(folder, name))


def _client(folder: Path, name: str) -> SSLContext:
    if name == "etcd":
        pki = folder / paths.PKI_DIR.lstrip("/") / "etcd"
        return health.client_of_files(pki / "ca.crt", pki / "healthcheck-client.crt", pki / "healthcheck-client.key")
    if name == "kube-apiserver":
        return health.client_of_kubeconfig(plan.kubeconfig_path(folder))
    return health.client_without_trust()


def _program(folder: Path, state: managementstate.State, name: str) -> ProgramStatus:
    process = state.processes.get(name)
    running = process is not None and processes.is_running(process)
    reason = _reason(folder, state.ports, name) if running else "it does not run"
    return ProgramStatus(
        name=name,
        pid=process.pid if process else 0,
        port=state.ports.get(name, 0),
        running=running,
        healthy=reason == health.HEALTHY,
        reason=reason,
        log=str(plan.log_path(folder, name)),
    )


def _reason(folder: Path, ports: Mapping[str, int], name: str) -> str:
    try:
        return health.ask(endpoint(folder, ports, name))
    except FileNotFoundError as error:
        return f"it cannot be asked: {error.filename or 'a file of its certificates'} is missing"
