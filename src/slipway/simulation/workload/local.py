"""A client of an API server in the same process, without a wire: for what runs beside it in every control plane."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.embedded.access.authentication import MASTERS, User, with_authenticated
from slipway.embedded.call import Call
from slipway.embedded.errors import StatusError
from slipway.embedded.fieldmanager import patches
from slipway.embedded.registry import delete
from slipway.embedded.registry.delete import DeleteOptions
from slipway.embedded.storage import selectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.server import Core
    from slipway.embedded.storage.store import Stored

CONTROLLER_MANAGER = "system:kube-controller-manager"


class LocalClient:
    """What is written goes through the registry as a request would: with defaults, validation and watches."""

    def __init__(self, core: Core, user: str = CONTROLLER_MANAGER) -> None:
        self._core = core
        self._user = with_authenticated(User(user, (MASTERS,)))

    def find(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        stored = self._core.store.get(self._resource(kind).bucket, namespace, name)
        return None if stored is None else stored.manifest()

    def names(self, kind: Kind, namespace: str = "") -> list[str]:
        return [stored.name for stored in self.stored(kind, namespace)]

    def list(self, kind: Kind, namespace: str = "", *, fields: str = "", owner: str = "") -> list[Manifest]:
        """``fields`` is a field selector; ``owner`` the UID of what owns them.  What is not asked for is not decoded."""
        wanted = selectors.select(namespace, "", fields, bucket=self._resource(kind).bucket)
        return [each.manifest() for each in self.stored(kind, namespace, owner=owner) if wanted.holds(each)]

    def stored(self, kind: Kind, namespace: str = "", *, owner: str = "") -> Iterator[Stored]:
        """Objects as they are kept, for who knows most of them already by their versions."""
        found = self._core.store.bucket(self._resource(kind).bucket).within(namespace)
        return (each for each in found if not owner or owner in each.owners)

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest | None:
        """The object; None where there is one already."""
        call = self._call(kind, manifest["metadata"].get("namespace", ""), "", verb="create")
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **manifest}
        try:
            written = await self._core.registry.create(call, body)
        except StatusError as error:
            if error.code == 409:
                return None
            raise
        found: Manifest = msgspec.json.decode(written.raw)
        return found

    async def patch(self, kind: Kind, name: str, namespace: str, body: Any, *, subresource: str = "", strategic: bool = False) -> None:
        """Nothing where there is no such object."""
        call = self._call(kind, namespace, name, verb="patch", subresource=subresource)
        media_type = "application/strategic-merge-patch+json" if strategic else "application/merge-patch+json"
        with _unless_gone():
            await self._core.registry.update(call, patches.Patch(call.resource, media_type, body))

    async def delete(self, kind: Kind, name: str, namespace: str = "", *, grace: int | None = None, uid: str = "") -> None:
        call = self._call(kind, namespace, name, verb="delete")
        with _unless_gone():
            await delete.delete(self._core.registry, call, DeleteOptions(grace=grace, uid=uid))

    def _resource(self, kind: Kind) -> Resource:
        found = self._core.catalog.find(kind.group, kind.version, kind.plural)
        assert found is not None, kind
        return found

    def _call(self, kind: Kind, namespace: str, name: str, *, verb: str, subresource: str = "") -> Call:
        resource = self._resource(kind)
        place = namespace if resource.namespaced else ""
        manager = self._user.name.removeprefix("system:")
        return Call(user=self._user, resource=resource, verb=verb, namespace=place, name=name, subresource=subresource, manager=manager)


@contextmanager
def _unless_gone() -> Iterator[None]:
    """An object that is gone, or became another one, needs nothing more."""
    try:
        yield
    except StatusError as error:
        if error.code not in (404, 409):
            raise
