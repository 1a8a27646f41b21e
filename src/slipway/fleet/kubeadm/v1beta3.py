"""kubeadm.k8s.io/v1beta3, for Kubernetes 1.22 to 1.30, from the types of a KubeadmConfig.

Arguments are a map here: of two values for one flag the last counts.  What v1beta3 has no place for is dropped: extraEnvs,
imagePullSerial, certificate validity, the encryption algorithm, and every timeout but two, which stand elsewhere.
"""

from __future__ import annotations

from slipway.fleet.kubeadm import v1beta4
from slipway.fleet.kubeadm.v1beta4 import JSON, Source, duration, filled, kept, part

API_VERSION = "kubeadm.k8s.io/v1beta3"


def cluster_configuration(source: Source, control_plane_timeout: int | None) -> JSON:
    """``control_plane_timeout``, in seconds, stands in an InitConfiguration's or JoinConfiguration's timeouts today."""
    api_server = part(source, "apiServer")
    return {
        "etcd": _etcd(part(source, "etcd")),
        "apiServer": {
            **_component(api_server),
            **kept(api_server, "certSANs"),
            **filled({"timeoutForControlPlane": duration(control_plane_timeout)}),
        },
        "controllerManager": _component(part(source, "controllerManager")),
        "scheduler": _component(part(source, "scheduler")),
        "dns": kept(part(source, "dns"), "imageRepository", "imageTag"),
        **kept(source, "controlPlaneEndpoint", "certificatesDir", "imageRepository", "featureGates"),
    }


def init_configuration(source: Source) -> JSON:
    return {
        **filled({"bootstrapTokens": v1beta4.bootstrap_tokens(source)}),
        "nodeRegistration": _node_registration(part(source, "nodeRegistration")),
        "localAPIEndpoint": v1beta4.endpoint(part(source, "localAPIEndpoint")),
        **kept(source, "skipPhases"),
        **v1beta4.patches(source),
    }


def join_configuration(source: Source) -> JSON:
    timeout = duration(part(source, "timeouts").get("tlsBootstrapSeconds"))
    return {
        "nodeRegistration": _node_registration(part(source, "nodeRegistration")),
        "discovery": {**v1beta4.discovery(part(source, "discovery")), **filled({"timeout": timeout})},
        **kept(source, "caCertPath", "skipPhases"),
        **v1beta4.join_control_plane(source),
        **v1beta4.patches(source),
    }


def _component(source: Source) -> JSON:
    return filled({"extraArgs": _arguments(source, "extraArgs"), "extraVolumes": v1beta4.extra_volumes(source)})


def _arguments(source: Source, name: str) -> dict[str, str]:
    return {argument.get("name", ""): argument.get("value") or "" for argument in source.get(name) or ()}


def _etcd(source: Source) -> JSON:
    local = part(source, "local")
    return v1beta4.etcd(source, filled({"extraArgs": _arguments(local, "extraArgs")}))


def _node_registration(source: Source) -> JSON:
    return {
        "taints": v1beta4.taints(source),
        **filled({"kubeletExtraArgs": _arguments(source, "kubeletExtraArgs")}),
        **kept(source, "name", "criSocket", "ignorePreflightErrors", "imagePullPolicy"),
    }
