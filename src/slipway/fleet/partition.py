"""Whose every object of a fleet is, where several managers share it: a Cluster with its machines, pools and hosts is one's.

A Cluster and what names it by label, by ``spec.clusterName`` or by its owner fall to the shard of the Cluster's name.  A pool is for one
Cluster.  A host is of the Cluster whose pool it is marked with, and its Secret and account go with it.  What belongs to no Cluster, such
as a registration, a set of resources for many Clusters or a host in no pool, falls to the shard of its own name, and everybody keeps it.

Nothing but cost depends on it.  Hosts are claimed by who is first at the API server, and everything is written with the version that it
was decided on, so that two who disagree for a moment do nothing twice.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CLUSTER_RESOURCE_SET,
    CLUSTER_RESOURCE_SET_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_REGISTRATION,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SEED_IMAGE,
    SERVICE_ACCOUNT,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.fleet.inventory.accounts import account_name
from slipway.runtime.objects import Object, Outline, fitted
from slipway.runtime.sharding.assignment import shard_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.cache.informer import Informer
    from slipway.runtime.cache.store import Store

SHARED = frozenset(
    {
        BAREMETAL_CLUSTER,
        BAREMETAL_MACHINE_TEMPLATE,
        CLUSTER,
        CLUSTER_RESOURCE_SET,
        CLUSTER_RESOURCE_SET_BINDING,
        CONFIG_MAP,
        CUSTOM_RESOURCE_DEFINITION,
        KUBEADM_CONTROL_PLANE,
        MACHINE_DEPLOYMENT,
        MACHINE_DRAIN_RULE,
        MACHINE_INVENTORY_POOL,
        MACHINE_REGISTRATION,
        SEED_IMAGE,
    }
)
"""Kinds of which there are a few for each Cluster, or none: all replicas keep them whole, as all of them judge what users write."""
_OF_HOSTS = frozenset({SECRET, SERVICE_ACCOUNT, ROLE, ROLE_BINDING})
# What is known of another's host: whose it is, how it is found when it registers again, and which addresses it has.
_KEPT_ANNOTATIONS = frozenset({names.POOL_ANNOTATION, names.ALLOCATION_STATE_ANNOTATION, *names.OWNER_ANNOTATIONS})
# Hosts that come to us one after the other bring what they have in one go.
_GATHER = 1.0


class _Spec(msgspec.Struct, rename="camel"):
    cluster_name: str = ""


class _Named(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Interface(msgspec.Struct, omit_defaults=True):
    addresses: list[str] = []


class _Network(msgspec.Struct, omit_defaults=True):
    interfaces: list[_Interface] = []


class _HostSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    tpm_hash: str = ""
    machine_hash: str = ""
    observed_network: _Network | None = None


class _HostMetadata(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str
    namespace: str
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Host(msgspec.Struct, omit_defaults=True):
    metadata: _HostMetadata
    spec: _HostSpec = msgspec.field(default_factory=_HostSpec)


def cluster_of(found: Object) -> str:
    """The name of the Cluster that an object says it belongs to; empty where it says none."""
    metadata = found.metadata
    if found.kind == CLUSTER:
        return metadata.name
    label = metadata.labels.get(CLUSTER_NAME_LABEL)
    if label:
        return label
    for owner in metadata.owner_references:
        if owner.kind == CLUSTER.kind and owner.api_version.partition("/")[0] == CLUSTER.group:
            return owner.name
    try:
        return found.decode(_Named).spec.cluster_name
    except msgspec.ValidationError:
        # Somebody's kind, in which the field means something else.
        return ""


def outline(found: Object) -> Outline | None:
    """What is kept of a host of another's; None where it cannot be read, and is better kept whole than ends the watch of all."""
    try:
        host = found.decode(_Host)
    except msgspec.ValidationError:
        return None
    host.metadata.annotations = {key: value for key, value in host.metadata.annotations.items() if key in _KEPT_ANNOTATIONS}
    return Outline(MACHINE_INVENTORY, fitted(msgspec.json.encode(host)))


