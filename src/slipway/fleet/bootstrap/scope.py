"""One reconcile of one KubeadmConfig: what was read, what is changed of it, and writing the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import KUBEADM_CONFIG
from slipway.fleet.bootstrap.status import OWNED, OWNED_DEPRECATED, Status
from slipway.fleet.bootstrap.tokens import Holder
from slipway.fleet.contract.patch import Patcher

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts, Owner
    from slipway.kube.aio import AsyncClient


class Scope:
    """``config`` is a copy that the steps change; nothing is written before they say so."""

    def __init__(self, client: AsyncClient, config: Manifest, owner: Owner, cluster: ClusterFacts, now: datetime) -> None:
        self.config = config
        self.owner = owner
        self.cluster = cluster
        self.now = now
        self.status = Status(config, now)
        self._patcher = Patcher(client, KUBEADM_CONFIG, config, owned_conditions=OWNED, owned_deprecated_conditions=OWNED_DEPRECATED)
        # Conditions are replaced, never changed in place, and so is everything else of the status.
        self._status_before = _copy(config.get("status") or {})
        self.resource_version: str = config["metadata"]["resourceVersion"]

    @property
    def spec(self) -> Manifest:
        """Not to be changed in place: an empty one must not come to be."""
        spec: Manifest = self.config.get("spec") or {}
        return spec

    @property
    def holder(self) -> Holder:
        metadata = self.config["metadata"]
        return Holder(metadata["uid"], metadata["namespace"], metadata["name"])

    def section(self, name: str) -> Manifest:
        """A part of the spec, empty where there is none."""
        found: Manifest = self.spec.get(name) or {}
        return found

    def set_section(self, name: str, value: Manifest) -> None:
        self.config["spec"] = {**self.spec, name: value}

    async def save_spec(self) -> None:
        """Write what changed of the spec, without the status: what is made next belongs to the spec that the API server has."""
        written = await self._patcher.patch({**self.config, "status": self._status_before})
        self.config["metadata"], self.config["spec"] = written["metadata"], written.get("spec")
        self._status_before = _copy(written.get("status") or {})
        self.resource_version = written["metadata"]["resourceVersion"]

    async def save(self) -> None:
        """Write everything that changed."""
        written = await self._patcher.patch(self.config)
        self.resource_version = written["metadata"]["resourceVersion"]


def _copy(status: Manifest) -> Manifest:
    return {name: _copy(value) if isinstance(value, dict) else value for name, value in status.items()}
