"""What a MachineHealthCheck is reconciled for: its own changes, those of Machines that it chooses, of their Nodes, and of its Cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.core.machinehealthcheck import MachineHealthCheck
from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_HEALTH_CHECK
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.fleet.contract.facts import cluster_from, read
from slipway.fleet.contract.references import changed
from slipway.fleet.contract.selectors import matches, problem
from slipway.fleet.machines.healthcheck import observed
from slipway.runtime.controller import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object, Request

OF_CLUSTER = "healthCheckOfCluster"
OF_NODE = "machineOfNode"


def add_indices(cache: Cache) -> None:
    cache.add_index(MACHINE_HEALTH_CHECK, OF_CLUSTER, _cluster_of_check)
    cache.add_index(MACHINE, OF_NODE, _node_of_machine)


async def of_machine(found: Object, cache: Cache) -> Iterable[Request]:
    """The health checks that choose the Machine."""
    add_indices(cache)
    key = f"{found.namespace}/{found.metadata.labels.get(CLUSTER_NAME_LABEL, '')}"
    checks = await cache.list(MACHINE_HEALTH_CHECK, index=(OF_CLUSTER, key))
    return [check.request for check in checks if _chooses(check, found)]


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    add_indices(cache)
    checks = await cache.list(MACHINE_HEALTH_CHECK, index=(OF_CLUSTER, f"{found.namespace}/{found.name}"))
    return [check.request for check in checks]


async def of_external(found: Object, cache: Cache) -> Iterable[Request]:
    """The health checks that a remediation template is of, or that choose the Machine which a request is for, by its name."""
    machine = await cache.get(MACHINE, found.name, found.namespace)
    choosing = [] if machine is None else list(await of_machine(machine, cache))
    checks = await cache.list(MACHINE_HEALTH_CHECK, found.namespace)
    return [*choosing, *(check.request for check in checks if _is_template_of(found, check))]


def external(kind: Kind) -> Watch:
    """Of what others do with requests, only that they come and go matters."""
    return Watch(kind, of_external, lambda old, new: old is None or new is None)


def machine_counts(old: Object | None, new: Object | None) -> bool:
    """Of a Machine its conditions, its Node, its labels and its annotations matter."""
    if old is None or new is None or old is new:
        return True
    if (old.metadata.labels, old.metadata.annotations) != (new.metadata.labels, new.metadata.annotations):
        return True
    before, after = observed.machine(old).status, observed.machine(new).status
    return (before.node_ref, before.conditions) != (after.node_ref, after.conditions)


def node_counts(old: Object | None, new: Object | None) -> bool:
    """Of a Node its conditions matter, whenever they were looked at last."""
    if old is None or new is None:
        return True
    return observed.conditions_of(old) != observed.conditions_of(new)


def on_node(cache: Cache, enqueue: Callable[[Request], None]) -> Callable[[str, str, Object | None, Object | None], None]:
    """Hears of Nodes of workload clusters, and has the health checks of their Machines reconciled."""

    def heard(namespace: str, cluster: str, old: Object | None, new: Object | None) -> None:
        node = new or old
        if node is None or not node_counts(old, new):
            return
        checks = cache.informer(MACHINE_HEALTH_CHECK).store.indexed(OF_CLUSTER, f"{namespace}/{cluster}")
        machines = cache.informer(MACHINE).store.indexed(OF_NODE, f"{namespace}/{node.name}") if checks else []
        for machine in machines:
            if machine.metadata.labels.get(CLUSTER_NAME_LABEL) != cluster:
                continue
            for check in checks:
                if _chooses(check, machine):
                    enqueue(check.request)

    return heard


def on_probe(cache: Cache, enqueue: Callable[[Request], None]) -> Callable[[str, str], None]:
    """Hears when a workload cluster can be reached, or no longer: its Machines can be judged, or not."""

    def heard(namespace: str, cluster: str) -> None:
        for check in cache.informer(MACHINE_HEALTH_CHECK).store.indexed(OF_CLUSTER, f"{namespace}/{cluster}"):
            enqueue(check.request)

    return heard


def _chooses(check: Object, machine: Object) -> bool:
    """A selector that means nothing chooses nothing; it is told where its health check is reconciled, and holds up no other."""
    selector = read(check, MachineHealthCheck).spec.selector
    return not problem(selector) and matches(selector, machine.metadata.labels)


def _is_template_of(found: Object, check: Object) -> bool:
    reference = read(check, MachineHealthCheck).spec.remediation.template_ref
    return (reference.name, reference.kind, reference.api_version) == (found.name, found.kind.kind, found.kind.api_version)


def _cluster_of_check(found: Object) -> Iterable[str]:
    return [f"{found.namespace}/{read(found, MachineHealthCheck).spec.cluster_name}"]


def _node_of_machine(found: Object) -> Iterable[str]:
    name = observed.machine(found).node_name
    return [f"{found.namespace}/{name}"] if name else []


def _cluster_facts(found: Object) -> object:
    """Whether it is paused, and what a verdict depends on."""
    return cluster_from(found).paused, [(one.type, one.status) for one in observed.conditions_of(found) if one.type in _DECISIVE]


_DECISIVE = ("InfrastructureReady", "ControlPlaneInitialized")

WATCHES = (
    Watch(MACHINE_HEALTH_CHECK),
    Watch(MACHINE, of_machine, machine_counts),
    Watch(CLUSTER, of_cluster, changed(_cluster_facts)),
)
