"""Keeps what may change in place on the machines of a control plane: labels, annotations, gates, time-outs, taints.

Fields are owned by Cluster API's field managers, so that a label which goes from the template goes from the objects, whoever applied it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.kinds import KUBEADM_CONFIG, MACHINE
from slipway.api.cluster.meta import manifest as plain
from slipway.fleet.contract.apply import Applier
from slipway.fleet.contract.ownership import give_up_updates
from slipway.fleet.contract.scope import Patcher
from slipway.fleet.controlplane import desired

if TYPE_CHECKING:
    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.references import References
    from slipway.fleet.controlplane.work import Owned, Work
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

_DELETION_TIMEOUTS = ("nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds")
# What the webhook of Machines sets where nothing is said.
_DELETION_DEFAULT = 10


class Syncer:
    """Applies to the objects of Machines; it remembers what it has applied."""

    def __init__(self, client: AsyncClient, cache: Cache, references: References) -> None:
        self._client = client
        self._cache = cache
        self._references = references
        self.applier = Applier(client, cache, names.KUBEADM_CONTROL_PLANE_FIELD_MANAGER)
        self._metadata = Applier(client, cache, names.KUBEADM_CONTROL_PLANE_METADATA_FIELD_MANAGER)

    async def sync(self, work: Work) -> None:
        for owned in work.machines.values():
            if owned.deleting:
                await self._keep_deletion(work, owned)
                continue
            wanted = desired.machine(work.plane, work.cluster.name, existing=owned.machine)
            owned.manifest = await self.applier.apply(MACHINE, wanted, current=owned.manifest)
            if owned.infrastructure is not None:
                kind = await self._references.kind(owned.machine.spec.infrastructure_ref)
                await self._keep_metadata(work, kind, owned.infrastructure)
            if owned.config is not None:
                await self._keep_metadata(work, KUBEADM_CONFIG, {"metadata": owned.config.metadata})

    async def _keep_metadata(self, work: Work, kind: Kind, found: Manifest) -> None:
        metadata = found["metadata"]
        wanted: Manifest = {
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "labels": desired.labels_of(work.plane, work.cluster.name),
                "annotations": desired.annotations_of(work.plane),
            }
        }
        if metadata.get("deletionTimestamp"):
            return
        applied = await self._metadata.apply(kind, wanted, current=found)
        await give_up_updates(self._client, kind, applied, names.KUBEADM_CONTROL_PLANE_FIELD_MANAGER)

    async def _keep_deletion(self, work: Work, owned: Owned) -> None:
        """Of a Machine that goes, only how it goes; an apply would give it back what others have taken away."""
        template = work.plane.spec.machine_template.spec
        deletion = plain(template.deletion)
        deletion.setdefault("nodeDeletionTimeoutSeconds", _DELETION_DEFAULT)
        after = deepcopy(owned.manifest)
        kept = {name: value for name, value in (after["spec"].get("deletion") or {}).items() if name not in _DELETION_TIMEOUTS}
        after["spec"]["deletion"] = {**kept, **deletion}
        taints = [plain(taint) for taint in template.taints]
        if taints or after["spec"].get("taints"):
            after["spec"]["taints"] = taints or None
        written = await Patcher(self._client, MACHINE, owned.manifest, owned_conditions=()).patch(after)
        if written["metadata"]["resourceVersion"] != owned.manifest["metadata"]["resourceVersion"]:
            self._cache.wrote(MACHINE, written)
            owned.manifest = written
