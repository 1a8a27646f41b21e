"""Why a component or the kubelet does not come up: its last log lines, its exit code, and the likely cause in a sentence.

``causes.py`` knows the sentences; this module finds the containers over CRI and the kubelet in systemd.  :class:`Look` and
:class:`KubeletLook` answer the other question of a wait: whether it is certain already that waiting does not help
(kubernetes/kubeadm#377, #684, #2395).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.node import paths
from slipway.node.health.causes import Cause, Failure, cause_of, kubelet_cause_of, same_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.host.cri.client import Container, ContainerStatus
    from slipway.node.context import NodeContext

_SHOWN_LINES, _SHOWN_CHARACTERS = 10, 400
_READ_LINES = 200
_NAMESPACE = "kube-system"
_UNIT = "kubelet"
_ENDED = ("auto-restart", "failed", "dead")
"""The states of a service whose process has ended."""


class _Found(NamedTuple):
    """The newest container of a component that tells something, and whether it is running again since."""

    container: Container
    status: ContainerStatus
    log: list[str]
    running_again: bool

    @property
    def failure(self) -> Failure:
        status = self.status
        exited = self.container.state == "exited"
        message = " ".join(part for part in (status.reason, status.message) if part)
        return Failure(log=tuple(self.log), exits=status.restarts + exited, exit_code=status.exit_code if exited else 0, message=message)


class _Explained(NamedTuple):
    """What is told of one component; ``own`` where the failure is its own and not that of another one."""

    head: str
    log: str
    own: bool


class _Unit(NamedTuple):
    """The kubelet as systemd sees it."""

    loaded: bool
    active: str
    sub: str
    exit_code: int
    restarts: int
    journal: list[str]

    @property
    def failure(self) -> Failure:
        exits = self.restarts + (self.sub in _ENDED)
        return Failure(log=tuple(self.journal), exits=exits, exit_code=self.exit_code, message="")


def explain(ctx: NodeContext, names: Sequence[str]) -> str:
    """What an operator would find by hand: per component the state of its container, the likely cause and the last log lines."""
    unit = _unit(ctx)
    parts = [_explained_unit(unit)] if "kubelet" in names or (unit is not None and unit.active != "active") else []
    components = [name for name in names if name != "kubelet"]
    if "kube-apiserver" in components and "etcd" not in components and ctx.host.exists(_manifest("etcd")):
        components.append("etcd")
    if components:
        try:
            found = _find(ctx, components)
        except OperatorError as error:
            parts.append(f"The containers could not be looked at: {error.message}")
        else:
            journal = unit.journal if unit is not None else []
            told = [_explained(ctx, name, found.get(name), journal) for name in components if _tells(name, found.get(name), names)]
            culprits = [part for part in told if part.own]
            # Those that only wait for another one have nothing in their logs that helps.
            parts += [f"{part.head}{part.log}" for part in culprits or told]
            parts += [part.head for part in told if culprits and not part.own]
    return "\n\n".join(parts)


class Look:
    """Looks at the containers of components from time to time, and knows when waiting has become useless."""

    def __init__(self, ctx: NodeContext) -> None:
        self._ctx = ctx
        self._began = ctx.host.now().timestamp()
        self._kubelet = KubeletLook(ctx)
        self._seen: dict[str, dict[str, str]] = {}

    def hopeless(self, names: Sequence[str]) -> str:
        """The sentence that ends the wait; empty while there is hope.  A runtime that does not answer may come back."""
        if ended := self._kubelet.hopeless():
            return ended
        try:
            found = _find(self._ctx, [*names, *(["etcd"] if "kube-apiserver" in names else [])])
        except OperatorError:
            return ""
        for name, entry in found.items():
            # What exited before this wait may belong to a manifest that has been replaced since.
            if entry.container.state != "exited" or entry.container.created < self._began:
                continue
            cause = cause_of(name, entry.failure)
            if cause.certain_after is not None and self._ends(name, entry, cause) >= cause.certain_after:
                return f"{name} exited with exit code {entry.status.exit_code}: {cause.sentence}"
        return next(filter(None, (self._never_started(name) for name in names if name not in found)), "")

    def _ends(self, name: str, entry: _Found, cause: Cause) -> int:
        """How often the component was seen to end for the same cause."""
        seen = self._seen.setdefault(name, {})
        seen[entry.container.id] = cause.sentence
        return sum(same_kind(sentence, cause.sentence) for sentence in seen.values())

    def _never_started(self, name: str) -> str:
        """What the kubelet says again and again of a container that it cannot make."""
        unit = _unit(self._ctx)
        if unit is None:
            return ""
        about = [line for line in unit.journal if name in line]
        causes = [(cause, line) for line in about if (cause := kubelet_cause_of(Failure((line,), 0, 0, ""))).certain_after and cause.named]
        if not causes:
            return ""
        last = causes[-1][0]
        # One attempt is told by several parts of the kubelet; how often one part tells it is how often it was tried.
        attempts = Counter(_source(line) for cause, line in causes if same_kind(cause.sentence, last.sentence))
        return f"the kubelet cannot start {name}: {last.sentence}" if max(attempts.values()) >= (last.certain_after or 0) else ""


class KubeletLook:
    """The same for the kubelet's service."""

    def __init__(self, ctx: NodeContext) -> None:
        self._ctx = ctx
        self._seen: dict[int, str] = {}

    def hopeless(self) -> str:
        state = self._ctx.host.run("systemctl", "show", _UNIT, "--property=SubState", "--value")
        if state.code != 0 or state.stdout.strip() not in _ENDED:
            return ""
        unit = _unit(self._ctx)
        if unit is None or not unit.loaded or unit.active == "active" or unit.sub not in _ENDED:
            return ""
        cause = kubelet_cause_of(unit.failure)
        if unit.active == "failed":
            return f"the kubelet has failed with exit code {unit.exit_code} and systemd does not start it again: {cause.sentence}"
        self._seen[unit.restarts] = cause.sentence
        same = sum(same_kind(sentence, cause.sentence) for sentence in self._seen.values())
        if cause.certain_after is not None and unit.sub == "auto-restart" and same >= cause.certain_after:
            return f"the kubelet ended with exit code {unit.exit_code}: {cause.sentence}"
        return ""


