"""Who refers to whom among the objects of Cluster API, followed both ways.

A reference names a group and a kind, whose version the contract label of the CRD gives (Cluster API's controllers/external).  The ways
back, from an object to those whom its change concerns, are indices of the cache.  Objects of kinds that may be watched are watched from
the first time that somebody refers to one, so that one which is missing is noticed when it comes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import CLUSTER, CUSTOM_RESOURCE_DEFINITION, Kind
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.facts import cluster_from
from slipway.kube.errors import NotFoundError
from slipway.runtime.objects import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping
    from typing import Any

    from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.manager import Manager
    from slipway.runtime.objects import Metadata, Object

    When = Callable[[Object | None, Object | None], bool]

# The contracts whose objects we understand, the best one first.
_CONTRACTS = ("cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1")
_API_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STABILITY = {"alpha": 0, "beta": 1, None: 2}


class _Any:
    """Holds everything."""

    def __contains__(self, item: object) -> bool:
        return True


ANY: Container[tuple[str, str]] = _Any()
"""Every kind may be watched: roles of providers are aggregated to ours."""


class References:
    """Reads what references lead to.  Which API version to ask for is remembered.

    ``watch`` is called once for each of the kinds in ``watchable`` (groups and kinds) that somebody refers to; permission to watch any
    other is not ours to take.
    """

    def __init__(
        self, client: AsyncClient, cache: Cache, *, watch: Callable[[Kind], None], watchable: Container[tuple[str, str]] = ()
    ) -> None:
        self._client = client
        self._cache = cache
        self._watch = watch
        self._watchable = watchable
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._contracts: dict[tuple[str, str], str] = {}
        self._watched: set[Kind] = set()

    async def read(self, reference: Reference, namespace: str) -> Manifest:
        """The object, from the API server."""
        kind = await self.kind(reference)
        try:
            return await self._client.get(kind, reference.name, namespace)
        except NotFoundError as error:
            if not error.name:
                # It is not the object that is missing: the version that was asked for is served no more.
                self._kinds.pop((reference.api_group, reference.kind), None)
            raise

    async def find(self, reference: Reference, namespace: str, *, sure: bool = True) -> Manifest | None:
        """The object as :meth:`last_known` has it; None where there is none.  An error where there is no such kind.

        Who need not be ``sure`` is content with a watch that has not seen it: it tells when the object comes.
        """
        try:
            kind = await self.kind(reference)
        except NotFoundError:
            raise OperatorError(
                f"there is no CustomResourceDefinition {crd_name(reference.api_group, reference.kind)} for the {reference.kind} "
                f"{namespace}/{reference.name} that is referred to: install the provider that brings it, or mend the reference"
            ) from None
        if not sure and kind in self._watched and self._cache.informer(kind).synced.is_set():
            known = await self._cache.get(kind, reference.name, namespace)
            return None if known is None else known.content()
        try:
            return await self.last_known(reference, namespace)
        except NotFoundError:
            return None

    async def last_known(self, reference: Reference, namespace: str) -> Manifest:
        """The object as the watch has it, where there is one; else from the API server."""
        kind = self.known(reference)
        if kind is not None and kind in self._watched and self._cache.informer(kind).synced.is_set():
            known = await self._cache.get(kind, reference.name, namespace)
            if known is not None:
                return known.content()
        return await self.read(reference, namespace)

    async def contract(self, reference: Reference) -> str:
        """The contract that the kind fulfils, v1beta2 or v1beta1: it says where its fields are."""
        await self.kind(reference)
        return self._contracts[reference.api_group, reference.kind]

    def known(self, reference: Reference) -> Kind | None:
        """The kind that a reference means, where somebody has asked for it before."""
        return self._kinds.get((reference.api_group, reference.kind))

    async def kind(self, reference: Reference) -> Kind:
        """The kind that a reference means, in the version of the contract."""
        known = self.known(reference)
        if known is None:
            name = crd_name(reference.api_group, reference.kind)
            crd = await self._client.get(CUSTOM_RESOURCE_DEFINITION, name)
            labels = crd["metadata"].get("labels") or {}
            version = contract_version(labels, name)
            spec = crd["spec"]
            known = Kind(reference.api_group, version, reference.kind, spec["names"]["plural"], spec.get("scope") != "Cluster")
            self._kinds[reference.api_group, reference.kind] = known
            self._contracts[reference.api_group, reference.kind] = next(one for one in _CONTRACTS if labels.get(one)).rpartition("/")[2]
        if known not in self._watched and (known.group, known.kind) in self._watchable:
            self._watched.add(known)
            self._watch(known)
        return known


def contract_version(labels: Mapping[str, str], crd: str) -> str:
    """The API version of a CRD that fulfils the newest contract that we know."""
    for contract in _CONTRACTS:
        versions = [version for version in (labels.get(contract) or "").split("_") if version]
        if versions:
            return max(versions, key=_precedence)
    raise OperatorError(
        f"the CustomResourceDefinition {crd} says by no label which of its versions fulfil the contract of Cluster API: "
        f"one of {', '.join(_CONTRACTS)} is wanted"
    )


def lookup_in(manager: Manager) -> Callable[[str, str], str]:
    """Which apiVersion a group and a kind have by the contract, from the labels of the CRDs as they were last seen; for conversions."""
    manager.cache.restrict(CUSTOM_RESOURCE_DEFINITION, metadata_only=True)

    def begin() -> None:
        manager.cache.informer(CUSTOM_RESOURCE_DEFINITION)

    manager.at_start(begin)

    def lookup(group: str, kind: str) -> str:
        name = crd_name(group, kind)
        found = manager.cache.informer(CUSTOM_RESOURCE_DEFINITION).store.get(name, "")
        if found is None:
            raise OperatorError(
                f"there is no CustomResourceDefinition {name}, whose label says which version objects of it are referred to in"
            )
        return f"{group}/{contract_version(found.metadata.labels, name)}"

    return lookup


def crd_name(group: str, kind: str) -> str:
    """How the contract names CRDs: by the plural of their kind."""
    plural = kind.lower()
    if plural.endswith("y") and plural[-2:-1] not in "aeiou":
        plural = f"{plural[:-1]}ies"
    elif plural.endswith(("s", "x", "z", "ch", "sh")):
        plural += "es"
    else:
        plural += "s"
    return f"{plural}.{group}"


def _precedence(version: str) -> tuple[int, int, int, str]:
    """Stable versions before beta ones before alpha ones, then by number, as Kubernetes orders them; other names come last."""
    match = _API_VERSION.fullmatch(version)
    if match is None:
        return -1, 0, 0, version
    return _STABILITY[match[2]], int(match[1]), int(match[3] or 0), ""


def changed(facts: Callable[[Object], Any]) -> When:
    """Counts the changes in which ``facts`` differ, creations, and resyncs: an object changes often, and most of it concerns nobody."""

    def counts(old: Object | None, new: Object | None) -> bool:
        if old is None or new is None or old is new:
            return new is not None
        return bool(facts(old) != facts(new))

    return counts


def besides_status(old: Object | None, new: Object | None) -> bool:
    """Counts everything but a change of the status alone: for who writes that, and goes by nothing that stands there.

    What somebody else writes there is put right with the next change, or when everything is looked at again.
    """
    if old is None or new is None or old is new:
        return True
    return _besides_status(old.metadata) != _besides_status(new.metadata)


def _besides_status(found: Metadata) -> tuple[object, ...]:
    """What changes with anything but the status: the generation is that of the spec."""
    marks = found.labels, found.annotations, found.finalizers, found.owner_references
    return found.uid, found.generation, found.deletion_timestamp, *marks


async def members(cache: Cache, kind: Kind, namespace: str, cluster: str) -> list[Object]:
    """The objects of a kind that belong to a Cluster, by its label."""
    cache.add_index(kind, CLUSTER_NAME_LABEL, _cluster_key)
    return await cache.list(kind, index=(CLUSTER_NAME_LABEL, f"{namespace}/{cluster}"))


def members_seen(cache: Cache, kind: Kind, namespace: str, cluster: str) -> list[Object]:
    """The same without a wait, of what has been seen so far."""
    cache.add_index(kind, CLUSTER_NAME_LABEL, _cluster_key)
    return cache.informer(kind).store.indexed(CLUSTER_NAME_LABEL, f"{namespace}/{cluster}")


async def control_plane_members(cache: Cache, kind: Kind, namespace: str, cluster: str) -> list[Object]:
    """Those of its members that are of the control plane: few, however many workers it has."""
    cache.add_index(kind, CONTROL_PLANE_LABEL, _control_plane_member_key)
    return await cache.list(kind, index=(CONTROL_PLANE_LABEL, f"{namespace}/{cluster}"))


async def clusters_of_control_plane(found: Object, cache: Cache) -> list[str]:
    """The names of the Clusters that a control plane is of: by its label, or by who refers to it, as nothing obliges it to have one."""
    name = found.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    if name:
        return [name]
    cache.add_index(CLUSTER, "controlPlaneRef", _control_plane_key)
    key = f"{found.namespace}/{found.kind.group}/{found.kind.kind}/{found.name}"
    return [cluster.name for cluster in await cache.list(CLUSTER, index=("controlPlaneRef", key))]


def controlled_by(kind: Kind) -> Callable[[Object, Cache], Any]:
    """The mapping from what objects of ``kind`` control to them."""

    async def of_controller(found: Object, cache: Cache) -> Iterable[Request]:
        return [
            Request(found.namespace, owner.name)
            for owner in found.metadata.owner_references
            if owner.controller and owner.kind == kind.kind and owner.api_version.partition("/")[0] == kind.group
        ]

    return of_controller


def _cluster_key(found: Object) -> Iterable[str]:
    name = found.metadata.labels.get(CLUSTER_NAME_LABEL)
    return [f"{found.namespace}/{name}"] if name else []


def _control_plane_member_key(found: Object) -> Iterable[str]:
    return _cluster_key(found) if CONTROL_PLANE_LABEL in found.metadata.labels else []


def _control_plane_key(found: Object) -> Iterable[str]:
    reference = cluster_from(found).control_plane_ref
    return [] if reference is None else [f"{found.namespace}/{reference.api_group}/{reference.kind}/{reference.name}"]
