"""Exchanging the static Pods of this node: the kubelet is given another manifest, and the new Pod is awaited.

Where the time goes was measured with kubelets of 1.34 and 1.35.  A manifest that replaces another one is a Pod with another UID,
which may not start before the old one is gone; it asks at once, in vain, and again 10 to 15 s later, though the old Pod ends
within 1 s.  So the new manifest is put in place with a mark first (the old Pod ends), and without it when the old Pod is gone:
that is a new Pod again, which starts at once, and at no time is there no manifest.  2 to 3 s instead of 14 to 16.
An API server closes its port 0.3 s after SIGTERM and then sits out its grace period of 30 s because of open watches; it is
ended 2 s after it has closed its port.  And a kubelet that deletes a mirror Pod hangs for 34 s where the API server runs and
its etcd does not, before it starts anything: the API server is taken down with its etcd, so that the kubelet is refused at once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.host import waiting
from slipway.node.health import diagnosis
from slipway.node.staticpods import components

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.host.cri.client import ContainerRuntime, Sandbox
    from slipway.host.interface import Host
    from slipway.node.context import NodeContext

MARK = "slipway.dev/exchange"
"""The annotation of a manifest that is to be replaced as soon as the old Pod is gone."""
_API_SERVER = "kube-apiserver"
_CGROUPS = "/sys/fs/cgroup"
_SETTLED = 0.3
"""Seconds from the end of a Pod's cgroups until the kubelet lets its successor start."""
_SETTLED_UNSEEN = 1.5
"""The same from the end of its sandbox, where the cgroups cannot be seen."""
_DRAIN = 2.0
"""Seconds that an API server has for the requests in flight once it takes no new ones."""
_DRAIN_FLAG = "--shutdown-watch-termination-grace-period"
_LOOK = 2.0


class Leaving(NamedTuple):
    """A Pod whose manifest has been replaced."""

    component: str
    command: tuple[str, ...]
    sandboxes: tuple[Sandbox, ...]
    cgroups: tuple[str, ...]


def marked(text: bytes, mark: str) -> bytes:
    """The manifest as another Pod, that differs by the mark alone; a mark that was used before would make the same Pod again."""
    pod = pod_of(text, "the manifest")
    metadata = pod["metadata"]
    annotations = {**(metadata.get("annotations") or {}), MARK: mark}
    return goyaml.dump({**pod, "metadata": {**metadata, "annotations": annotations}}).encode()


def unmarked(text: bytes) -> bytes:
    """The manifest that was meant, where a killed run has left its mark."""
    pod = pod_of(text, "the manifest")
    annotations = dict(pod["metadata"].get("annotations") or {})
    if annotations.pop(MARK, None) is None:
        return text
    metadata = {key: value for key, value in pod["metadata"].items() if key != "annotations"}
    return goyaml.dump({**pod, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}).encode()


def pod_of(text: bytes, source: str) -> dict[str, Any]:
    """The Pod of a manifest file."""
    documents = goyaml.load(text.decode(), source)
    if len(documents) != 1 or not isinstance(documents[0].value, dict) or documents[0].value.get("kind") != "Pod":
        raise OperatorError(f"{source} is not the manifest of one Pod")
    return documents[0].value


def equal(one: bytes, other: bytes, minor: int) -> bool:
    """Whether two manifests are the same Pod, once decoded; order and comments do not count."""
    from slipway.api.machinery import gotypes

    first, second = (gotypes.decode(pod_of(text, "the manifest"), "Pod", minor)[0] for text in (one, other))
    return first == second


def image_of(text: bytes, source: str) -> str:
    return str(pod_of(text, source)["spec"]["containers"][0].get("image", ""))


def retire(ctx: NodeContext, component: str, successor: bytes) -> Leaving:
    """Let the Pod that runs go, in favour of one that will not start yet."""
    path = components.path_of(component)
    command: tuple[str, ...] = ()
    if ctx.host.exists(path):
        command = tuple(str(word) for word in pod_of(ctx.host.read(path), path)["spec"]["containers"][0].get("command") or ())
    running = tuple(box for box in _sandboxes(ctx, component) if box.ready)
    cgroups = tuple(folder for box in running for folder in cgroups_of(ctx.host, box.uid))
    ctx.host.write(path, marked(successor, f"{ctx.host.now():%Y-%m-%dT%H:%M:%S.%fZ}"), 0o600)
    return Leaving(component, command, running, cgroups)