def _find(ctx: NodeContext, names: Sequence[str]) -> dict[str, _Found]:
    """The containers of static Pods by component: the newest one that exited, else the newest one."""
    runtime = ctx.host.container_runtime(ctx.config.node_registration.cri_socket)
    try:
        found = {}
        own = [container for container in runtime.containers(all=True) if container.namespace == _NAMESPACE]
        for name in names:
            # A Pod that was replaced may have left containers; the newest sandbox is the one that counts.
            mine = sorted((container for container in own if container.name == name), key=lambda container: container.created)
            if not mine:
                continue
            mine = [container for container in mine if container.sandbox_id == mine[-1].sandbox_id]
            chosen = next((container for container in reversed(mine) if container.state == "exited"), mine[-1])
            status = runtime.container_status(chosen.id)
            found[name] = _Found(chosen, status, _log_lines(ctx, status.log_path), mine[-1].state == "running" and chosen is not mine[-1])
        return found
    finally:
        runtime.close()


def _tells(name: str, found: _Found | None, asked: Sequence[str]) -> bool:
    """etcd was not asked for: it is shown only where something is wrong with it."""
    return name in asked or found is None or found.container.state != "running"


def _explained(ctx: NodeContext, name: str, found: _Found | None, journal: Sequence[str]) -> _Explained:
    if found is None:
        return _explained_absence(ctx, name, journal)
    failure = found.failure
    cause = cause_of(name, failure)
    exited = found.container.state != "running"
    if exited:
        again = ", and was started again" if found.running_again else ""
        head = f"{name}: its container exited with exit code {failure.exit_code}{again}."
    else:
        head = f"{name}: its container is running but does not answer as it should."
    if cause.named or exited:
        head += f" Likely cause: {cause.sentence}."
    own = exited and not (cause.named and cause.certain_after is None)
    return _Explained(head, _shown_log(found.log, found.status.log_path, cause.line), own)


