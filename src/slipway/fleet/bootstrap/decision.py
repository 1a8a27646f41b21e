"""What a reconcile of a KubeadmConfig does next: the order of the bootstrap contract as one function of what was observed."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from slipway.fleet.contract.facts import paused_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts, Owner


class Step(Enum):
    """One thing to do; the value says it in a log line."""

    IGNORE = "the KubeadmConfig is being deleted"
    WAIT_FOR_OWNER = "waiting for a Machine or MachinePool to own the KubeadmConfig"
    WAIT_FOR_CLUSTER = "waiting for the Cluster to be created"
    PAUSED = "reconciliation is paused"
    WAIT_FOR_INFRASTRUCTURE = "waiting for the infrastructure of the Cluster"
    RESTORE_STATUS = "the owner has bootstrap data already: restoring the status"
    KEEP = "the bootstrap data is there"
    REFRESH_TOKEN = "keeping the bootstrap token alive until the node has joined"
    ROTATE_TOKEN = "keeping a fresh bootstrap token for the next nodes of the MachinePool"
    WAIT_FOR_CONTROL_PLANE = "waiting for the control plane of the Cluster to be initialized"
    INIT = "creating the bootstrap data of the first control plane node"
    JOIN_CONTROL_PLANE = "creating the bootstrap data of a joining control plane node"
    JOIN_WORKER = "creating the bootstrap data of a worker"

    @property
    def finished(self) -> bool:
        """Whether the data has been made before, and only needs to be looked after."""
        return self in (Step.KEEP, Step.REFRESH_TOKEN, Step.ROTATE_TOKEN)

    @property
    def is_idle(self) -> bool:
        return self in (Step.IGNORE, Step.WAIT_FOR_OWNER, Step.WAIT_FOR_CLUSTER, Step.PAUSED)

    @property
    def has_data(self) -> bool:
        return self.finished or self is Step.RESTORE_STATUS


def decide(config: Manifest, owner: Owner | None, cluster: ClusterFacts | None, *, data_lost: bool = False) -> Step:
    """The next step.

    ``data_lost`` says that the status names a data Secret that is not there.  Where no host has taken the data, it is made again.
    """
    if owner is None:
        return Step.WAIT_FOR_OWNER
    if cluster is None:
        return Step.WAIT_FOR_CLUSTER
    if paused_by(cluster, config):
        return Step.PAUSED
    if config["metadata"].get("deletionTimestamp"):
        return Step.IGNORE
    if not cluster.infrastructure_provisioned:
        return Step.WAIT_FOR_INFRASTRUCTURE
    created, named = data_secret_status(config)
    if owner.data_secret_name and not (created and named):
        # A move to another management cluster or a restored backup keeps specs and loses the status.
        return Step.RESTORE_STATUS
    if created and not (data_lost and not owner.consumed):
        return _look_after(config, owner)
    if not cluster.control_plane_initialized:
        return Step.INIT if owner.control_plane else Step.WAIT_FOR_CONTROL_PLANE
    return Step.JOIN_CONTROL_PLANE if owner.control_plane else Step.JOIN_WORKER


def data_secret_status(config: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether the data was made, and the name of its Secret, as the status has it."""
    status = config.get("status") or {}
    return (status.get("initialization") or {}).get("dataSecretCreated") is True, status.get("dataSecretName") or ""


def token_discovery(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """spec.joinConfiguration.discovery.bootstrapToken, empty where there is none."""
    join = (config.get("spec") or {}).get("joinConfiguration") or {}
    return (join.get("discovery") or {}).get("bootstrapToken") or {}


def rendered_anew(rendered_for: str, current: str, owner: Owner) -> bool:
    """Whether data that was rendered for one version of the control plane is to be rendered for another one.

    Only what a host may still read; and not where it is not known what the data was rendered for, as with data of another provider.
    """
    return bool(rendered_for and current) and rendered_for != current and not owner.consumed and not owner.control_plane


def _look_after(config: Mapping[str, Any], owner: Owner) -> Step:
    if not token_discovery(config):
        return Step.KEEP
    if not owner.joined:
        return Step.REFRESH_TOKEN
    return Step.ROTATE_TOKEN if owner.is_pool else Step.KEEP
