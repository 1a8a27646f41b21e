"""The bootstrap config and the infrastructure machine of a Machine: made its own, watched, and read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.machine import externals, intake
from slipway.fleet.machines.machine.values import External
from slipway.kube.aio import PatchType

if TYPE_CHECKING:
    from slipway.api.cluster.meta import ContractVersionedObjectReference
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.references import References
    from slipway.fleet.machines.machine.scope import Scope
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

# A watch tells when it comes; this is for kinds that cannot be watched yet.
_MISSING = 30.0


class Providers:
    def __init__(self, client: AsyncClient, cache: Cache, references: References) -> None:
        self._client = client
        self._cache = cache
        self._references = references

    async def bootstrap(self, scope: Scope) -> None:
        reference, observed = scope.machine.spec.bootstrap.config_ref, scope.observed
        if not reference.name:
            return
        try:
            config = await self._own(scope, reference)
        except OperatorError as error:
            observed.config_problem = error.message
            raise
        observed.config = External(config, missing=config is None)
        if config is not None:
            intake.take_bootstrap(scope.status, scope.manifest, config, await self._references.contract(reference))
        elif not scope.is_deleting:
            scope.again(_MISSING)

    async def infrastructure(self, scope: Scope) -> None:
        machine, observed = scope.machine, scope.observed
        reference = machine.spec.infrastructure_ref
        try:
            infrastructure = await self._own(scope, reference)
        except OperatorError as error:
            observed.infrastructure_problem = error.message
            raise
        observed.infrastructure = External(infrastructure, missing=infrastructure is None)
        if infrastructure is not None:
            intake.take_infrastructure(scope.status, scope.manifest, infrastructure, await self._references.contract(reference))
        elif machine.status.initialization.infrastructure_provisioned is True and not scope.is_deleting:
            raise intake.lost_infrastructure(scope.status, scope.manifest)
        elif not scope.is_deleting:
            scope.again(_MISSING)

    async def delete(self, scope: Scope, reference: ContractVersionedObjectReference, external: External) -> None:
        """Ask for the deletion of an object that is there; its provider lets it go when it has done its part."""
        if external.is_there and external.manifest is not None:
            kind = await self._references.kind(reference)
            await self._client.delete(kind, reference.name, scope.namespace, uid=external.manifest["metadata"]["uid"])

    async def _own(self, scope: Scope, reference: ContractVersionedObjectReference) -> Manifest | None:
        """The object, the Machine's alone; None where there is none."""
        # What a deletion takes for gone is gone for good.
        found = await self._references.find(reference, scope.namespace, sure=scope.is_deleting)
        if found is None:
            return None
        patch = externals.ownership(found, scope.manifest, scope.control_plane_ref)
        if not patch:
            return found
        kind = await self._references.kind(reference)
        if self._cache.is_behind(kind, reference.name, scope.namespace):
            # What was written last is on its way, and brings the Machine back.
            return found
        written = await self._client.patch(kind, reference.name, scope.namespace, patch, type=PatchType.MERGE)
        self._cache.wrote(kind, written)
        return written
