"""The namespace controller, as kube-controller-manager's: every namespace has its account and its CA; a terminating one is emptied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.call import Call
from slipway.embedded.registry import delete, namespaces
from slipway.embedded.registry.delete import DeleteOptions
from slipway.embedded.registry.metadata import initialise, timestamp

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authentication import User
    from slipway.embedded.registry.resources import Catalog, Resource
    from slipway.embedded.registry.write import Registry
    from slipway.embedded.storage.store import Stored

MANAGER = "kube-controller-manager"


class NamespaceController:
    """Brings one namespace after the other in line; ``itself`` is the user that the server writes as."""

    def __init__(self, registry: Registry, catalog: Catalog, itself: User, ca: bytes) -> None:
        self._registry, self._catalog, self._itself, self._ca = registry, catalog, itself, ca

    async def reconcile(self, name: str) -> None:
        """Fill an active namespace with what every one has; empty a terminating one, and let it go."""
        store = self._registry.store
        stored = store.get("namespaces", "", name)
        if stored is None:
            return
        if not stored.deleting:
            self._ensure(
                "serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
            )
            metadata = {"name": "kube-root-ca.crt", "namespace": name}
            self._ensure(
                "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": self._ca.decode()}}
            )
            return
        await self._empty(name)
        left = [
            (resource, found)
            for bucket in store.resources()
            if (resource := self._catalog.stored_as(bucket)) is not None and resource.namespaced
            for found in store.bucket(bucket).within(name)
        ]
        stored = store.get("namespaces", "", name)
        resource = self._catalog.stored_as("namespaces")
        if stored is None or resource is None:
            return
        manifest = stored.manifest()
        if left:
            status = namespaces.terminating_status(manifest["status"], left, timestamp(self._registry.clock()))
            if status != manifest["status"]:
                manifest["status"] = status
                self._registry.write_back(resource, stored, manifest, MANAGER, "status")
            return
        manifest["spec"] = {key: value for key, value in manifest["spec"].items() if key != "finalizers"}
        if not manifest["metadata"].get("finalizers"):
            store.delete("namespaces", manifest, stored.version)
        elif manifest["spec"] != stored.manifest()["spec"]:
            store.put("namespaces", manifest, stored.version)

    async def _empty(self, name: str) -> None:
        """Delete all that is in a namespace."""
        store = self._registry.store
        for bucket in store.resources():
            resource = self._catalog.stored_as(bucket)
            if resource is None or not resource.namespaced:
                continue
            for found in list(store.bucket(bucket).within(name)):
                # A Pod is not waited for: nobody runs it who could confirm its end.
                if found.deleting and bucket != "pods":
                    continue
                options = DeleteOptions(propagation="Background", uid=found.uid, grace=0)
                try:
                    await delete.delete(self._registry, self._call(resource, found), options)
                except errors.StatusError as error:
                    if error.code not in (404, 409):
                        raise

    def _ensure(self, bucket: str, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        if self._registry.store.get(bucket, metadata["namespace"], metadata["name"]) is None:
            initialise(metadata, self._registry.clock())
            self._registry.store.put(bucket, manifest, 0)

    def _call(self, resource: Resource, stored: Stored) -> Call:
        return Call(user=self._itself, resource=resource, namespace=stored.namespace, name=stored.name, manager=MANAGER)
