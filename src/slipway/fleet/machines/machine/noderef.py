"""The Node of a Machine: found by its provider's ID, told in the status, and given what the Machine gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.kinds import NODE
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.status import DeprecatedCondition
from slipway.fleet.liveclusters import PROVIDER_ID, DisconnectedError
from slipway.fleet.machines.machine import conditions, deprecated, externals, node
from slipway.fleet.machines.machine.values import Found, moment
from slipway.kube.aio import PatchType

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.machines.machine.scope import Scope
    from slipway.fleet.machines.options import MachinesOptions
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.objects import Object

_HEALTHY = names.NODE_HEALTHY_CONDITION


class Nodes:
    def __init__(self, workload: WorkloadClusters, events: EventRecorder, options: MachinesOptions) -> None:
        self._workload = workload
        self._events = events
        self._options = options

    async def reconcile(self, scope: Scope) -> None:
        if scope.cluster.infrastructure_provisioned:
            scope.observed.probe = self._workload.probe(scope.namespace, scope.cluster.name)
            self._watch_grace(scope)
        provider_id = scope.machine.spec.provider_id
        if not provider_id:
            scope.status.set_deprecated(deprecated.not_well(_HEALTHY, "WaitingForNodeRef"))
            return
        try:
            found = await self.find(scope, provider_id)
        except DisconnectedError as error:
            # The next probe that says something else brings the Machine back.
            scope.observed.found = Found(problem=error.message, disconnected=True)
            return
        except OperatorError as error:
            scope.observed.found = Found(problem=error.message)
            self._events.event(scope.manifest, "Warning", "FailedToGetNode", error.message)
            text = "Failed to get the Node for this Machine by ProviderID"
            scope.status.set_deprecated(DeprecatedCondition(type=_HEALTHY, status="Unknown", reason="NodeInspectionFailed", message=text))
            raise
        if found is None:
            self._missing(scope)
            return
        scope.observed.found = Found(found)
        await self._take(scope, found)

    async def find(self, scope: Scope, provider_id: str) -> Manifest | None:
        """The Node with a provider's ID; None where there is none yet."""
        if not scope.cluster.infrastructure_provisioned:
            raise DisconnectedError("the infrastructure of the Cluster is not provisioned")
        cache = await self._workload.nodes(scope.namespace, scope.cluster.name)
        found = await cache.list(NODE, index=(PROVIDER_ID, provider_id))
        if len(found) > 1:
            listed = ", ".join(sorted(each.name for each in found))
            raise OperatorError(f"more than one Node has the providerID {provider_id}: {listed}")
        return found[0].content() if found else None

    async def get(self, scope: Scope, client: AsyncClient, name: str) -> Manifest | None:
        """A Node by its name, from the cache where there is one; None where there is no such Node."""
        try:
            cache = await self._workload.nodes(scope.namespace, scope.cluster.name)
        except DisconnectedError:
            return await client.find(NODE, name)
        found = await cache.get(NODE, name)
        return None if found is None else found.content()

    def _missing(self, scope: Scope) -> None:
        if scope.is_deleting:
            return
        if scope.node_name:
            scope.status.set_deprecated(deprecated.not_well(_HEALTHY, "NodeNotFound", "Error"))
            return
        text = "Waiting for a node with matching ProviderID to exist"
        scope.status.set_deprecated(deprecated.not_well(_HEALTHY, "NodeProvisioning", "Warning", text))

    async def _take(self, scope: Scope, found: Manifest) -> None:
        name, status = found["metadata"]["name"], scope.status
        if not scope.node_name:
            status.fields["nodeRef"] = {"name": name}
            self._events.event(scope.manifest, "Normal", "SuccessfulSetNodeRef", name)
        status.fields["nodeInfo"] = (found.get("status") or {}).get("nodeInfo")
        infrastructure = scope.observed.infrastructure
        interruptible = infrastructure.manifest is not None and externals.is_interruptible(infrastructure.manifest)
        given = node.given(
            scope.machine,
            interruptible=interruptible,
            revisions=revisions(scope.machine_set, scope.deployment),
            more=self._options,
        )
        patch = node.patch(found, given)
        if patch:
            async with self._workload.client(scope.namespace, scope.cluster.name) as client:
                scope.observed.found = Found(await client.patch(NODE, name, "", patch, type=PatchType.MERGE))
            if interruptible and names.INTERRUPTIBLE_LABEL not in (found["metadata"].get("labels") or {}):
                self._events.event(scope.manifest, "Normal", "SuccessfulSetInterruptibleNodeLabel", name)
        if not infrastructure.is_there:
            status.set_deprecated(deprecated.not_well(_HEALTHY, "Deleting"))
        else:
            status.set_deprecated(deprecated.node_healthy(found))

    def _watch_grace(self, scope: Scope) -> None:
        """What was last known is told for a while only; nobody else tells when that is over."""
        probe = scope.observed.probe
        if not probe.failed_in_a_row and probe.connected:
            return
        since = max(filter(None, (probe.succeeded_at, moment(scope.observed.cluster.initialized_at))), default=None)
        if since is not None:
            scope.again(conditions.GRACE - (scope.now - since).total_seconds() + 1.0)


def revisions(machine_set: Object | None, deployment: Object | None) -> tuple[str, str] | None:
    if machine_set is None or deployment is None:
        return None
    return tuple(each.metadata.annotations.get(names.REVISION_ANNOTATION, "") for each in (machine_set, deployment))  # type: ignore[return-value]