class FleetPartition:
    """``hosts`` and ``pools``: whether this manager follows them.  Where it does not follow pools, which say whose hosts are, a host falls
    to the shard of its own name."""

    def __init__(self, shards: int, *, hosts: bool = True, pools: bool = True) -> None:
        self.shards = shards
        self._hosts, self._pools = hosts, pools
        self._cache: Cache | None = None
        self._wanted: dict[Informer, float] = {}
        self._bringing: asyncio.Task[None] | None = None

    def divides(self, kind: Kind) -> bool:
        return kind not in SHARED

    def after(self, kind: Kind) -> Sequence[Kind]:
        if kind == MACHINE_INVENTORY:
            return (MACHINE_INVENTORY_POOL,) if self._pools else ()
        return (MACHINE_INVENTORY,) if kind in _OF_HOSTS and self._hosts else ()

    def shard(self, found: Object) -> int:
        if found.kind == MACHINE_INVENTORY:
            name = self._cluster_of_host(found) or found.metadata.name
        else:
            name = cluster_of(found) or found.metadata.name
        return shard_of(found.metadata.namespace, name, self.shards)

    def kept(self, found: Object, shards: Collection[int]) -> Object | None:
        if isinstance(found, Outline):
            return found
        if found.kind == MACHINE_INVENTORY:
            # Every pool may take in a host that is in none.
            whole = (self._pools and not self._cluster_of_host(found)) or self.shard(found) in shards
            return found if whole else outline(found) or found
        if found.kind in _OF_HOSTS and (host := _host_of(found)):
            # As long as the host is not known, it may be ours.
            return None if isinstance(self._store(MACHINE_INVENTORY).get(host, found.namespace), Outline) else found
        return found if not cluster_of(found) or self.shard(found) in shards else None

    def follow(self, cache: Cache) -> None:
        """Objects may become another's without having changed themselves: hosts by their pools, and what hosts have by these."""
        self._cache = cache
        if self._hosts:
            cache.informer(MACHINE_INVENTORY).add_handler(self._host_changed)
        if self._hosts and self._pools:
            cache.informer(MACHINE_INVENTORY_POOL).add_handler(self._pool_changed)

    async def close(self) -> None:
        if self._bringing is not None:
            self._bringing.cancel()
            await asyncio.gather(self._bringing, return_exceptions=True)

    def _pool_changed(self, old: Object | None, new: Object | None) -> None:
        before, after = (cluster_of(each) if each is not None else "" for each in (old, new))
        pool = new or old
        if before == after or pool is None:
            return
        assert self._cache is not None
        hosts = self._cache.informer(MACHINE_INVENTORY)
        marked = [each for each in hosts.store.list(pool.namespace) if each.metadata.annotations.get(names.POOL_ANNOTATION) == pool.name]
        if any(isinstance(each, Outline) for each in marked):
            self._bring([hosts])
        hosts.reconsider([(each.namespace, each.name) for each in marked])

    def _host_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or isinstance(old, Outline) is isinstance(new, Outline):
            return
        assert self._cache is not None
        theirs = [informer for informer in self._cache.informers if informer.scope.kind in _OF_HOSTS]
        if not isinstance(new, Outline):
            self._bring(theirs)
            return
        for informer in theirs:
            informer.reconsider((new.namespace, name) for name in (new.name, account_name(new.name)))

    def _bring(self, informers: Iterable[Informer]) -> None:
        """List some kinds anew in a moment, unless somebody does so before: what was left out is at the API server alone."""
        now = time.monotonic()
        self._wanted.update(dict.fromkeys(informers, now))
        if self._bringing is None or self._bringing.done():
            self._bringing = asyncio.get_running_loop().create_task(self._bring_all(), name="objects that have become ours")

    async def _bring_all(self) -> None:
        while self._wanted:
            await asyncio.sleep(_GATHER)
            wanted, self._wanted = self._wanted, {}
            for informer, since in wanted.items():
                if informer.listed_at < since:
                    await informer.refill()

    def _cluster_of_host(self, host: Object) -> str:
        """The Cluster of the pool that a host is marked with; empty where it is in no pool that there is."""
        pool = host.metadata.annotations.get(names.POOL_ANNOTATION)
        if not pool or not self._pools:
            return ""
        found = self._store(MACHINE_INVENTORY_POOL).get(pool, host.metadata.namespace)
        return cluster_of(found) if found is not None else ""

    def _store(self, kind: Kind) -> Store:
        assert self._cache is not None
        return self._cache.informer(kind).store


def _host_of(found: Object) -> str:
    """The host that an object was made for."""
    owners = found.metadata.owner_references
    return next((owner.name for owner in owners if owner.controller and owner.kind == MACHINE_INVENTORY.kind), "")