def await_end(ctx: NodeContext, leaving: Sequence[Leaving], timeout: float) -> None:
    """Until the Pods are gone and the kubelet knows it."""
    with _runtime(ctx) as runtime:
        cut = {pod.component: _Cut(pod) for pod in leaving if pod.component == _API_SERVER and not _has_flag(pod.command, _DRAIN_FLAG)}

        def gone() -> str:
            ready = {box.id for box in runtime.sandboxes() if box.ready}
            for pod in leaving:
                if pod.component in cut:
                    cut[pod.component].consider(runtime, ready)
                if any(box.id in ready for box in pod.sandboxes):
                    return f"the old Pod of {pod.component} still runs"
                if any(ctx.host.is_dir(folder) for folder in pod.cgroups):
                    return f"the kubelet has not cleaned up after the old Pod of {pod.component}"
            return ""

        waiting.until(gone, timeout=timeout, interval=0.05)
    if any(pod.sandboxes for pod in leaving):
        time.sleep(_SETTLED if all(pod.cgroups or not pod.sandboxes for pod in leaving) else _SETTLED_UNSEEN)


def start(ctx: NodeContext, component: str, manifest: bytes) -> float:
    """Put the manifest in place; the time from which on its containers count as new."""
    began = ctx.host.now().timestamp()
    ctx.host.write(components.path_of(component), manifest, 0o600)
    return began


def await_start(ctx: NodeContext, began: dict[str, float], timeout: float) -> None:
    """Until each component has a container of its own that is younger than its manifest."""
    look, looked = diagnosis.Look(ctx), time.monotonic()

    def started() -> str:
        nonlocal looked
        found = runtime.containers()
        missing = [
            name
            for name, since in began.items()
            if not any(each.name == name and each.pod_name == _pod_name(ctx, name) and each.created >= since for each in found)
        ]
        if missing and time.monotonic() - looked >= _LOOK:
            looked = time.monotonic()
            if hopeless := look.hopeless(missing):
                raise OperatorError(hopeless)
        return f"the kubelet has not started {' and '.join(missing)}" if missing else ""

    with _runtime(ctx) as runtime:
        waiting.until(started, timeout=timeout)


class _Cut:
    """Ends an API server that takes no requests any more and only waits for watches that nobody ends."""

    def __init__(self, pod: Leaving) -> None:
        self._pod = pod
        self._closed: float | None = None
        self._done = not pod.sandboxes

    def consider(self, runtime: ContainerRuntime, ready: set[str]) -> None:
        if self._done:
            return
        if self._listens():
            self._closed = None
            return
        self._closed = self._closed or time.monotonic()
        if time.monotonic() - self._closed >= _DRAIN:
            self._done = True
            for box in self._pod.sandboxes:
                if box.id in ready:
                    runtime.stop_sandbox(box.id)

    def _listens(self) -> bool:
        import socket

        address = _flag(self._pod.command, "--advertise-address") or "127.0.0.1"
        try:
            socket.create_connection((address, int(_flag(self._pod.command, "--secure-port") or 6443)), timeout=1.0).close()
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
        return True


def cgroups_of(host: Host, uid: str) -> list[str]:
    """The folders of a Pod's cgroups, in every hierarchy, whoever made their names: ``kubepods/burstable/pod<uid>`` or systemd's."""
    names = (uid, uid.replace("-", "_"))
    found = []
    for root in (_CGROUPS, *(f"{_CGROUPS}/{name}" for name in host.list_dir(_CGROUPS) if host.is_dir(f"{_CGROUPS}/{name}"))):
        for top in _children(host, root, "kubepods"):
            for level in _children(host, top, "kubepods", "burstable", "besteffort", "pod"):
                folders = [level, *_children(host, level, "kubepods", "pod")]
                found += [folder for folder in folders if any(name in folder.rpartition("/")[2] for name in names)]
    # In the one hierarchy of cgroup v2, kubepods.slice is a child of the root as well.
    return list(dict.fromkeys(found))


def _children(host: Host, folder: str, *prefixes: str) -> list[str]:
    return [f"{folder}/{name}" for name in host.list_dir(folder) if name.startswith(prefixes) and host.is_dir(f"{folder}/{name}")]


def _sandboxes(ctx: NodeContext, component: str) -> list[Sandbox]:
    with _runtime(ctx) as runtime:
        return [box for box in runtime.sandboxes() if box.namespace == "kube-system" and box.name == _pod_name(ctx, component)]


def _pod_name(ctx: NodeContext, component: str) -> str:
    return f"{component}-{ctx.config.node_registration.name}"


def _runtime(ctx: NodeContext) -> ContainerRuntime:
    return ctx.host.container_runtime(ctx.config.node_registration.cri_socket)


def _flag(command: Sequence[str], name: str) -> str:
    given = [word.partition("=")[2] for word in command if word.partition("=")[0] == name]
    return given[-1] if given else ""


def _has_flag(command: Sequence[str], name: str) -> bool:
    return any(word.partition("=")[0] == name for word in command)
