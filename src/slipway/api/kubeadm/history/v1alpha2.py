"""From v1alpha2 to v1alpha3, as kubeadm 1.12 does it: MasterConfiguration is split, NodeConfiguration renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import v1alpha2 as old_version
from slipway.api.kubeadm import v1alpha3 as new_version
from slipway.api.kubeadm.history.components import Component, embedded
from slipway.api.kubeadm.history.reshape import reshape

if TYPE_CHECKING:
    from slipway.api.kubeadm.history.journal import Journal
    from slipway.api.machinery.objects import Object


def convert(old: Object, journal: Journal) -> list[Object]:
    match old:
        case old_version.MasterConfiguration():
            journal.moved("MasterConfiguration", "InitConfiguration and ClusterConfiguration", "one document became two")
            return [init(old, journal), cluster(old, journal), *components(old, journal)]
        case old_version.NodeConfiguration():
            return [join(old, journal)]
    raise TypeError(f"{type(old)} is not of v1alpha2")


def init(old: old_version.MasterConfiguration, journal: Journal) -> new_version.InitConfiguration:
    """The part that is about this node and this run."""
    new = reshape(old, new_version.InitConfiguration)
    new.api_endpoint = reshape(old.api, new_version.APIEndpoint)
    if new.api_endpoint != new_version.APIEndpoint():
        journal.moved("MasterConfiguration.api", "InitConfiguration.apiEndpoint")
    return new


def cluster(old: old_version.MasterConfiguration, journal: Journal) -> new_version.ClusterConfiguration:
    """The part that is about the whole cluster."""
    new = reshape(old, new_version.ClusterConfiguration)
    if old.api.control_plane_endpoint:
        new.control_plane_endpoint = old.api.control_plane_endpoint
        journal.moved("MasterConfiguration.api.controlPlaneEndpoint", "ClusterConfiguration.controlPlaneEndpoint")
    return new


def components(old: old_version.MasterConfiguration, journal: Journal) -> list[Component]:
    """The configurations of kube-proxy and the kubelet, in kubeadm's order."""
    parts = (
        ("KubeProxyConfiguration", "MasterConfiguration.kubeProxy.config", old.kube_proxy.config),
        ("KubeletConfiguration", "MasterConfiguration.kubeletConfiguration.baseConfig", old.kubelet_configuration.base_config),
    )
    return [embedded(kind, config, path, journal) for kind, path, config in parts if config is not None]


def join(old: old_version.NodeConfiguration, journal: Journal) -> new_version.JoinConfiguration:
    journal.moved("NodeConfiguration", "JoinConfiguration")
    new = reshape(old, new_version.JoinConfiguration)
    new.api_endpoint = reshape(old, new_version.APIEndpoint)
    if new.api_endpoint != new_version.APIEndpoint():
        journal.moved("NodeConfiguration.advertiseAddress, bindPort", "JoinConfiguration.apiEndpoint")
    return new
