"""The objects of a management cluster, followed: kept by watches, so that whoever shows them asks for nothing twice.

What a host does of its plan stands in the data of its plan Secret, which is read when its metadata says that it has changed, and only
while the host is at work: everybody else's bootstrap data stays where it is.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from slipway.api.cluster.kinds import CLUSTER, MACHINE_INVENTORY, SECRET
from slipway.fleet.overview.objects import KINDS, PLAN_SECRETS, Objects, is_under_way, why_missing
from slipway.kube.errors import ApiError, ForbiddenError, NotFoundError, UnreachableError
from slipway.runtime.cache.cache import Cache

if TYPE_CHECKING:
    from types import TracebackType

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.objects import Object

_Place = tuple[str, str]


class Follower:
    """``namespace`` is the one to look at; empty for all.  An OperatorError where the server does not answer in the beginning;
    later it may go and come back.
    """

    def __init__(self, client: AsyncClient, namespace: str = "") -> None:
        self._client, self._namespace = client, namespace
        self._cache = Cache(client, namespace=namespace)
        self._cache.restrict(SECRET, labels=PLAN_SECRETS, metadata_only=True)
        self._objects: dict[Kind, dict[_Place, Manifest]] = {kind: {} for kind in (*KINDS.values(), SECRET)}
        self._data: dict[_Place, Manifest] = {}
        """Of plan Secrets that are under way, whole."""
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        # Where there are no clusters to see, there may still be hosts.
        with suppress(ForbiddenError, NotFoundError):
            await self._client.list_page(CLUSTER, self._namespace, limit=1)
        for kind in self._objects:
            self._cache.informer(kind).add_handler(lambda old, new, kind=kind: self._seen(kind, old, new))  # type: ignore[misc]
        await self._cache.wait_for_sync()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._cache.close()

    @property
    def trouble(self) -> str:
        """Why nothing new is heard at the moment; empty while it is."""
        wrong = [
            informer.error for informer in self._cache.informers if informer.error and informer.synced.is_set() and not informer.absent
        ]
        return wrong[0] if wrong else ""

    async def changed(self, timeout: float) -> bool:
        """Wait for a change, but no longer than so many seconds; whether there was one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        changed = self._changed.is_set()
        self._changed.clear()
        return changed

    async def objects(self) -> Objects:
        """All as it was last seen."""
        await self._read_plans()
        secrets = {place: self._data.get(place, secret) for place, secret in self._objects[SECRET].items()}
        return Objects(
            **{field: list(self._objects[kind].values()) for field, kind in KINDS.items()},
            plan_secrets=list(secrets.values()),
            missing={
                informer.scope.kind.kind: why_missing(informer.scope.kind, self._namespace, absent=informer.absent)
                for informer in self._cache.informers
                if informer.error and (informer.absent or not informer.synced.is_set())
            },
        )

    def _seen(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        place = (new or old).request  # type: ignore[union-attr]
        known = self._objects[kind]
        if new is None:
            known.pop((place.namespace, place.name), None)
        else:
            known[place.namespace, place.name] = new.content()
        self._changed.set()

    async def _read_plans(self) -> None:
        busy = {place for place, inventory in self._objects[MACHINE_INVENTORY].items() if is_under_way(inventory)}
        for place in [place for place in self._data if place not in busy]:
            del self._data[place]
        stale = [
            place for place in busy if (secret := self._objects[SECRET].get(place)) and _version(self._data.get(place)) != _version(secret)
        ]
        await asyncio.gather(*(self._read_plan(*place) for place in stale))

    async def _read_plan(self, namespace: str, name: str) -> None:
        try:
            found = await self._client.find(SECRET, name, namespace)
        except (ApiError, UnreachableError):
            # What the host does at the moment is not known then; all else is.
            return
        if found is not None:
            self._data[namespace, name] = found


def _version(manifest: Manifest | None) -> str:
    return "" if manifest is None else str(manifest["metadata"].get("resourceVersion") or "")
