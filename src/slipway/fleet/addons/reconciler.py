"""The ClusterResourceSet controller: applies what ConfigMaps and Secrets hold to the Clusters that a selector chooses.

What was applied where is in a ClusterResourceSetBinding a Cluster, which all sets share; it is written after the cluster has the objects,
so that a reconcile that is killed in between does it again.  A ConfigMap that cannot be read, or an object that a cluster refuses, holds
up neither the others nor other Clusters.

The cache has the metadata of ConfigMaps, and of Secrets those of Clusters: a Secret with manifests is read when it is needed, and a set
that has one looks again every minute.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.addons.clusterresourceset import SECRET_TYPE, ClusterResourceSet
from slipway.api.cluster.kinds import CLUSTER, CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING, CONFIG_MAP, SECRET
from slipway.api.cluster.names import PAUSED_CONDITION
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.addons import record, workload
from slipway.fleet.addons.content import Content, content
from slipway.fleet.addons.status import FAILED, MISSING, RESOURCES_APPLIED, UNREACHABLE, UNREADABLE_SELECTOR, WRONG_TYPE, Trouble, tell
from slipway.fleet.contract import secrets, selectors
from slipway.fleet.contract.facts import cluster_from, paused_by, read
from slipway.fleet.contract.references import changed
from slipway.fleet.contract.scope import Patcher
from slipway.fleet.contract.status import Status
from slipway.kube.aio import PatchType
from slipway.kube.errors import AlreadyExistsError, ConflictError
from slipway.runtime import finalizers, owners
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import Watch
from slipway.runtime.objects import DONE, Object, Request, Result, timestamp
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from slipway.api.cluster.addons.clusterresourceset import ResourceRef
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.addons.record import Applied
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

_log = logging.getLogger("slipway.fleet.addons")

NAME = "clusterresourceset"
FINALIZER = "addons.cluster.x-k8s.io"
RETRY = 15.0
LOOK_AGAIN = 60.0
_ATTEMPTS = 5
_KINDS = {CONFIG_MAP.kind: CONFIG_MAP, SECRET.kind: SECRET}

RULES = (
    rule(CLUSTER_RESOURCE_SET, *READ, "patch"),
    rule(CLUSTER_RESOURCE_SET, "patch", subresource="status"),
    rule(CLUSTER_RESOURCE_SET_BINDING, *READ, "create", "patch", "delete"),
    rule(CLUSTER, "list", "watch"),
    rule(CONFIG_MAP, *READ, "patch"),
    rule(SECRET, "get", "patch"),
)


def _cluster_facts(found: Object) -> object:
    """What of a Cluster decides whether it gets anything, and whether it can be reached."""
    facts = cluster_from(found)
    return found.metadata.labels, facts.deleting, facts.control_plane_initialized


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    """The sets that choose a Cluster."""
    return [
        each.request
        for each in await cache.list(CLUSTER_RESOURCE_SET, found.namespace)
        if _chooses(read(each, ClusterResourceSet), found.metadata.labels)
    ]


async def of_resource(found: Object, cache: Cache) -> Iterable[Request]:
    """The sets that have a ConfigMap."""
    sets = await cache.list(CLUSTER_RESOURCE_SET, found.namespace)
    wanted = found.kind.kind, found.name
    return [each.request for each in sets if any((ref.kind, ref.name) == wanted for ref in read(each, ClusterResourceSet).spec.resources)]


def _chooses(given: ClusterResourceSet, labels: dict[str, str]) -> bool:
    selector = given.spec.cluster_selector
    # An empty selector chooses nothing, other than everywhere else in Kubernetes.
    return bool(selector) and not selectors.problem(selector) and selectors.matches(selector, labels)


WATCHES = (
    Watch(CLUSTER_RESOURCE_SET),
    Watch(CLUSTER, of_cluster, changed(_cluster_facts)),
    Watch(CONFIG_MAP, of_resource),
)


class _Resource(NamedTuple):
    """A ConfigMap or a Secret that can be applied."""

    reference: ResourceRef
    content: Content


class ClusterResourceSetReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES
    interval = 1.0

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        *,
        workload: WorkloadClusters,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._workload = workload
        self._clock = clock
        cache.restrict(CONFIG_MAP, metadata_only=True)
        secrets.restrict(cache)

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(CLUSTER_RESOURCE_SET, request.name, request.namespace)
        if found is None:
            return DONE
        if self._cache.is_behind(CLUSTER_RESOURCE_SET, request.name, request.namespace):
            return Result(ON_ITS_WAY)
        manifest, given = found.content(), read(found, ClusterResourceSet)
        patcher = Patcher(
            self._client,
            CLUSTER_RESOURCE_SET,
            manifest,
            owned_conditions=(RESOURCES_APPLIED, PAUSED_CONDITION),
            owned_deprecated_conditions=(RESOURCES_APPLIED,),
        )
        if finalizers.add(manifest, FINALIZER):
            # By itself, before anything is made that it guards.
            return await self._save(patcher, manifest)
        status = Status(manifest, self._clock())
        causes = paused_by(None, manifest)
        status.paused(causes)
        if causes:
            return await self._save(patcher, manifest)
        if finalizers.is_deleted(manifest):
            await self._release(manifest)
            finalizers.remove(manifest, FINALIZER)
            return await self._save(patcher, manifest)
        troubles, clusters = await self._apply(manifest, given)
        if clusters or troubles:
            tell(status, troubles)
        if not troubles:
            status.observed()
        for trouble in troubles:
            _log.warning("%s", trouble.message)
        await self._save(patcher, manifest)
        if any(trouble.retry for trouble in troubles):
            return Result(RETRY)
        return Result(LOOK_AGAIN) if any(ref.kind == SECRET.kind for ref in given.spec.resources) else DONE

    async def _save(self, patcher: Patcher, manifest: Manifest) -> Result:
        written = await patcher.patch(manifest)
        if written["metadata"]["resourceVersion"] != manifest["metadata"]["resourceVersion"]:
            self._cache.wrote(CLUSTER_RESOURCE_SET, written)
        return DONE

    async def _apply(self, manifest: Manifest, given: ClusterResourceSet) -> tuple[list[Trouble], list[Object]]:
        """What went wrong, and the Clusters that are chosen."""
        problem = selectors.problem(given.spec.cluster_selector)
        if problem:
            return [Trouble(UNREADABLE_SELECTOR, f"spec.clusterSelector cannot be read: {problem}")], []
        namespace = manifest["metadata"]["namespace"]
        clusters = [
            each
            for each in await self._cache.list(CLUSTER, namespace)
            if _chooses(given, each.metadata.labels) and not cluster_from(each).deleting
        ]
        if not clusters:
            return [], []
        resources, troubles = await self._resources(manifest, given)
        for cluster in clusters:
            troubles += await self._apply_to(cluster, manifest, given.spec.strategy, resources)
        return troubles, clusters

    async def _resources(self, manifest: Manifest, given: ClusterResourceSet) -> tuple[list[_Resource], list[Trouble]]:
        """What can be applied; the ConfigMaps and Secrets become the set's, so that they go and move with it."""
        found: list[_Resource] = []
        troubles: list[Trouble] = []
        owner = owners.reference(manifest, controller=False)
        for reference in given.spec.resources:
            kind = _KINDS[reference.kind]
            live = await self._client.find(kind, reference.name, manifest["metadata"]["namespace"])
            if live is None:
                # Nobody tells of a Secret that comes.
                text = f"the {kind.kind} {reference.name} does not exist"
                troubles.append(Trouble(MISSING, text, retry=kind is SECRET))
                continue
            if kind is SECRET and live.get("type") != SECRET_TYPE:
                text = f"Secret type of resource {reference.name} is not supported: it must be {SECRET_TYPE}"
                troubles.append(Trouble(WRONG_TYPE, text, retry=True))
                continue
            if owner not in (live["metadata"].get("ownerReferences") or ()):
                references = owners.ensure(live["metadata"].get("ownerReferences"), owner)
                body = {"metadata": {"resourceVersion": live["metadata"]["resourceVersion"], "ownerReferences": references}}
                await self._client.patch(kind, reference.name, manifest["metadata"]["namespace"], body, type=PatchType.MERGE)
            try:
                found.append(_Resource(reference, content({**live, "kind": kind.kind})))
            except OperatorError as error:
                troubles.append(Trouble(FAILED, error.message, retry=kind is SECRET))
        return found, troubles

    async def _apply_to(self, cluster: Object, manifest: Manifest, strategy: str, resources: Sequence[_Resource]) -> list[Trouble]:
        name = manifest["metadata"]["name"]
        binding = await self._client.find(CLUSTER_RESOURCE_SET_BINDING, cluster.name, cluster.namespace)
        wanted = [
            each
            for each in resources
            if record.needs_apply(binding, name, each.reference.kind, each.reference.name, strategy, each.content.hash)
        ]
        if not wanted:
            if binding is None or not record.mentions(binding, name):
                await self._record(cluster, manifest, [])
            return []
        troubles: list[Trouble] = []
        done: list[Applied] = []
        try:
            async with self._workload.client(cluster.namespace, cluster.name) as client:
                for each in wanted:
                    problems = await workload.apply(client, each.content.objects, strategy)
                    text = f"Cluster {cluster.name}: {each.reference.kind} {each.reference.name}: "
                    troubles += [Trouble(FAILED, text + problem, retry=True) for problem in problems]
                    stamp = timestamp(self._clock())
                    done.append(record.Applied(each.reference.kind, each.reference.name, each.content.hash, not problems, stamp))
        except OperatorError as error:
            troubles.append(Trouble(UNREACHABLE, f"Cluster {cluster.name}: {error.message}", retry=True))
        await self._record(cluster, manifest, done)
        return troubles

    async def _record(self, cluster: Object, manifest: Manifest, done: Sequence[Applied]) -> None:
        """Write down what was applied, beside what other sets write there."""
        owner = owners.reference(manifest, controller=False)
        for attempt in range(_ATTEMPTS):
            binding = await self._client.find(CLUSTER_RESOURCE_SET_BINDING, cluster.name, cluster.namespace)
            entries = record.with_applied(binding or {}, manifest["metadata"]["name"], done)
            try:
                if binding is None:
                    metadata = {"name": cluster.name, "namespace": cluster.namespace, "ownerReferences": [owner]}
                    spec = {"clusterName": cluster.name, "bindings": entries}
                    await self._client.create(CLUSTER_RESOURCE_SET_BINDING, {"metadata": metadata, "spec": spec})
                else:
                    had = binding["metadata"]
                    references = owners.ensure(had.get("ownerReferences"), owner)
                    if references == had.get("ownerReferences") and entries == (binding.get("spec") or {}).get("bindings"):
                        return
                    body = {
                        "metadata": {"resourceVersion": had["resourceVersion"], "ownerReferences": references},
                        "spec": {"bindings": entries},
                    }
                    await self._client.patch(CLUSTER_RESOURCE_SET_BINDING, cluster.name, cluster.namespace, body, type=PatchType.MERGE)
                return
            except (AlreadyExistsError, ConflictError):
                # Another set wrote to it.
                if attempt == _ATTEMPTS - 1:
                    raise

    async def _release(self, manifest: Manifest) -> None:
        """Take a set that is deleted out of every binding, also of Clusters that it no longer chooses; what was applied stays there."""
        name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
        owner = owners.reference(manifest, controller=False)
        for cached in await self._cache.list(CLUSTER_RESOURCE_SET_BINDING, namespace):
            binding = cached.content()
            if not record.mentions(binding, name):
                continue
            had = binding["metadata"]
            entries = record.without(binding, name)
            if not entries:
                await self._client.delete(CLUSTER_RESOURCE_SET_BINDING, cached.name, namespace, resource_version=had["resourceVersion"])
                continue
            metadata = {"resourceVersion": had["resourceVersion"], "ownerReferences": owners.remove(had.get("ownerReferences"), owner)}
            body = {"metadata": metadata, "spec": {"bindings": entries}}
            await self._client.patch(CLUSTER_RESOURCE_SET_BINDING, cached.name, namespace, body, type=PatchType.MERGE)
