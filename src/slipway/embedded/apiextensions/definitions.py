"""CustomResourceDefinitions at work: accept their names, serve their resources, and empty those that are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded.apiextensions import resources as customresources
from slipway.embedded.registry.metadata import timestamp

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Catalog
    from slipway.embedded.registry.write import Registry
    from slipway.embedded.storage.store import Stored


BUCKET = "customresourcedefinitions.apiextensions.k8s.io"


class Definitions:
    """Keeps the catalog in step with the definitions in the store."""

    def __init__(self, registry: Registry, catalog: Catalog) -> None:
        self._registry, self._store, self._catalog, self._clock = registry, registry.store, catalog, registry.clock
        self._served: dict[str, tuple[str, Manifest]] = {}
        """The bucket and the spec that each definition was last served with."""
        self._known_names: dict[str, tuple[int, Manifest]] = {}

    def load(self) -> None:
        """Serve what a former life had established."""
        for stored in self._store.bucket(BUCKET).within(""):
            self._serve(stored.manifest())

    def reconcile(self, name: str) -> None:
        """Bring one definition's status and resources up to date."""
        stored = self._store.get(BUCKET, "", name)
        if stored is None:
            self._withdraw(name)
            return
        if stored.deleting:
            return
        manifest = stored.manifest()
        status = customresources.established_status(manifest, self._names(), timestamp(self._clock()))
        if status != manifest.get("status"):
            manifest["status"] = status
            self._put(stored, manifest)
        self._serve(manifest)

    def _names(self) -> list[Manifest]:
        """What the definitions say of their names; a definition is large, and is read once."""
        known: dict[str, tuple[int, Manifest]] = {}
        for stored in self._store.bucket(BUCKET).within(""):
            found = self._known_names.get(stored.name)
            if found is None or found[0] != stored.version:
                manifest = stored.manifest()
                names = (manifest.get("status") or {}).get("acceptedNames")
                spec, status = {"group": manifest["spec"]["group"]}, {"acceptedNames": names}
                found = (stored.version, {"metadata": {"name": stored.name}, "spec": spec, "status": status})
            known[stored.name] = found
        self._known_names = known
        return [manifest for _, manifest in known.values()]

    def is_emptied(self, name: str) -> bool:
        """Finish the deletion of a definition without instances; True where there was nothing left to do."""
        stored = self._store.get(BUCKET, "", name)
        if stored is None or not stored.deleting:
            return True
        manifest = stored.manifest()
        if self.instances(manifest):
            return False
        finalizers = [finalizer for finalizer in manifest["metadata"].get("finalizers") or () if finalizer != customresources.CLEANUP]
        if finalizers:
            if finalizers != manifest["metadata"]["finalizers"]:
                manifest["metadata"]["finalizers"] = finalizers
                self._put(stored, manifest)
            return True
        manifest["metadata"].pop("finalizers", None)
        self._store.delete(BUCKET, manifest, stored.version)
        return True

    def instances(self, manifest: Manifest) -> list[Stored]:
        spec = manifest["spec"]
        return list(self._store.bucket(f"{spec['names']['plural']}.{spec['group']}").within(""))

    def _serve(self, manifest: Manifest) -> None:
        if not customresources.condition_is(manifest, "Established"):
            return
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        if self._served.get(name, ("", None))[1] == spec:
            return
        resources = customresources.resources(manifest)
        bucket = f"{spec['names']['plural']}.{spec['group']}"
        self._catalog.set_custom(bucket, resources)
        self._served[name] = (bucket, spec)
        # What was converted by an older definition may look otherwise now.
        for stored in self._store.bucket(bucket).within(""):
            stored.others.clear()

    def _withdraw(self, name: str) -> None:
        served = self._served.pop(name, None)
        if served is not None:
            self._catalog.set_custom(served[0], [])

    def _put(self, stored: Stored, manifest: Manifest) -> None:
        resource = self._catalog.stored_as(BUCKET)
        if resource is not None:
            self._registry.write_back(resource, stored, manifest, "kube-apiserver", "status")
