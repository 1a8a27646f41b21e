"""The configurations of the kubelet and of kube-proxy, as kubeadm reads, completes, signs and writes them.

Their types are not ours: :mod:`slipway.api.machinery.gotypes` knows them from tables.  What is here is kubeadm's part: the
values that it prefers, its warnings where a user chose others, and the checks of versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.components import kubelet, kubeproxy
from slipway.api.kubeadm.internal import APIEndpoint, ClusterConfiguration, ComponentConfig, NodeRegistrationOptions
from slipway.api.machinery import gotypes
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.strict import Problem
    from slipway.api.machinery.yaml.goyaml import Document
    from slipway.api.releases import Release

HASH_ANNOTATION = "kubeadm.kubernetes.io/component-config.hash"
"""On a ConfigMap: the checksum of its data, which says that no user wrote or changed the configuration in it."""

GROUPS = {kubeproxy.GROUP: (kubeproxy.VERSION, kubeproxy.KIND), kubelet.GROUP: (kubelet.VERSION, kubelet.KIND)}
"""The API groups of components, with the version and kind that is read and written; in the order in which they are completed."""


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
    warnings = kubeproxy.default(cluster.component_configs[kubeproxy.GROUP].value, cluster.networking, local_api_endpoint)
    kubelet_value = cluster.component_configs[kubelet.GROUP].value
    warnings += kubelet.default(kubelet_value, cluster.networking, cluster.certificates_dir)
    if systemd_resolved:
        warnings += kubelet.use_systemd_resolver(kubelet_value)
    return warnings


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
