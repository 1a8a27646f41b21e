"""One reconcile of one Machine: what was read, what it saw, what went wrong on the way, and when to look again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.kinds import MACHINE
from slipway.api.cluster.meta import decode
from slipway.api.cluster.names import CONTROL_PLANE_INITIALIZED_CONDITION, CONTROL_PLANE_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import conditions
from slipway.fleet.contract import scope as contract
from slipway.fleet.contract.facts import cluster_from
from slipway.fleet.contract.status import Status
from slipway.fleet.machines.machine import words
from slipway.fleet.machines.machine.conditions import ClusterState
from slipway.fleet.machines.machine.status import Observed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from slipway.api.cluster.meta import ContractVersionedObjectReference
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object


class Scope(contract.Scope):
    """Beside what every scope has: the owners, what was observed, and the errors of phases, of which none holds up the next."""

    def __init__(self, client: AsyncClient, cache: Cache, machine: Manifest, cluster: Object, now: datetime) -> None:
        super().__init__(
            client,
            cache,
            MACHINE,
            machine,
            cluster_from(cluster),
            now,
            owned_conditions=words.OWNED,
            owned_deprecated_conditions=words.OWNED_DEPRECATED,
        )
        self.cluster_labels: Mapping[str, str] = cluster.metadata.labels
        self.machine_set: Object | None = None
        self.deployment: Object | None = None
        self.observed = Observed(cluster=_state(cluster))
        self.status = Status(machine, now)
        self.failures: list[Exception] = []
        self._again: list[float] = []

    @property
    def machine(self) -> Machine:
        """The Machine as it is by now."""
        try:
            return decode(self.manifest, Machine)
        except msgspec.ValidationError as error:
            raise OperatorError(f"the Machine {self.namespace}/{self.name} cannot be read: {error}") from None

    @property
    def uid(self) -> str:
        uid: str = self.manifest["metadata"]["uid"]
        return uid

    @property
    def labels(self) -> Mapping[str, str]:
        return self.manifest["metadata"].get("labels") or {}

    @property
    def is_deleting(self) -> bool:
        return bool(self.manifest["metadata"].get("deletionTimestamp"))

    @property
    def is_control_plane(self) -> bool:
        return CONTROL_PLANE_LABEL in self.labels

    @property
    def control_plane_ref(self) -> ContractVersionedObjectReference | None:
        """Of the control plane that the Machine is part of."""
        return self.cluster.control_plane_ref if self.is_control_plane else None

    @property
    def node_name(self) -> str:
        reference = (self.status.fields.get("nodeRef") or {}).get("name")
        return str(reference or "")

    def annotate(self, name: str, value: str) -> None:
        metadata = self.manifest["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), name: value}

    def again(self, seconds: float) -> None:
        """Look again in so many seconds, or earlier."""
        self._again.append(seconds)

    @property
    def requeue_after(self) -> float:
        return min((seconds for seconds in self._again if seconds > 0), default=0.0)


def _state(cluster: Object) -> ClusterState:
    content = cluster.content()
    found = conditions.find(conditions.of(content), CONTROL_PLANE_INITIALIZED_CONDITION)
    provisioned = ((content.get("status") or {}).get("initialization") or {}).get("infrastructureProvisioned") is True
    if found is None:
        return ClusterState(provisioned)
    return ClusterState(provisioned, found.status == conditions.TRUE, found.last_transition_time)
