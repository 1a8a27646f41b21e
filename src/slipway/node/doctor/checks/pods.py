"""The static Pods: their manifests, the containers that the runtime has of them, and how they answer."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from slipway.node import paths
from slipway.node.doctor.finding import Check, Kind
from slipway.node.health.causes import UNKNOWN, Failure, cause_of, kubelet_cause_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.facts import Component, Facts
    from slipway.node.doctor.finding import Finding

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_FLAPPING_EXITS, _FLAPPING_SECONDS = 3, 600
_LOGS = "crictl logs $(crictl ps -a --name {name} -q | head -1)"

UNREADABLE = Kind(
    "manifest-unreadable",
    "error",
    "the kubelet cannot use the manifest {path}",
    ("correct {path}, or have it written anew: slipway init phase control-plane all (etcd's: slipway init phase etcd local)",),
)
DUPLICATE = Kind(
    "manifest-twice",
    "error",
    "{paths} define one Pod, {pod}: the kubelet runs only one of them, and it may be the wrong one",
    ("move what is not meant out of /etc/kubernetes/manifests: the kubelet reads every file there, whatever it ends in",),
)
MISSING = Kind(
    "manifest-missing",
    "error",
    "the control plane has no manifest of {name}",
    ("slipway init phase control-plane all", "look for a copy under /etc/kubernetes/tmp"),
)
EXITED = Kind("container-exited", "error", "{name} has exited with exit code {code}: {cause}", (_LOGS,))
NOT_STARTED = Kind(
    "container-not-started", "error", "the kubelet has not started {name}{cause}", ("journalctl -u kubelet -n 100 | grep {name}",)
)
IMAGE_MISSING = Kind(
    "image-missing", "error", "the image of {name} is not on this node, and the kubelet could not pull it", ("crictl pull {image}",)
)
FLAPPING = Kind(
    "container-flapping", "warning", "{name} runs, and ended {exits} times before, the last time {ago} s ago: {cause}", (_LOGS,)
)
SILENT = Kind("component-not-answering", "error", "{name} runs, and does not answer as it should{cause}", (_LOGS,))


def find(facts: Facts) -> Iterator[Finding]:
    if not facts.is_node:
        return
    yield from _manifests(facts)
    kubelet = facts.kubelet.unit
    runs = kubelet is None or kubelet.active == "active"
    # Those that only wait for another one come after it.
    for component in sorted(facts.runtime.components or (), key=_waits):
        yield from _component(facts, component, kubelet_runs=runs)


def _waits(component: Component) -> bool:
    if component.found is None or component.found.container.state == "running":
        return False
    cause = cause_of(component.name, component.found.failure)
    return cause.named and cause.certain_after is None


def _manifests(facts: Facts) -> Iterator[Finding]:
    by_pod = defaultdict(list)
    for manifest in facts.manifests:
        if manifest.problem:
            yield UNREADABLE.found(manifest.problem, path=manifest.path)
        else:
            by_pod[manifest.pod].append(manifest.path)
    for pod, files in by_pod.items():
        if len(files) > 1:
            yield DUPLICATE.found(f"metadata of {', '.join(files)}", paths=" and ".join(files), pod=pod)
    if facts.role == "control plane" and facts.manifests:
        named = {container.name for manifest in facts.manifests for container in manifest.containers}
        broken = {manifest.path for manifest in facts.manifests if manifest.problem}
        for name in CONTROL_PLANE:
            path = f"{paths.MANIFESTS_DIR}/{name}.yaml"
            if name not in named and path not in broken:
                yield MISSING.found(f"{path}: no such file", name=name)


def _component(facts: Facts, component: Component, *, kubelet_runs: bool) -> Iterator[Finding]:
    name, found = component.name, component.found
    if found is None:
        # A kubelet that does not run starts nothing, and is told of by itself.
        if kubelet_runs:
            yield _absent(facts, component)
        return
    cause = cause_of(name, found.failure)
    status = found.status
    if found.container.state != "running" and not found.running_again:
        evidence = cause.line or f"{found.container.id[:12]} {found.container.state}, {status.reason or 'no reason'}"
        yield EXITED.found(evidence, fix=cause.fixes, name=name, code=status.exit_code, cause=cause.sentence)
        return
    if found.running_again:
        ago = facts.now.timestamp() - status.finished
        if found.failure.exits >= _FLAPPING_EXITS and ago <= _FLAPPING_SECONDS:
            yield FLAPPING.found(cause.line, fix=cause.fixes, name=name, exits=found.failure.exits, ago=round(ago), cause=cause.sentence)
    if component.answer:
        told = UNKNOWN if found.running_again else cause
        yield SILENT.found(component.answer, fix=told.fixes, name=name, cause=told.clause)


def _absent(facts: Facts, component: Component) -> Finding:
    name = component.name
    journal = facts.kubelet.unit.journal if facts.kubelet.unit is not None else ()
    about = tuple(line for line in journal if name in line and line.startswith("E"))
    cause = kubelet_cause_of(Failure(log=about, exits=0, exit_code=0, message=""))
    if component.image_missing:
        return IMAGE_MISSING.found(cause.line or f"the runtime has no image {component.image}", name=name, image=component.image)
    return NOT_STARTED.found(
        cause.line or "the runtime has no container of it",
        fix=cause.fixes,
        name=name,
        cause=cause.clause,
    )


CHECK = Check(
    "static Pods",
    "manifests, containers and answers of the control plane's components",
    (UNREADABLE, DUPLICATE, MISSING, EXITED, NOT_STARTED, IMAGE_MISSING, FLAPPING, SILENT),
    find,
)
