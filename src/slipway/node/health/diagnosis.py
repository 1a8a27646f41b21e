"""Why a component or the kubelet does not come up: its last log lines, its exit code, and the likely cause in a sentence.

``causes.py`` knows the sentences, and ``observation.py`` sees the containers and the kubelet's service.  :class:`Look` and
:class:`KubeletLook` answer the other question of a wait: whether it is certain already that waiting does not help
(kubernetes/kubeadm#377, #684, #2395).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.node import paths
from slipway.node.health import observation
from slipway.node.health.causes import Cause, Failure, cause_of, kubelet_cause_of, same_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.node.context import NodeContext
    from slipway.node.health.observation import Found, Unit

_SHOWN_LINES, _SHOWN_CHARACTERS = 10, 400


class _Explained(NamedTuple):
    """What is told of one component; ``own`` where the failure is its own and not that of another one."""

    head: str
    log: str
    own: bool


def explain(ctx: NodeContext, names: Sequence[str]) -> str:
    """What an operator would find by hand: per component the state of its container, the likely cause and the last log lines."""
    unit = observation.unit(ctx.host)
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
            journal = unit.journal if unit is not None else ()
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

    def _ends(self, name: str, entry: Found, cause: Cause) -> int:
        """How often the component was seen to end for the same cause."""
        seen = self._seen.setdefault(name, {})
        seen[entry.container.id] = cause.sentence
        return sum(same_kind(sentence, cause.sentence) for sentence in seen.values())

    def _never_started(self, name: str) -> str:
        """What the kubelet says again and again of a container that it cannot make."""
        unit = observation.unit(self._ctx.host)
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
        state = self._ctx.host.run("systemctl", "show", observation.KUBELET, "--property=SubState", "--value")
        if state.code != 0 or state.stdout.strip() not in observation.ENDED:
            return ""
        unit = observation.unit(self._ctx.host)
        if unit is None or not unit.loaded or unit.active == "active" or unit.sub not in observation.ENDED:
            return ""
        cause = kubelet_cause_of(unit.failure)
        if unit.active == "failed":
            return f"the kubelet has failed with exit code {unit.exit_code} and systemd does not start it again: {cause.sentence}"
        self._seen[unit.restarts] = cause.sentence
        same = sum(same_kind(sentence, cause.sentence) for sentence in self._seen.values())
        if cause.certain_after is not None and unit.sub == "auto-restart" and same >= cause.certain_after:
            return f"the kubelet ended with exit code {unit.exit_code}: {cause.sentence}"
        return ""


def _find(ctx: NodeContext, names: Sequence[str]) -> dict[str, Found]:
    with ctx.host.container_runtime(ctx.config.node_registration.cri_socket) as runtime:
        return observation.containers(ctx.host, runtime, names)


def _tells(name: str, found: Found | None, asked: Sequence[str]) -> bool:
    """etcd was not asked for: it is shown only where something is wrong with it."""
    return name in asked or found is None or found.container.state != "running"


def _explained(ctx: NodeContext, name: str, found: Found | None, journal: Sequence[str]) -> _Explained:
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
        head += _likely(cause)
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
        head += _likely(cause)
    return _Explained(head, _shown_log(about, "the kubelet's journal"), own=cause.named)


def _explained_unit(unit: Unit | None) -> str:
    if unit is None:
        return "kubelet: this machine has no systemctl that would tell about it."
    if not unit.loaded:
        return "kubelet: there is no service of that name. Install the kubelet with its systemd unit."
    state = f"kubelet: its service is {unit.active} ({unit.sub})"
    head = f"{state}, but it does not answer." if unit.active == "active" else f"{state}, the last exit code was {unit.exit_code}."
    cause = kubelet_cause_of(unit.failure)
    if cause.named or unit.active != "active":
        head += _likely(cause)
    return head + _shown_log(unit.journal, "its journal", cause.line)


def _likely(cause: Cause) -> str:
    return f" Likely cause: {cause.sentence}." + (f" What would help: {cause.fix}." if cause.fix else "")


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
