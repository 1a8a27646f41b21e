"""What kubeadm wants in a KubeletConfiguration."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from slipway.api.components.preferences import Preferences

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import Networking

GROUP, VERSION, KIND = "kubelet.config.k8s.io", "v1beta1", "KubeletConfiguration"

_STATIC_POD_PATH = "/etc/kubernetes/manifests"
_FALLBACK_CLUSTER_DNS = "10.96.0.10"
_HEALTHZ_ADDRESS = "127.0.0.1"
_HEALTHZ_PORT = 10248
_SYSTEMD_RESOLVER = "/run/systemd/resolve/resolv.conf"


def default(value: dict[str, Any], networking: Networking, certificates_dir: str) -> list[str]:
    """Complete a configuration in place; the warnings name what a user chose differently."""
    preferences = Preferences(KIND, value)
    preferences.prefer("staticPodPath", _STATIC_POD_PATH)
    # An empty list is a choice, and gets a warning.
    preferences.prefer("clusterDNS", [cluster_dns(networking.service_subnet)], empty=(None,))
    if networking.dns_domain:
        preferences.prefer("clusterDomain", networking.dns_domain)
    # Clients of the kubelet need a certificate of the cluster's CA, or a token that the API server knows.
    preferences.prefer("authentication.x509.clientCAFile", posixpath.normpath(posixpath.join(certificates_dir, "ca.crt")))
    preferences.prefer("authentication.anonymous.enabled", False)
    preferences.prefer("authorization.mode", "Webhook")
    preferences.prefer("authentication.webhook.enabled", True)
    preferences.prefer("healthzBindAddress", _HEALTHZ_ADDRESS)
    preferences.prefer("healthzPort", _HEALTHZ_PORT)
    if value.get("readOnlyPort"):
        preferences.warn("readOnlyPort", 0, value["readOnlyPort"])
    # The Go field is no pointer, so kubeadm cannot tell an explicit false from none.
    value["rotateCertificates"] = True
    value["cgroupDriver"] = value.get("cgroupDriver") or "systemd"
    return preferences.warnings


def use_systemd_resolver(value: dict[str, Any]) -> list[str]:
    """On a host where systemd-resolved runs, Pods must not be given its stub at 127.0.0.53."""
    preferences = Preferences(KIND, value)
    preferences.prefer("resolvConf", _SYSTEMD_RESOLVER, empty=(None,))
    return preferences.warnings


def cluster_dns(service_subnet: str) -> str:
    """The address of the cluster's name service: the tenth of the first service subnet."""
    from slipway.api.kubeadm.addresses import parse_cidrs

    try:
        return str(parse_cidrs(service_subnet)[0][10])
    except (ValueError, IndexError):
        return _FALLBACK_CLUSTER_DNS
