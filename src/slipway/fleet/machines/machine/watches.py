"""What concerns a Machine: its own changes, those of its owners and of what it refers to, and what happens to its Node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.kinds import CLUSTER, CORE_GROUP, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from slipway.fleet.contract.facts import cluster_from
from slipway.fleet.contract.references import changed, clusters_of_control_plane, members, members_seen
from slipway.runtime.controller import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object, Request

CONCERNS = "what concerns a Machine"
"""The index of Machines by their Node, by what they refer to and by their owners."""


class _Reference(msgspec.Struct, rename="camel"):
    kind: str = ""
    name: str = ""
    api_group: str = ""


class _Bootstrap(msgspec.Struct, rename="camel"):
    config_ref: _Reference = msgspec.field(default_factory=_Reference)


class _Spec(msgspec.Struct, rename="camel"):
    cluster_name: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")
    bootstrap: _Bootstrap = msgspec.field(default_factory=_Bootstrap)
    infrastructure_ref: _Reference = msgspec.field(default_factory=_Reference)


class _NodeRef(msgspec.Struct):
    name: str = ""


class _Status(msgspec.Struct, rename="camel"):
    node_ref: _NodeRef = msgspec.field(default_factory=_NodeRef)


class _Machine(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _NodeStatus(msgspec.Struct, rename="camel"):
    conditions: list[_Condition] = []
    node_info: dict[str, Any] = {}


class _NodeSpec(msgspec.Struct, rename="camel"):
    taints: list[dict[str, Any]] = []
    provider_id: str = msgspec.field(default="", name="providerID")


class _Node(msgspec.Struct):
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


def _node_facts(node: Object) -> Any:
    """Not the time of the last heartbeat, which is news to nobody."""
    return node.metadata.labels, node.metadata.annotations, node.decode(_Node)


node_changed = changed(_node_facts)


def _template_facts(found: Object) -> Any:
    content = found.content()
    spec = content.get("spec") or {}
    rollout = (spec.get("rollout") or {}).get("after")
    return spec.get("template"), rollout, found.metadata.annotations.get(names.REVISION_ANNOTATION)


def add_index(cache: Cache) -> None:
    cache.add_index(MACHINE, CONCERNS, concerns)


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    return [each.request for each in await members(cache, MACHINE, found.namespace, found.name)]


async def of_control_plane(found: Object, cache: Cache) -> Iterable[Request]:
    """The Machines that are being deleted: what is done with their Nodes depends on whether the control plane is deleted too."""
    clusters = await clusters_of_control_plane(found, cache)
    machines = [each for cluster in clusters for each in await members(cache, MACHINE, found.namespace, cluster)]
    return [each.request for each in machines if each.metadata.deletion_timestamp]


async def of_external(found: Object, cache: Cache) -> Iterable[Request]:
    return await _concerned(cache, _referred(found.namespace, found.kind.group, found.kind.kind, found.name))


async def of_set(found: Object, cache: Cache) -> Iterable[Request]:
    return await _concerned(cache, _owned(MACHINE_SET, found.namespace, found.name))


async def of_deployment(found: Object, cache: Cache) -> Iterable[Request]:
    return await _concerned(cache, _owned(MACHINE_DEPLOYMENT, found.namespace, found.name))


async def _concerned(cache: Cache, key: str) -> list[Request]:
    return [each.request for each in await cache.list(MACHINE, index=(CONCERNS, key))]


WATCHES = (
    Watch(MACHINE),
    Watch(CLUSTER, of_cluster, changed(cluster_from)),
    Watch(MACHINE_SET, of_set, changed(_template_facts)),
    Watch(MACHINE_DEPLOYMENT, of_deployment, changed(_template_facts)),
)


def external(kind: Kind) -> Watch:
    """Of a kind of bootstrap configs or infrastructure machines, which is known when a Machine refers to one."""
    return Watch(kind, of_external)


def control_planes(kind: Kind) -> Watch:
    return Watch(kind, of_control_plane, changed(lambda found: found.metadata.deletion_timestamp))


def follow(workload: WorkloadClusters, cache: Cache, enqueue: Callable[[Request], None]) -> None:
    """Reconcile Machines when their Node changes, or their cluster can be reached again."""

    def on_node(namespace: str, cluster: str, old: Object | None, new: Object | None) -> None:
        known = new or old
        if known is None or (new is not None and not node_changed(old, new)):
            return
        provider_id = known.decode(_Node).spec.provider_id
        store = cache.informer(MACHINE).store
        found = [*store.indexed(CONCERNS, _on(namespace, cluster, node=known.name))]
        if provider_id:
            found += store.indexed(CONCERNS, _on(namespace, cluster, provider_id=provider_id))
        for request in {each.request for each in found}:
            enqueue(request)

    def on_probe(namespace: str, cluster: str) -> None:
        for each in members_seen(cache, MACHINE, namespace, cluster):
            enqueue(each.request)

    workload.on_node(on_node)
    workload.on_probe(on_probe)


def concerns(found: Object) -> Iterable[str]:
    namespace = found.namespace
    for owner in found.metadata.owner_references:
        if owner.kind == MACHINE_SET.kind and owner.api_version.partition("/")[0] == CORE_GROUP:
            yield _owned(MACHINE_SET, namespace, owner.name)
    deployment = found.metadata.labels.get(names.DEPLOYMENT_NAME_LABEL)
    if deployment:
        yield _owned(MACHINE_DEPLOYMENT, namespace, deployment)
    try:
        machine = found.decode(_Machine)
    except msgspec.ValidationError:
        # It is told when it is reconciled; here it would keep all others from being found.
        return
    spec, node = machine.spec, machine.status.node_ref.name
    if node:
        yield _on(namespace, spec.cluster_name, node=node)
    if spec.provider_id:
        yield _on(namespace, spec.cluster_name, provider_id=spec.provider_id)
    for reference in (spec.bootstrap.config_ref, spec.infrastructure_ref):
        if reference.name:
            yield _referred(namespace, reference.api_group, reference.kind, reference.name)


def _on(namespace: str, cluster: str, *, node: str = "", provider_id: str = "") -> str:
    return f"node {namespace}/{cluster}/{node}|{provider_id}"


def _referred(namespace: str, group: str, kind: str, name: str) -> str:
    return f"reference {namespace}/{group}/{kind}/{name}"


def _owned(kind: Kind, namespace: str, name: str) -> str:
    return f"owner {kind.kind} {namespace}/{name}"
