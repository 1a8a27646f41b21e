"""The garbage collector, as kube-controller-manager's: dependents whose owners are gone go too.

It follows the changes of the store, so it always knows who depends on whom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.call import Call
from slipway.embedded.controllers.namespace import MANAGER
from slipway.embedded.registry import delete
from slipway.embedded.registry.delete import DeleteOptions
from slipway.embedded.registry.metadata import FOREGROUND, ORPHAN
from slipway.embedded.storage.store import DELETED, ConflictError

if TYPE_CHECKING:
    from slipway.embedded.access.authentication import User
    from slipway.embedded.registry.resources import Catalog, Resource
    from slipway.embedded.registry.write import Registry
    from slipway.embedded.storage.store import Change, Stored


class GarbageCollector:
    """Knows the graph of owners, and brings one object after the other in line with it."""

    def __init__(self, registry: Registry, catalog: Catalog, itself: User) -> None:
        self._registry, self._catalog, self._itself = registry, catalog, itself
        self._dependents: dict[str, set[str]] = {}

    def observe(self, change: Change) -> list[str]:
        """Follow a change of an object that has or had owners, or is being deleted; the uids that are to be looked at because of it."""
        current, previous = change.current, change.previous
        owners = () if change.type == DELETED else current.owners
        for owner in previous.owners if previous is not None else ():
            if owner not in owners:
                self._dependents.get(owner, set()).discard(current.uid)
        for owner in owners:
            self._dependents.setdefault(owner, set()).add(current.uid)
        if change.type == DELETED:
            dependents = self._dependents.pop(current.uid, set())
            return [*dependents, *(previous.owners if previous is not None else ())]
        if current.owners or current.deleting:
            # An owner that waits for its dependents is looked at when one of them changes.
            return [current.uid, *owners, *(previous.owners if previous is not None else ())]
        return []

    def load(self, stored: Stored) -> None:
        """Take in an object of a former life."""
        for owner in stored.owners:
            self._dependents.setdefault(owner, set()).add(stored.uid)

    def with_owners(self) -> list[str]:
        return [uid for dependents in self._dependents.values() for uid in dependents]

    async def collect(self, uid: str) -> None:
        """Bring one object in line: work off its finalizers, or delete it when its owners are gone."""
        found = self._find(uid)
        if found is None:
            return
        resource, stored = found
        if stored.deleting:
            await self._finalize(resource, stored)
            return
        if stored.owners:
            await self._judge(resource, stored)

    def _find(self, uid: str) -> tuple[Resource, Stored] | None:
        found = self._registry.store.by_uid(uid)
        if found is None:
            return None
        bucket, stored = found
        resource = self._catalog.stored_as(bucket)
        return (resource, stored) if resource is not None else None

    async def _finalize(self, resource: Resource, stored: Stored) -> None:
        manifest = stored.manifest()
        finalizers = manifest["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            for uid in list(self._dependents.get(stored.uid, ())):
                self._forget_owners(uid, {stored.uid})
            self._remove_finalizer(resource, stored.uid, ORPHAN)
        elif FOREGROUND in finalizers:
            blocked = False
            for uid in list(self._dependents.get(stored.uid, ())):
                dependent = self._find(uid)
                if dependent is None:
                    continue
                blocked = blocked or _blocks(dependent[1], stored.uid)
                if not dependent[1].deleting:
                    await self._judge(*dependent)
            if not blocked or not any(
                _blocks(found[1], stored.uid) for uid in self._dependents.get(stored.uid, ()) if (found := self._find(uid)) is not None
            ):
                self._remove_finalizer(resource, stored.uid, FOREGROUND)

    async def _judge(self, resource: Resource, stored: Stored) -> None:
        """An object goes when all its owners are gone, or waited for to go; owners that are gone are struck off."""
        solid, waiting, gone = self._owners(stored)
        if solid:
            if gone or waiting:
                self._forget_owners(stored.uid, gone | waiting)
            return
        policy = "Background"
        if waiting and self._dependents.get(stored.uid):
            policy = "Foreground"
        finalizers = stored.manifest()["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers:
            policy = "Foreground"
        options = DeleteOptions(propagation=policy, uid=stored.uid, resource_version=str(stored.version))
        try:
            call = Call(user=self._itself, resource=resource, namespace=stored.namespace, name=stored.name, manager=MANAGER)
            await delete.delete(self._registry, call, options)
        except errors.StatusError as error:
            # Gone or changed meanwhile: the change brings the object here again.
            if error.code not in (404, 409):
                raise

    def _owners(self, stored: Stored) -> tuple[set[str], set[str], set[str]]:
        """The owners of an object: those that stay, those that wait for it to go, and those that are not there."""
        solid: set[str] = set()
        waiting: set[str] = set()
        gone: set[str] = set()
        for reference in stored.manifest()["metadata"].get("ownerReferences") or ():
            uid = reference["uid"]
            owner = self._find(uid)
            # An owner in another namespace is none, and neither is one that the reference names wrongly.
            if owner is None or owner[1].name != reference["name"] or owner[1].namespace not in ("", stored.namespace):
                gone.add(uid)
            elif owner[1].deleting and FOREGROUND in (owner[1].manifest()["metadata"].get("finalizers") or ()):
                waiting.add(uid)
            else:
                solid.add(uid)
        return solid, waiting, gone

    def _forget_owners(self, uid: str, owners: set[str]) -> None:
        found = self._find(uid)
        if found is None:
            return
        resource, stored = found
        manifest = stored.manifest()
        references = [reference for reference in manifest["metadata"].get("ownerReferences") or () if reference["uid"] not in owners]
        manifest["metadata"]["ownerReferences"] = references
        if not references:
            del manifest["metadata"]["ownerReferences"]
        self._registry.write_back(resource, stored, manifest, MANAGER)

    def _remove_finalizer(self, resource: Resource, uid: str, finalizer: str) -> None:
        found = self._find(uid)
        if found is None:
            return
        stored = found[1]
        manifest = stored.manifest()
        left = [name for name in manifest["metadata"].get("finalizers") or () if name != finalizer]
        try:
            if left:
                manifest["metadata"]["finalizers"] = left
                self._registry.store.put(resource.bucket, manifest, stored.version)
            else:
                manifest["metadata"].pop("finalizers", None)
                self._registry.store.delete(resource.bucket, manifest, stored.version)
        except ConflictError as conflict:
            raise AssertionError("the store changed without a pause in between") from conflict


def _blocks(dependent: Stored, owner: str) -> bool:
    references = dependent.manifest()["metadata"].get("ownerReferences") or ()
    return any(reference["uid"] == owner and reference.get("blockOwnerDeletion") for reference in references)
