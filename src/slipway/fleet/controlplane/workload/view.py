"""One look into a workload cluster, as values: what conditions and decisions are made from."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
"""The label of a control-plane Node, and the key of the taint that kubeadm gives it."""

API_SERVER, CONTROLLER_MANAGER, SCHEDULER, ETCD = "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"
COMPONENTS = (API_SERVER, CONTROLLER_MANAGER, SCHEDULER, ETCD)

STARTUP_GRACE = timedelta(seconds=20)
"""How long after its Node an etcd member may still be without its name."""


class EtcdMember(NamedTuple):
    """A member as the cluster knows it.  kubeadm gives it the name of its Node; one that has not started yet has none."""

    id: int
    name: str
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()
    learner: bool = False
    alarms: tuple[str, ...] = ()
    healthy: bool | None = None
    """Whether it answered itself; None where only the cluster was asked about it."""
    is_leader: bool = False


class MachineFacts(NamedTuple):
    """What a control-plane Machine tells about what there should be in the workload cluster."""

    name: str
    node_name: str = ""
    """``status.nodeRef.name``; empty while the Machine is being provisioned."""
    provider_id: str = ""
    infrastructure_kind: str = ""
    deleting: bool = False
    wants_taint: bool = True
    """Whether its Node is to have kubeadm's taint; see :func:`expects_taint`."""


class Observed(NamedTuple):
    nodes: Mapping[str, Manifest]
    """Nodes with the control-plane label, and those that were asked for by name, by name."""
    pods: Mapping[tuple[str, str], Manifest]
    """The static Pods, by component and Node."""
    members: tuple[EtcdMember, ...] | None = None
    """None where etcd is external, nobody could be asked, or there was nobody to ask."""
    members_error: str = ""
    """Why there are no members: a sentence for a condition."""
    members_agree: bool = True
    """Whether all members that were asked themselves know the same members."""
    kubeadm_config: Manifest | None = None
    nodes_error: str = ""
    """Why there are no Nodes."""
    pods_unread: frozenset[tuple[str, str]] = frozenset()
    """Pods that the API server would not tell about; those that are neither here nor in ``pods`` do not exist."""

    @property
    def leader(self) -> EtcdMember | None:
        return next((member for member in self.members or () if member.is_leader), None)

    def member(self, name: str) -> EtcdMember | None:
        return next((member for member in self.members or () if member.name == name), None)


def expects_taint(machine_taints: list[Manifest] | None, config_spec: Manifest | None) -> bool:
    """Whether a Node is to have kubeadm's taint: the Machine says so, or its KubeadmConfig does, or that says nothing about taints.

    kubeadm taints a control plane only when it registers the Node; who removes the taint later is told so by a condition.
    """
    if any(map(_is_control_plane_taint, machine_taints or ())):
        return True
    if config_spec is None:
        return False
    join = config_spec.get("joinConfiguration") or {}
    # What tells the configuration of a join for Cluster API.
    joins = join.get("controlPlane") is not None or bool((join.get("nodeRegistration") or {}).get("kubeletExtraArgs"))
    section = join if joins else config_spec.get("initConfiguration") or {}
    taints = (section.get("nodeRegistration") or {}).get("taints")
    return taints is None or any(map(_is_control_plane_taint, taints))


def has_control_plane_taint(node: Manifest) -> bool:
    return any(map(_is_control_plane_taint, (node.get("spec") or {}).get("taints") or ()))


def _is_control_plane_taint(taint: Manifest) -> bool:
    return taint.get("key") == CONTROL_PLANE_LABEL and taint.get("effect") == "NoSchedule"
