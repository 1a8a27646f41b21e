"""What can be seen of the programs of a node: its services in systemd, and the containers of its static Pods over the CRI.

Nothing is concluded here: ``causes.py`` knows what the texts mean, ``diagnosis.py`` and the doctor tell it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.node.health.causes import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.host.cri.client import Container, ContainerRuntime, ContainerStatus
    from slipway.host.interface import Host

NAMESPACE = "kube-system"
KUBELET = "kubelet"
ENDED = ("auto-restart", "failed", "dead")
"""The states of a service whose process has ended."""
_READ_LINES = 200
_PROPERTIES = "LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,ExecMainStatus,NRestarts,InvocationID"


class Found(NamedTuple):
    """The newest container of a component that tells something, and whether it is running again since."""

    container: Container
    status: ContainerStatus
    log: tuple[str, ...]
    running_again: bool

    @property
    def failure(self) -> Failure:
        status = self.status
        exited = self.container.state == "exited"
        message = " ".join(part for part in (status.reason, status.message) if part)
        return Failure(log=self.log, exits=status.restarts + exited, exit_code=status.exit_code if exited else 0, message=message)


class Unit(NamedTuple):
    """A service as systemd sees it."""

    loaded: bool
    active: str
    sub: str
    exit_code: int
    restarts: int
    journal: tuple[str, ...]
    """Of its latest start."""
    enabled: str = ""
    """enabled, disabled, static, masked …; empty where systemd does not tell."""
    stale: bool = False
    """Whether the unit on disk differs from the one that systemd has read."""

    @property
    def failure(self) -> Failure:
        exits = self.restarts + (self.sub in ENDED)
        return Failure(log=self.journal, exits=exits, exit_code=self.exit_code, message="")


def unit(host: Host, name: str = KUBELET) -> Unit | None:
    """None where the machine has no systemd to ask."""
    if host.which("systemctl") is None:
        return None
    shown = host.run("systemctl", "show", name, f"--property={_PROPERTIES}")
    if shown.code != 0:
        return None
    values = dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
    # Of the latest start alone: what an older one complained about may be mended.
    chosen = f"_SYSTEMD_INVOCATION_ID={values['InvocationID']}" if values.get("InvocationID") else f"--unit={name}"
    journal = host.run("journalctl", "--no-pager", "--output=cat", f"--lines={_READ_LINES}", chosen)
    return Unit(
        loaded=values.get("LoadState", "loaded") != "not-found",
        active=values.get("ActiveState", "unknown"),
        sub=values.get("SubState", "unknown"),
        exit_code=int(values.get("ExecMainStatus") or 0),
        restarts=int(values.get("NRestarts") or 0),
        journal=tuple(line for line in journal.stdout.splitlines() if line.strip() and not line.startswith("-- ")),
        enabled=values.get("UnitFileState", ""),
        stale=values.get("NeedDaemonReload") == "yes",
    )


def containers(host: Host, runtime: ContainerRuntime, names: Sequence[str]) -> dict[str, Found]:
    """The containers of static Pods by component: the newest one that exited, else the newest one."""
    found = {}
    own = [container for container in runtime.containers(all=True) if container.namespace == NAMESPACE]
    for name in names:
        # A Pod that was replaced may have left containers; the newest sandbox is the one that counts.
        mine = sorted((container for container in own if container.name == name), key=lambda container: container.created)
        if not mine:
            continue
        mine = [container for container in mine if container.sandbox_id == mine[-1].sandbox_id]
        chosen = next((container for container in reversed(mine) if container.state == "exited"), mine[-1])
        status = runtime.container_status(chosen.id)
        found[name] = Found(chosen, status, log_lines(host, status.log_path), mine[-1].state == "running" and chosen is not mine[-1])
    return found


def log_lines(host: Host, path: str) -> tuple[str, ...]:
    """The last lines of a container's log, without the time and the stream that CRI puts before each."""
    if not path:
        return ()
    try:
        text = host.read(path).decode(errors="replace")
    except OSError:
        return ()
    lines = [line.split(" ", 3) for line in text.splitlines()[-_READ_LINES:]]
    return tuple(parts[3] if len(parts) == 4 else " ".join(parts) for parts in lines if parts[-1].strip())
