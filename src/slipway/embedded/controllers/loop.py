"""What kube-controller-manager does in a real cluster and clients rely on: namespaces, definitions, garbage, default accounts.

Changes of the store put work into one queue, and one task does it, in order.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.access import aggregation
from slipway.embedded.access.authorization import CLUSTER_ROLES
from slipway.embedded.apiextensions import definitions
from slipway.embedded.registry import delete, namespaces
from slipway.embedded.registry.delete import DeleteOptions
from slipway.embedded.registry.metadata import initialise, timestamp
from slipway.embedded.storage.store import DELETED, ConflictError

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.apiextensions.definitions import Definitions
    from slipway.embedded.controllers.garbage import GarbageCollector
    from slipway.embedded.registry.resources import Catalog
    from slipway.embedded.registry.write import Registry, WriteOptions
    from slipway.embedded.storage.store import Change


_log = logging.getLogger(__name__)


class Controllers:
    """One queue of (what, which) and the task that works it off; the same work waits only once."""

    def __init__(
        self, registry: Registry, catalog: Catalog, collector: GarbageCollector, defined: Definitions, options: WriteOptions, ca: bytes
    ) -> None:
        self._registry, self._catalog, self._collector, self._definitions = registry, catalog, collector, defined
        self._options = options
        self._ca = ca
        self._queue: dict[tuple[str, str], None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take in what is stored already, then follow."""
        store = self._registry.store
        for bucket in store.resources():
            for stored in store.bucket(bucket).within(""):
                self._collector.load(bucket, stored)
        for uid in self._collector.with_owners():
            self._add("garbage", uid)
        for stored in store.bucket("namespaces").within(""):
            self._add("namespace", stored.name)
        for stored in store.bucket(definitions.BUCKET).within(""):
            self._add("definition", stored.name)
        store.listeners.append(self._observe)
        self._task = asyncio.create_task(self._run(), name="embedded controllers")

    async def stop(self) -> None:
        self._registry.store.listeners.remove(self._observe)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _add(self, what: str, which: str) -> None:
        self._queue.setdefault((what, which))
        self._wake.set()

    def _observe(self, bucket: str, change: Change) -> None:
        for uid in self._collector.observe(bucket, change):
            self._add("garbage", uid)
        current = change.current
        if bucket == "namespaces":
            self._add("namespace", current.name)
        elif current.namespace and change.type == DELETED:
            owner = self._registry.store.get("namespaces", "", current.namespace)
            if owner is not None and (owner.deleting or current.name in ("default", "kube-root-ca.crt")):
                self._add("namespace", current.namespace)
        if bucket == definitions.BUCKET:
            self._add("definition", current.name)
            if change.type == DELETED:
                # Names that were taken may be free now.
                for stored in self._registry.store.bucket(bucket).within(""):
                    self._add("definition", stored.name)
        elif change.type == DELETED and (resource := self._catalog.stored_as(bucket)) is not None and resource.custom is not None:
            self._add("definition", resource.custom.definition)
        if bucket == CLUSTER_ROLES:
            self._add("roles", "")

    async def _run(self) -> None:
        while True:
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
            what, which = next(iter(self._queue))
            del self._queue[what, which]
            try:
                await self._do(what, which)
            except (errors.StatusError, ConflictError) as error:
                _log.warning("%s %s: %s", what, which, error)
            except Exception:
                _log.exception("%s %s", what, which)
            # Requests go first.
            await asyncio.sleep(0)

    async def _do(self, what: str, which: str) -> None:
        if what == "garbage":
            await self._collector.collect(which)
        elif what == "namespace":
            await self._namespace(which)
        elif what == "definition":
            await self._definition(which)
        else:
            aggregation.aggregate(self._registry.store)

    async def _namespace(self, name: str) -> None:
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
                self._registry.write_back(resource, stored, manifest, self._options.manager, "status")
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
                    await delete.delete(self._registry, resource, found.namespace, found.name, options, self._options)
                except errors.StatusError as error:
                    if error.code not in (404, 409):
                        raise

    def _ensure(self, bucket: str, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        if self._registry.store.get(bucket, metadata["namespace"], metadata["name"]) is None:
            initialise(metadata, self._registry.clock())
            self._registry.store.put(bucket, manifest, 0)

    async def _definition(self, name: str) -> None:
        stored = self._registry.store.get(definitions.BUCKET, "", name)
        if stored is None or not stored.deleting:
            self._definitions.reconcile(name)
            return
        manifest = stored.manifest()
        plural, group = manifest["spec"]["names"]["plural"], manifest["spec"]["group"]
        resource = self._catalog.stored_as(f"{plural}.{group}")
        for found in self._definitions.instances(manifest):
            if resource is None or found.deleting:
                continue
            try:
                options = DeleteOptions(uid=found.uid)
                await delete.delete(self._registry, resource, found.namespace, found.name, options, self._options)
            except errors.StatusError as error:
                if error.code not in (404, 409):
                    raise
        self._definitions.is_emptied(name)
