"""The configurations of the kubelet and of kube-proxy, as kubeadm reads, completes, signs and writes them.

Their types are not ours: :mod:`slipway.api.machinery.gotypes` knows them from tables.  What is here is kubeadm's part: the
values that it prefers, its warnings where a user chose others, and the checks of versions.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from slipway.api.kubeadm.addresses import parse_cidrs, parse_ip
from slipway.api.kubeadm.internal import APIEndpoint, ClusterConfiguration, ComponentConfig, NodeRegistrationOptions
from slipway.api.machinery import gotypes
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.internal import Networking
    from slipway.api.machinery.strict import Problem
    from slipway.api.machinery.yaml.goyaml import Document
    from slipway.api.releases import Release

HASH_ANNOTATION = "kubeadm.kubernetes.io/component-config.hash"
"""On a ConfigMap: the checksum of its data, which says that no user wrote or changed the configuration in it."""

KUBELET_GROUP, KUBE_PROXY_GROUP = "kubelet.config.k8s.io", "kubeproxy.config.k8s.io"
GROUPS = {KUBE_PROXY_GROUP: ("v1alpha1", "KubeProxyConfiguration"), KUBELET_GROUP: ("v1beta1", "KubeletConfiguration")}
"""The API groups of components, with the version and kind that is read and written; in the order in which they are completed."""

_PROXY_KUBECONFIG = "/var/lib/kube-proxy/kubeconfig.conf"
_STATIC_POD_PATH = "/etc/kubernetes/manifests"
_FALLBACK_CLUSTER_DNS = "10.96.0.10"
_HEALTHZ_ADDRESS = "127.0.0.1"
_HEALTHZ_PORT = 10248
_SYSTEMD_RESOLVER = "/run/systemd/resolve/resolv.conf"


class UnsupportedVersionError(ConfigurationError):
    """A component's configuration in a version of its group that is not read."""


def load(document: Document, release: Release) -> tuple[ComponentConfig, list[Problem]]:
    """The configuration in a document that a user supplied, and everything in it that is unknown, twice there, or mistyped."""
    from slipway.api.machinery.strict import Problem, field_path

    content = document.value
    group, _, version = str(content.get("apiVersion", "")).partition("/")
    if group not in GROUPS:
        raise ConfigurationError(f'"{group}" is not the API group of a component: it must be one of {", ".join(sorted(GROUPS))}')
    wanted_version, kind = GROUPS[group]
    if version != wanted_version:
        raise UnsupportedVersionError(
            f'unsupported apiVersion "{group}/{version}", you may have to do manual conversion to "{group}/{wanted_version}" '
            "and run kubeadm again"
        )
    if content.get("kind") != kind:
        raise ConfigurationError(f'no kind "{content.get("kind")}" is registered for version "{group}/{version}": it must be {kind}')
    value, findings = gotypes.decode(content, kind, release.minor)
    problems = [Problem(finding.kind, field_path(finding.place), document.line(finding.place), finding.message) for finding in findings]
    problems += [
        Problem("duplicate", field_path(place), line, f'duplicate field "{field_path(place)}": key "{place[-1]}" already set in map')
        for place, line in document.duplicates
    ]
    component = ComponentConfig(group=group, version=version, kind=kind, value=_without_type(value), user_supplied=True)
    return component, sorted(problems, key=lambda problem: problem.line)


def default(
    cluster: ClusterConfiguration,
    local_api_endpoint: APIEndpoint,
    node_registration: NodeRegistrationOptions,
    release: Release,
    *,
    systemd_resolved: bool,
) -> list[str]:
    """Complete the cluster's component configurations with what kubeadm prefers, adding the ones that are missing.

    The warnings that come back name each value that a user chose differently.
    """
    for group, (version, kind) in GROUPS.items():
        cluster.component_configs.setdefault(group, ComponentConfig(group=group, version=version, kind=kind))
    proxy, kubelet = (_Preferences(GROUPS[group][1], cluster.component_configs[group].value) for group in GROUPS)
    _default_kube_proxy(proxy, cluster.networking, local_api_endpoint)
    _default_kubelet(kubelet, cluster.networking, cluster.certificates_dir)
    if systemd_resolved:
        # Pods must not be given systemd-resolved's stub at 127.0.0.53.
        kubelet.prefer("resolvConf", _SYSTEMD_RESOLVER, empty=(None,))
    return [*proxy.warnings, *kubelet.warnings]