def _explained_absence(ctx: NodeContext, name: str, journal: Sequence[str]) -> _Explained:
    if not ctx.host.exists(_manifest(name)):
        return _Explained(f"{name}: there is no {ctx.host.location(_manifest(name))}, so the kubelet does not start it.", "", own=True)
    about = [line for line in journal if name in line and line.startswith("E")]
    cause = kubelet_cause_of(Failure(log=tuple(about), exits=0, exit_code=0, message=""))
    image = _image_of(ctx, name)
    head = f"{name}: the kubelet has not started its container."
    if _image_is_missing(ctx, image):
        head += f" Its image {image} is not on this node."
    if cause.named:
        head += f" Likely cause: {cause.sentence}."
    return _Explained(head, _shown_log(about, "the kubelet's journal"), own=cause.named)


def _explained_unit(unit: _Unit | None) -> str:
    if unit is None:
        return "kubelet: this machine has no systemctl that would tell about it."
    if not unit.loaded:
        return "kubelet: there is no service of that name. Install the kubelet with its systemd unit."
    state = f"kubelet: its service is {unit.active} ({unit.sub})"
    head = f"{state}, but it does not answer." if unit.active == "active" else f"{state}, the last exit code was {unit.exit_code}."
    cause = kubelet_cause_of(unit.failure)
    if cause.named or unit.active != "active":
        head += f" Likely cause: {cause.sentence}."
    return head + _shown_log(unit.journal, "its journal", cause.line)


def _shown_log(lines: Sequence[str], where: str, telling: str = "") -> str:
    """The last lines; the one that tells the cause is shown too where a screen of usage follows it."""
    if not lines:
        return "" if not where else f"\n  (nothing in {where})"
    last = list(lines[-_SHOWN_LINES:])
    if telling in lines and telling not in last:
        last = [telling, "…", *last]
    return f"\n  The last lines of {where}:" + "".join(f"\n    {_cut(line)}" for line in last)


def _source(line: str) -> str:
    """The place in the kubelet's sources that klog names before a message."""
    return line.partition("]")[0].rpartition(" ")[2]


def _cut(line: str) -> str:
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]} …"


def _log_lines(ctx: NodeContext, path: str) -> list[str]:
    """The last lines of a container's log, without the time and the stream that CRI puts before each."""
    if not path:
        return []
    try:
        text = ctx.host.read(path).decode(errors="replace")
    except OSError:
        return []
    lines = [line.split(" ", 3) for line in text.splitlines()[-_READ_LINES:]]
    return [parts[3] if len(parts) == 4 else " ".join(parts) for parts in lines if parts[-1].strip()]


def _unit(ctx: NodeContext) -> _Unit | None:
    """None where the machine has no systemd to ask."""
    if ctx.host.which("systemctl") is None:
        return None
    properties = "LoadState,ActiveState,SubState,ExecMainStatus,NRestarts,InvocationID"
    shown = ctx.host.run("systemctl", "show", _UNIT, f"--property={properties}")
    if shown.code != 0:
        return None
    values = dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
    # Of the latest start alone: what an older one complained about may be mended.
    chosen = f"_SYSTEMD_INVOCATION_ID={values['InvocationID']}" if values.get("InvocationID") else f"--unit={_UNIT}"
    journal = ctx.host.run("journalctl", "--no-pager", "--output=cat", f"--lines={_READ_LINES}", chosen)
    return _Unit(
        loaded=values.get("LoadState", "loaded") != "not-found",
        active=values.get("ActiveState", "unknown"),
        sub=values.get("SubState", "unknown"),
        exit_code=int(values.get("ExecMainStatus") or 0),
        restarts=int(values.get("NRestarts") or 0),
        journal=[line for line in journal.stdout.splitlines() if line.strip() and not line.startswith("-- ")],
    )


def _image_of(ctx: NodeContext, name: str) -> str:

    path = _manifest(name)
    pod = next((document.value for document in goyaml.load(ctx.host.read(path).decode(), path)), None)
    containers = (pod.get("spec") or {}).get("containers") or [] if isinstance(pod, dict) else []
    return next((str(container.get("image", "")) for container in containers if container.get("name") == name), "")


def _image_is_missing(ctx: NodeContext, image: str) -> bool:
    if not image:
        return False
    runtime = ctx.host.container_runtime(ctx.config.node_registration.cri_socket)
    try:
        return not runtime.has_image(image)
    finally:
        runtime.close()


def _manifest(name: str) -> str:
    return f"{paths.MANIFESTS_DIR}/{name}.yaml"
