"""kubeadm's configuration for a Kubernetes version, as YAML, byte by byte as Cluster API v1.14 writes it.

Sources are the sections of a KubeadmConfig's spec in their JSON form.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.version import Version
from slipway.api.machinery.yaml.goyaml import dump
from slipway.fleet.bootstrap.kubeadm import v1beta3, v1beta4
from slipway.fleet.bootstrap.kubeadm.parts import JSON, Source, filled

_FIRST_V1BETA3, _FIRST_V1BETA4 = Version(1, 22), Version(1, 31)
_ZEROS = re.compile(r"0+(?=[0-9])")


class AdditionalData(NamedTuple):
    """What stands in kubeadm's ClusterConfiguration but not in a KubeadmConfig's: it comes from the Cluster and the Machine."""

    kubernetes_version: str = ""
    cluster_name: str = ""
    dns_domain: str = ""
    service_subnet: str = ""
    pod_subnet: str = ""
    control_plane_component_health_check_seconds: int | None = None


def cluster_configuration(source: Source, version: str, additional: AdditionalData) -> str:
    if _is_v1beta3(version):
        document = v1beta3.cluster_configuration(source, additional.control_plane_component_health_check_seconds)
    else:
        document = v1beta4.cluster_configuration(source)
    document["networking"] = filled(
        {
            "dnsDomain": additional.dns_domain,
            "serviceSubnet": additional.service_subnet,
            "podSubnet": additional.pod_subnet,
        }
    )
    document |= filled({"kubernetesVersion": additional.kubernetes_version, "clusterName": additional.cluster_name})
    return _written(document, "ClusterConfiguration", version)


def init_configuration(source: Source, version: str) -> str:
    convert = v1beta3.init_configuration if _is_v1beta3(version) else v1beta4.init_configuration
    return _written(convert(source), "InitConfiguration", version)


def join_configuration(source: Source, version: str) -> str:
    convert = v1beta3.join_configuration if _is_v1beta3(version) else v1beta4.join_configuration
    return _written(convert(source), "JoinConfiguration", version)


def _written(document: JSON, kind: str, version: str) -> str:
    api_version = v1beta3.API_VERSION if _is_v1beta3(version) else v1beta4.API_VERSION
    return dump({"apiVersion": api_version, "kind": kind, **document})


def _is_v1beta3(text: str) -> bool:
    """Which of the two APIs kubeadm of that version is given; a pre-release counts as its release."""
    version = parse_version(text)
    release = Version(version.major, version.minor, version.patch)
    if release < _FIRST_V1BETA3:
        raise ConfigurationError("the bootstrap provider for kubeadm doesn't support Kubernetes version lower than v1.22.0")
    return release < _FIRST_V1BETA4


def parse_version(text: str) -> Version:
    """A Kubernetes version, read as tolerantly as Cluster API reads it: ``v1.35`` is v1.35.0 and ``1.035.4`` is v1.35.4."""
    numbers = [_ZEROS.sub("", number, count=1) for number in text.strip().removeprefix("v").split(".", 2)]
    if len(numbers) < 3 and not re.search(r"[-+]", numbers[-1]):
        numbers += ["0"] * (3 - len(numbers))
    try:
        return Version.parse(".".join(numbers))
    except ValueError:
        raise ConfigurationError(f'failed to parse kubernetes version "{text}": a version such as v1.35.4 is wanted') from None
