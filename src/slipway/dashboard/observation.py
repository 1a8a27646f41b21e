"""What the manager's caches hold, by namespace and in parts that are looked at anew one by one.

A fleet of 10,000 hosts changes somewhere all the time.  A part is one cluster with everything that is its own, or a handful of hosts that
are nobody's: a change costs a look at its part, and the rest of the fleet stays as it was.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from slipway.api.cluster.infrastructure.names import OWNER_CLUSTER_ANNOTATION
from slipway.api.cluster.kinds import CLUSTER, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.api.elemental import cycles
from slipway.fleet.overview.objects import KINDS, Objects

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

# Hosts that are nobody's are looked at in so many parts.
_BUCKETS = 64
_FIELDS = {kind: field for field, kind in KINDS.items()}


class Part(NamedTuple):
    """``cluster`` is empty for what belongs to none."""

    namespace: str
    cluster: str = ""
    bucket: int = -1


class Held(NamedTuple):
    """The objects of a part by kind, as the cache has them: whoever decodes them may do so in another thread."""

    objects: Mapping[Kind, Sequence[Object]]

    def decoded(self, kinds: Collection[Kind]) -> Objects:
        """Of some kinds alone, as whoever looks may see no other."""
        found: dict[str, Any] = {_FIELDS[kind]: [each.content() for each in held] for kind, held in self.objects.items() if kind in kinds}
        return Objects(**found)


class Past(NamedTuple):
    """A cluster with everything that is its own, and the hosts that are nobody's now, some of which were its nodes before."""

    cluster: str
    own: Held
    free: Sequence[Object]

    def decoded(self, kinds: Collection[Kind]) -> Objects:
        """In another thread, too: ten thousand hosts are asked whose they were."""
        former = [each for each in self.free if _was_of(each, self.cluster)]
        hosts = [*self.own.objects.get(MACHINE_INVENTORY, ()), *former]
        return Held({**self.own.objects, MACHINE_INVENTORY: hosts}).decoded(kinds)


class Observation:
    """Follows the caches from :meth:`start` on."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._parts: dict[Part, dict[Kind, dict[str, Object]]] = {}
        self._place: dict[tuple[Kind, str, str], Part] = {}
        self._versions: dict[str, dict[Part, int]] = {}
        """By namespace."""
        self._version = 0
        self._changed = asyncio.Event()

    def start(self) -> None:
        for kind in KINDS.values():
            self._cache.informer(kind).add_handler(lambda old, new, kind=kind: self._seen(kind, old, new))  # type: ignore[misc]

    @property
    def version(self) -> int:
        """A number that every change makes another one."""
        return self._version

    def parts(self, namespace: str) -> dict[Part, int]:
        """The parts of a namespace, each with the version at which it last changed."""
        return dict(self._versions.get(namespace, {}))

    def held(self, part: Part) -> Held:
        return Held({kind: list(found.values()) for kind, found in self._parts.get(part, {}).items()})

    def around(self, kind: Kind, namespace: str, name: str) -> Held:
        """An object with all that it has to do with: its cluster, and the pools; of a pool everything in its namespace."""
        own = self._place.get((kind, namespace, name))
        if own is None:
            return Held({})
        found: dict[Kind, list[Object]] = {}
        for part in self.parts(namespace) if kind == MACHINE_INVENTORY_POOL else {own, Part(namespace)}:
            for each, objects in self._parts.get(part, {}).items():
                found.setdefault(each, []).extend(objects.values())
        return Held(found)

    def of_cluster(self, namespace: str, cluster: str) -> Past:
        free: list[Object] = []
        for part in self.parts(namespace):
            if part.bucket >= 0:
                free += self._parts[part].get(MACHINE_INVENTORY, {}).values()
        return Past(cluster, self.held(Part(namespace, cluster)), free)

    def present(self) -> dict[str, set[Kind]]:
        """The namespaces, with the kinds that there are some of."""
        found: dict[str, set[Kind]] = {}
        for part, kinds in self._parts.items():
            found.setdefault(part.namespace, set()).update(kinds)
        return found

    def missing(self) -> dict[str, str]:
        """The kinds that cannot be listed at present, and why."""
        informers = {kind: self._cache.informer(kind) for kind in KINDS.values()}
        return {kind.kind: informer.error for kind, informer in informers.items() if informer.error}

    async def changed(self, version: int) -> None:
        """Wait until there is something that is newer than a version."""
        while self._version <= version:
            self._changed.clear()
            await self._changed.wait()

    def _seen(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        if old is new:
            # A resync.
            return
        current = new or old
        if current is None:
            return
        place = kind, current.namespace, current.name
        before = self._place.pop(place, None)
        if before is not None:
            self._forget(before, kind, current.name)
        if new is not None:
            part = self._place[place] = part_of(new)
            self._parts.setdefault(part, {}).setdefault(kind, {})[new.name] = new
            self._touch(part)

    def _forget(self, part: Part, kind: Kind, name: str) -> None:
        kinds = self._parts[part]
        del kinds[kind][name]
        if not kinds[kind]:
            del kinds[kind]
        if not kinds:
            del self._parts[part]
        self._touch(part)

    def _touch(self, part: Part) -> None:
        self._version += 1
        versions = self._versions.setdefault(part.namespace, {})
        if part in self._parts:
            versions[part] = self._version
        else:
            versions.pop(part, None)
        if not versions:
            del self._versions[part.namespace]
        self._changed.set()


def _was_of(host: Object, cluster: str) -> bool:
    return any(cycle.cluster == cluster for cycle in cycles.read(host.metadata.annotations))


def part_of(found: Object) -> Part:
    """Where an object is looked at, by its metadata alone."""
    metadata = found.metadata
    if found.kind == MACHINE_INVENTORY:
        owner = metadata.annotations.get(OWNER_CLUSTER_ANNOTATION, "")
        return Part(metadata.namespace, owner) if owner else Part(metadata.namespace, bucket=crc32(metadata.name.encode()) % _BUCKETS)
    if found.kind == MACHINE_INVENTORY_POOL:
        return Part(metadata.namespace)
    owners = (each.name for each in metadata.owner_references if each.kind == CLUSTER.kind)
    cluster = metadata.name if found.kind == CLUSTER else metadata.labels.get(CLUSTER_NAME_LABEL) or next(owners, "")
    return Part(metadata.namespace, cluster)
