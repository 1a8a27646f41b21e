"""The ClusterResourceSetBinding controller: a binding goes with its Cluster, and names it in its spec."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import CLUSTER, CLUSTER_RESOURCE_SET_BINDING, CORE_GROUP
from slipway.api.cluster.names import PAUSED_ANNOTATION
from slipway.fleet.addons import record
from slipway.fleet.contract.facts import cluster_from
from slipway.fleet.contract.references import changed
from slipway.kube.aio import PatchType
from slipway.runtime import owners
from slipway.runtime.controller import Watch
from slipway.runtime.objects import DONE, Object, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

_log = logging.getLogger("slipway.fleet.addons")

NAME = "clusterresourcesetbinding"
RULES = (rule(CLUSTER_RESOURCE_SET_BINDING, *READ, "patch", "delete"), rule(CLUSTER, "list", "watch"))


async def of_cluster(found: Object, cache: Cache) -> Iterable[Request]:
    """The binding of a Cluster has its name."""
    return [found.request]


def gone(old: Object | None, new: Object | None) -> bool:
    """A Cluster that went, or is going, or is seen for the first time."""
    return new is None or changed(lambda found: cluster_from(found).deleting)(old, new)


WATCHES = (Watch(CLUSTER_RESOURCE_SET_BINDING), Watch(CLUSTER, of_cluster, gone))


class ClusterResourceSetBindingReconciler:
    name = NAME
    watches = WATCHES
    rules = RULES

    def __init__(self, client: AsyncClient, cache: Cache) -> None:
        self._client = client
        self._cache = cache

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(CLUSTER_RESOURCE_SET_BINDING, request.name, request.namespace)
        if found is None or PAUSED_ANNOTATION in found.metadata.annotations:
            return DONE
        binding = found.content()
        name = record.cluster_name(binding)
        cluster = await self._cache.get(CLUSTER, name, request.namespace) if name else None
        if name and (cluster is None or cluster_from(cluster).deleting):
            _log.info("deleting the binding: its Cluster %s is gone or going", name)
            await self._client.delete(CLUSTER_RESOURCE_SET_BINDING, request.name, request.namespace, uid=found.metadata.uid)
            return DONE
        patch = migration(binding, name)
        if patch:
            await self._client.patch(CLUSTER_RESOURCE_SET_BINDING, request.name, request.namespace, patch, type=PatchType.MERGE)
        return DONE


def migration(binding: Manifest, name: str) -> Manifest:
    """The patch to today's form: before Cluster API 1.4 a binding named its Cluster by an owner reference alone."""
    metadata = binding["metadata"]
    owner = owners.find(binding, CORE_GROUP, CLUSTER.kind)
    named = (binding.get("spec") or {}).get("clusterName") == name
    if not name or (owner is None and named):
        return {}
    made: Manifest = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"clusterName": name}}
    if owner is not None:
        made["metadata"]["ownerReferences"] = owners.remove(metadata.get("ownerReferences"), owner)
    return made
