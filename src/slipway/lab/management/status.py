"""How a management plane is: which of its programs run, and what they say about themselves at their health endpoints, over TLS."""

from __future__ import annotations

import time
from http.client import HTTPException, HTTPSConnection
from typing import TYPE_CHECKING

import msgspec

from slipway.credentials import tls
from slipway.kube import kubeconfig
from slipway.lab import processes
from slipway.lab.management import plan
from slipway.lab.management.plan import PROGRAMS
from slipway.lab.management.ports import LOOPBACK
from slipway.lab.management.state import load
from slipway.node import paths

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

    from slipway.lab.management.state import State

_HEALTH_PATHS = {"etcd": "/readyz", "kube-apiserver": "/readyz", "kube-controller-manager": "/healthz"}

HEALTHY = ""
_ANSWER_WITHIN = 5.0
_INTERVAL = 0.05
_NAMED = 3


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program says how it is, and how it is asked."""

    address: str
    port: int
    path: str
    context: ssl.SSLContext


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
    state = load(folder)
    if state is None:
        return Status(folder=str(folder), exists=False, healthy=False)
    programs = tuple(_program(folder, state, name) for name in PROGRAMS)
    return Status(
        folder=str(folder),
        exists=True,
        healthy=all(program.healthy for program in programs),
        version=state.version,
        server=plan.server(state.ports, state.address),
        kubeconfig=str(plan.kubeconfig_path(folder)),
        programs=programs,
    )


def endpoint(folder: Path, state: State, name: str) -> Endpoint:
    """Where a program is asked how it is; the certificates must be there."""
    address = state.address if name == "kube-apiserver" else LOOPBACK
    return Endpoint(address=address, port=state.ports[name], path=_HEALTH_PATHS[name], context=_client(folder, name))


def ask(endpoint: Endpoint) -> str:
    """What keeps the program from being healthy; empty where nothing does."""
    connection = HTTPSConnection(endpoint.address, endpoint.port, timeout=_ANSWER_WITHIN, context=endpoint.context)
    try:
        connection.request("GET", endpoint.path)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    except ConnectionRefusedError:
        return f"nothing listens on {endpoint.address}:{endpoint.port}"
    except (OSError, HTTPException) as error:
        return f"{endpoint.address}:{endpoint.port} does not answer: {error}"
    finally:
        connection.close()
    return HEALTHY if answer.status == 200 else unhealthy(answer.status, text)


def unhealthy(status: int, text: str) -> str:
    """What an unhealthy answer says: the names of the checks that fail, or its first line."""
    failing = [line[3:].partition(" ")[0] for line in text.splitlines() if line.startswith("[-]")]
    if failing:
        more = f" and {len(failing) - _NAMED} more" if len(failing) > _NAMED else ""
        return f"not ready yet: {', '.join(failing[:_NAMED])}{more}"
    return f"HTTP {status}: {text.strip().partition(chr(10))[0]}" if text.strip() else f"HTTP {status}"


def wait(endpoint: Endpoint, seconds: float, alive: Callable[[], bool], awaited: Callable[[str], None]) -> str:
    """Ask until the program is healthy, has ended or the time is over; the answer is the last reason, as that of ``ask``.

    ``awaited`` is told the reason that there is to wait.
    """
    deadline = time.monotonic() + seconds
    while (why := ask(endpoint)) != HEALTHY:
        if not alive() or time.monotonic() > deadline:
            break
        awaited(why)
        time.sleep(_INTERVAL)
    return why


def _client(folder: Path, name: str) -> ssl.SSLContext:
    if name == "etcd":
        pki = folder / paths.PKI_DIR.lstrip("/") / "etcd"
        return _client_of_files(pki / "ca.crt", pki / "healthcheck-client.crt", pki / "healthcheck-client.key")
    if name == "kube-apiserver":
        return _client_of_kubeconfig(plan.kubeconfig_path(folder))
    return client_without_trust()


def _program(folder: Path, state: State, name: str) -> ProgramStatus:
    process = state.processes.get(name)
    running = process is not None and processes.is_running(process)
    reason = _reason(folder, state, name) if running else "it does not run"
    return ProgramStatus(
        name=name,
        pid=process.pid if process else 0,
        port=state.ports.get(name, 0),
        running=running,
        healthy=reason == HEALTHY,
        reason=reason,
        log=str(plan.log_path(folder, name)),
    )


def _reason(folder: Path, state: State, name: str) -> str:
    try:
        return ask(endpoint(folder, state, name))
    except FileNotFoundError as error:
        return f"it cannot be asked: {error.filename or 'a file of its certificates'} is missing"


def _client_of_files(ca: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    """A client with a certificate that trusts one authority, from the files of a node."""
    context = tls.trusting(file=str(ca))
    context.load_cert_chain(certificate, key)
    return context


def _client_of_kubeconfig(path: Path) -> ssl.SSLContext:
    """The client that the current context of a kubeconfig with embedded certificates describes."""
    config = kubeconfig.load(path.read_bytes(), str(path))
    names = kubeconfig.named(config, "context", str(config.get("current-context"))) or {}
    cluster = kubeconfig.named(config, "cluster", str(names.get("cluster"))) or {}
    user = kubeconfig.named(config, "user", str(names.get("user"))) or {}
    authority = kubeconfig.decoded(cluster.get("certificate-authority-data"), f"certificate-authority-data of {path}")
    certificate, key = (
        kubeconfig.decoded(user.get(f"client-{part}-data"), f"client-{part}-data of {path}") for part in ("certificate", "key")
    )
    return tls.client_context(f"the server of {path}", ca=authority, certificate=certificate, key=key)


def client_without_trust() -> ssl.SSLContext:
    """For a server whose certificate is made anew at each of its starts and known to nobody; the kubelet probes it like this."""
    return tls.client_context("a program of the control plane", insecure=True)
