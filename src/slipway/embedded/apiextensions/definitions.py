"""CustomResourceDefinitions at work: accept their names, serve their resources, and empty those that are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.apiextensions import resources
from slipway.embedded.call import Call
from slipway.embedded.registry import delete
from slipway.embedded.registry.delete import DeleteOptions
from slipway.embedded.registry.metadata import timestamp
from slipway.embedded.registry.resources import bucket_of

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authentication import User
    from slipway.embedded.registry.resources import Catalog
    from slipway.embedded.registry.write import Registry
    from slipway.embedded.storage.store import Stored


DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class Definitions:
    """Keeps the catalog in step with the definitions in the store."""

    def __init__(self, registry: Registry, catalog: Catalog, itself: User) -> None:
        self._itself = itself
        self._registry, self._store, self._catalog, self._clock = registry, registry.store, catalog, registry.clock
        self._served: dict[str, tuple[str, Manifest]] = {}
        """The bucket and the spec that each definition was last served with."""
        self._known_names: dict[str, tuple[int, Manifest]] = {}

    def load(self) -> None:
        """Serve what a former life had established."""
        for stored in self._store.bucket(DEFINITIONS).within(""):
            self._serve(stored.manifest())

    async def reconcile(self, name: str) -> None:
        """Bring one definition's status and resources up to date; empty one that is being deleted, and let it go."""
        stored = self._store.get(DEFINITIONS, "", name)
        if stored is None:
            self._withdraw(name)
            return
        manifest = stored.manifest()
        if stored.deleting:
            await self._empty(manifest)
            self._finish(name)
            return
        status = resources.established_status(manifest, self._names(), timestamp(self._clock()))
        if status != manifest.get("status"):
            manifest["status"] = status
            self._put(stored, manifest)
        self._serve(manifest)

    def _names(self) -> list[Manifest]:
        """What the definitions say of their names; a definition is large, and is read once."""
        known: dict[str, tuple[int, Manifest]] = {}
        for stored in self._store.bucket(DEFINITIONS).within(""):
            found = self._known_names.get(stored.name)
            if found is None or found[0] != stored.version:
                manifest = stored.manifest()
                names = (manifest.get("status") or {}).get("acceptedNames")
                spec, status = {"group": manifest["spec"]["group"]}, {"acceptedNames": names}
                found = (stored.version, {"metadata": {"name": stored.name}, "spec": spec, "status": status})
            known[stored.name] = found
        self._known_names = known
        return [manifest for _, manifest in known.values()]

    async def _empty(self, manifest: Manifest) -> None:
        """Delete all instances of a definition."""
        resource = self._catalog.stored_as(_bucket_of(manifest))
        for found in self._instances(manifest):
            if resource is None or found.deleting:
                continue
            call = Call(user=self._itself, resource=resource, namespace=found.namespace, name=found.name)
            try:
                await delete.delete(self._registry, call, DeleteOptions(uid=found.uid))
            except errors.StatusError as error:
                if error.code not in (404, 409):
                    raise

    def _finish(self, name: str) -> None:
        """Finish the deletion of a definition without instances."""
        stored = self._store.get(DEFINITIONS, "", name)
        if stored is None or not stored.deleting:
            return
        manifest = stored.manifest()
        if self._instances(manifest):
            return
        finalizers = [finalizer for finalizer in manifest["metadata"].get("finalizers") or () if finalizer != resources.CLEANUP]
        if not finalizers:
            manifest["metadata"].pop("finalizers", None)
            self._store.delete(DEFINITIONS, manifest, stored.version)
        elif finalizers != manifest["metadata"]["finalizers"]:
            manifest["metadata"]["finalizers"] = finalizers
            self._put(stored, manifest)

    def _instances(self, manifest: Manifest) -> list[Stored]:
        return list(self._store.bucket(_bucket_of(manifest)).within(""))

    def _serve(self, manifest: Manifest) -> None:
        if not resources.condition_is(manifest, "Established"):
            return
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        if self._served.get(name, ("", None))[1] == spec:
            return
        served = resources.served(manifest)
        bucket = _bucket_of(manifest)
        self._catalog.set_custom(bucket, served)
        self._served[name] = (bucket, spec)
        # What was converted by an older definition may look otherwise now.
        for stored in self._store.bucket(bucket).within(""):
            stored.others.clear()

    def _withdraw(self, name: str) -> None:
        served = self._served.pop(name, None)
        if served is not None:
            self._catalog.set_custom(served[0], [])

    def _put(self, stored: Stored, manifest: Manifest) -> None:
        resource = self._catalog.stored_as(DEFINITIONS)
        if resource is not None:
            self._registry.write_back(resource, stored, manifest, "kube-apiserver", "status")


def _bucket_of(manifest: Manifest) -> str:
    spec = manifest["spec"]
    return bucket_of(spec["group"], spec["names"]["plural"])