def _default_kube_proxy(preferences: _Preferences, networking: Networking, local_api_endpoint: APIEndpoint) -> None:
    preferences.prefer("bindAddress", "0.0.0.0" if _is_ipv4(local_api_endpoint.advertise_address) else "::")
    if networking.pod_subnet:
        preferences.prefer("clusterCIDR", networking.pod_subnet)
    preferences.prefer("clientConnection.kubeconfig", _PROXY_KUBECONFIG)


def _default_kubelet(preferences: _Preferences, networking: Networking, certificates_dir: str) -> None:
    value = preferences.value
    preferences.prefer("staticPodPath", _STATIC_POD_PATH)
    # An empty list is a choice, and gets a warning.
    preferences.prefer("clusterDNS", [_cluster_dns(networking.service_subnet)], empty=(None,))
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


def encode(component: ComponentConfig, release: Release) -> dict[str, Any]:
    """The whole document, with the zero values that the release's Go type prints."""
    typed = {**component.value, "apiVersion": f"{component.group}/{component.version}", "kind": component.kind}
    return gotypes.encode(typed, component.kind, release.minor)


def marshal(component: ComponentConfig, release: Release) -> str:
    """The document as kubeadm writes it."""
    return goyaml.dump(encode(component, release))


def checksum(config_map: Mapping[str, Any]) -> str:
    """The checksum over a ConfigMap's data, in the order of the keys, and then over its binary data."""
    import base64
    import hashlib

    digest = hashlib.sha256()
    for _, text in sorted((config_map.get("data") or {}).items()):
        digest.update(text.encode())
    for _, encoded in sorted((config_map.get("binaryData") or {}).items()):
        digest.update(base64.b64decode(encoded))
    return f"sha256:{digest.hexdigest()}"


def _without_type(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in ("apiVersion", "kind")}


class _Preferences:
    """Completes one configuration: kubeadm's own value where a user set none, a warning where another was set."""

    def __init__(self, kind: str, value: dict[str, Any]) -> None:
        self._kind, self.value = kind, value
        self.warnings: list[str] = []

    def prefer(self, path: str, preferred: Any, *, empty: tuple[Any, ...] = (None, "")) -> None:
        """Set the field at a dotted path where it is empty; warn where it has another value."""
        *parents, name = path.split(".")
        owner = self.value
        for parent in parents:
            owner = owner.setdefault(parent, {})
        current = owner.get(name)
        if any(current is blank or (type(current) is type(blank) and current == blank) for blank in empty):
            owner[name] = preferred
        elif current != preferred:
            self.warn(path, preferred, current)

    def warn(self, path: str, preferred: Any, current: Any) -> None:
        self.warnings.append(
            f'The recommended value for "{path}" in "{self._kind}" is: {_shown(preferred)}; the provided value is: {_shown(current)}'
        )


def _shown(value: Any) -> str:
    """As Go's ``%v`` shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{' '.join(map(_shown, value))}]"
    return str(value)


def _cluster_dns(service_subnet: str) -> str:
    """The address of the cluster's name service: the tenth of the first service subnet."""
    try:
        return str(parse_cidrs(service_subnet)[0][10])
    except (ValueError, IndexError):
        return _FALLBACK_CLUSTER_DNS


def _is_ipv4(address: str) -> bool:
    parsed = parse_ip(address)
    return parsed is not None and parsed.version == 4
