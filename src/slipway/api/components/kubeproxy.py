"""What kubeadm wants in a KubeProxyConfiguration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.components.preferences import Preferences

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import APIEndpoint, Networking

GROUP, VERSION, KIND = "kubeproxy.config.k8s.io", "v1alpha1", "KubeProxyConfiguration"

_KUBECONFIG = "/var/lib/kube-proxy/kubeconfig.conf"


def default(value: dict[str, Any], networking: Networking, local_api_endpoint: APIEndpoint) -> list[str]:
    """Complete a configuration in place; the warnings name what a user chose differently."""
    preferences = Preferences(KIND, value)
    preferences.prefer("bindAddress", "0.0.0.0" if _is_ipv4(local_api_endpoint.advertise_address) else "::")
    if networking.pod_subnet:
        preferences.prefer("clusterCIDR", networking.pod_subnet)
    preferences.prefer("clientConnection.kubeconfig", _KUBECONFIG)
    return preferences.warnings


def _is_ipv4(address: str) -> bool:
    from slipway.api.kubeadm.addresses import parse_ip

    parsed = parse_ip(address)
    return parsed is not None and parsed.version == 4
