"""From v1beta3 to v1beta4: flags become lists, timeouts move to one place.

The conversion that ``init`` and ``join`` use goes through the internal form and sets defaults; this one does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from slipway.api.kubeadm import v1beta3 as old_version
from slipway.api.kubeadm import v1beta4 as new_version
from slipway.api.kubeadm.history.reshape import reshape

if TYPE_CHECKING:
    from slipway.api.kubeadm.history.journal import Journal
    from slipway.api.machinery.objects import Object

T = TypeVar("T", bound=new_version.ControlPlaneComponent | new_version.LocalEtcd)


def convert(old: Object, journal: Journal) -> list[Object]:
    match old:
        case old_version.InitConfiguration():
            return [init(old, journal)]
        case old_version.ClusterConfiguration():
            timeouts = _control_plane_timeout(old, journal)
            moved = [] if timeouts is None else [new_version.InitConfiguration(timeouts=timeouts)]
            return [*moved, cluster(old, journal)]
        case old_version.JoinConfiguration():
            return [join(old, journal)]
    raise TypeError(f"{type(old)} is not of v1beta3")


def init(old: old_version.InitConfiguration, journal: Journal) -> new_version.InitConfiguration:
    new = reshape(old, new_version.InitConfiguration, leave_out=("node_registration",))
    new.node_registration = _node_registration(old.node_registration)
    return new


def cluster(old: old_version.ClusterConfiguration, journal: Journal) -> new_version.ClusterConfiguration:
    """All but apiServer.timeoutForControlPlane, which belongs to another document now."""
    new = reshape(old, new_version.ClusterConfiguration, leave_out=("etcd", "api_server", "controller_manager", "scheduler"))
    new.api_server = _with_args(old.api_server, new_version.APIServer)
    new.controller_manager = _with_args(old.controller_manager, new_version.ControlPlaneComponent)
    new.scheduler = _with_args(old.scheduler, new_version.ControlPlaneComponent)
    new.etcd = reshape(old.etcd, new_version.Etcd, leave_out=("local",))
    if old.etcd.local is not None:
        new.etcd.local = _with_args(old.etcd.local, new_version.LocalEtcd)
    return new


def join(old: old_version.JoinConfiguration, journal: Journal) -> new_version.JoinConfiguration:
    new = reshape(old, new_version.JoinConfiguration, leave_out=("node_registration",))
    new.node_registration = _node_registration(old.node_registration)
    if old.discovery.timeout is not None:
        new.timeouts = new_version.Timeouts(discovery=old.discovery.timeout)
        journal.moved("JoinConfiguration.discovery.timeout", "JoinConfiguration.timeouts.discovery")
    return new


def _control_plane_timeout(old: old_version.ClusterConfiguration, journal: Journal) -> new_version.Timeouts | None:
    timeout = old.api_server.timeout_for_control_plane
    if not timeout:
        # kubeadm takes 0s as unset.
        return None
    journal.moved("ClusterConfiguration.apiServer.timeoutForControlPlane", "InitConfiguration.timeouts.controlPlaneComponentHealthCheck")
    return new_version.Timeouts(control_plane_component_health_check=timeout)


def _node_registration(old: old_version.NodeRegistrationOptions) -> new_version.NodeRegistrationOptions:
    new = reshape(old, new_version.NodeRegistrationOptions, leave_out=("kubelet_extra_args",))
    new.kubelet_extra_args = _args(old.kubelet_extra_args)
    return new


def _with_args(old: old_version.ControlPlaneComponent | old_version.LocalEtcd, kind: type[T]) -> T:
    new = reshape(old, kind, leave_out=("extra_args",))
    new.extra_args = _args(old.extra_args)
    return new


def _args(flags: dict[str, str]) -> list[new_version.Arg]:
    return [new_version.Arg(name=name, value=value) for name, value in sorted(flags.items())]
