"""kubeadm.k8s.io/v1beta4, for Kubernetes 1.31 and later, from the types of a KubeadmConfig, which are modelled on it."""

from __future__ import annotations

from slipway.api.machinery.duration import Duration
from slipway.fleet.bootstrap.kubeadm import document
from slipway.fleet.bootstrap.kubeadm.document import JSON, Source, duration, filled, kept, part

API_VERSION = "kubeadm.k8s.io/v1beta4"

_TIMEOUTS = ("controlPlaneComponentHealthCheck", "kubeletHealthCheck", "kubernetesAPICall", "etcdAPICall", "tlsBootstrap", "discovery")


def cluster_configuration(source: Source) -> JSON:
    api_server = part(source, "apiServer")
    return {
        "etcd": _etcd(part(source, "etcd")),
        "apiServer": {**_component(api_server), **kept(api_server, "certSANs")},
        "controllerManager": _component(part(source, "controllerManager")),
        "scheduler": _component(part(source, "scheduler")),
        "dns": kept(part(source, "dns"), "imageRepository", "imageTag"),
        "proxy": {},
        **kept(source, "controlPlaneEndpoint", "certificatesDir", "imageRepository", "featureGates", "encryptionAlgorithm"),
        **filled(
            {
                "certificateValidityPeriod": _days(source.get("certificateValidityPeriodDays")),
                "caCertificateValidityPeriod": _days(source.get("caCertificateValidityPeriodDays")),
            }
        ),
    }


def init_configuration(source: Source) -> JSON:
    return {
        **filled({"bootstrapTokens": document.bootstrap_tokens(source)}),
        "nodeRegistration": _node_registration(part(source, "nodeRegistration")),
        "localAPIEndpoint": document.endpoint(part(source, "localAPIEndpoint")),
        **kept(source, "skipPhases"),
        **document.patches(source),
        **_timeouts(source),
    }


def join_configuration(source: Source) -> JSON:
    return {
        "nodeRegistration": _node_registration(part(source, "nodeRegistration")),
        "discovery": document.discovery(part(source, "discovery")),
        **kept(source, "caCertPath", "skipPhases"),
        **document.join_control_plane(source),
        **document.patches(source),
        **_timeouts(source),
    }


def _timeouts(source: Source) -> JSON:
    seconds = part(source, "timeouts")
    if not document.is_defined(seconds):
        return {}
    return {"timeouts": filled({name: duration(seconds.get(f"{name}Seconds")) for name in _TIMEOUTS})}


def _days(days: int | None) -> str | None:
    return str(Duration.of(hours=24 * days)) if days else None


def _component(source: Source) -> JSON:
    return filled(
        {
            "extraArgs": _arguments(source, "extraArgs"),
            "extraVolumes": document.extra_volumes(source),
            "extraEnvs": document.environment(source),
        }
    )


def _arguments(source: Source, name: str) -> list[JSON]:
    return [{"name": argument.get("name", ""), "value": argument.get("value") or ""} for argument in source.get(name) or ()]


def _etcd(source: Source) -> JSON:
    local = part(source, "local")
    return document.etcd(source, filled({"extraArgs": _arguments(local, "extraArgs"), "extraEnvs": document.environment(local)}))


def _node_registration(source: Source) -> JSON:
    serial = source.get("imagePullSerial")
    return {
        "taints": document.taints(source),
        **filled({"kubeletExtraArgs": _arguments(source, "kubeletExtraArgs")}),
        **kept(source, "name", "criSocket", "ignorePreflightErrors", "imagePullPolicy"),
        **({} if serial is None else {"imagePullSerial": serial}),
    }
