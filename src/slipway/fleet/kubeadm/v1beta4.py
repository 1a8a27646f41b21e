"""kubeadm.k8s.io/v1beta4, for Kubernetes 1.31 and later, from the types of a KubeadmConfig, which are modelled on it.

What comes in is the JSON form of Cluster API's v1beta2 types, what goes out that of kubeadm's: Go prints a struct even when it is
empty, and a field without ``omitempty`` always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.goscalars import BadValueError, Time
from slipway.api.machinery.quantity import QuantityError, canonical

JSON = dict[str, Any]
Source = Mapping[str, Any]

API_VERSION = "kubeadm.k8s.io/v1beta4"

_TIMEOUTS = ("controlPlaneComponentHealthCheck", "kubeletHealthCheck", "kubernetesAPICall", "etcdAPICall", "tlsBootstrap", "discovery")

_TIME = Time("Time")


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
        **filled({"bootstrapTokens": bootstrap_tokens(source)}),
        "nodeRegistration": _node_registration(part(source, "nodeRegistration")),
        "localAPIEndpoint": endpoint(part(source, "localAPIEndpoint")),
        **kept(source, "skipPhases"),
        **patches(source),
        **_timeouts(source),
    }


def join_configuration(source: Source) -> JSON:
    return {
        "nodeRegistration": _node_registration(part(source, "nodeRegistration")),
        "discovery": discovery(part(source, "discovery")),
        **kept(source, "caCertPath", "skipPhases"),
        **join_control_plane(source),
        **patches(source),
        **_timeouts(source),
    }


def _timeouts(source: Source) -> JSON:
    seconds = part(source, "timeouts")
    if not is_defined(seconds):
        return {}
    return {"timeouts": filled({name: duration(seconds.get(f"{name}Seconds")) for name in _TIMEOUTS})}


def _days(days: int | None) -> str | None:
    return str(Duration.of(hours=24 * days)) if days else None


def _component(source: Source) -> JSON:
    return filled(
        {
            "extraArgs": _arguments(source, "extraArgs"),
            "extraVolumes": extra_volumes(source),
            "extraEnvs": environment(source),
        }
    )


def _arguments(source: Source, name: str) -> list[JSON]:
    return [{"name": argument.get("name", ""), "value": argument.get("value") or ""} for argument in source.get(name) or ()]


def _etcd(source: Source) -> JSON:
    local = part(source, "local")
    return etcd(source, filled({"extraArgs": _arguments(local, "extraArgs"), "extraEnvs": environment(local)}))


def _node_registration(source: Source) -> JSON:
    serial = source.get("imagePullSerial")
    return {
        "taints": taints(source),
        **filled({"kubeletExtraArgs": _arguments(source, "kubeletExtraArgs")}),
        **kept(source, "name", "criSocket", "ignorePreflightErrors", "imagePullPolicy"),
        **({} if serial is None else {"imagePullSerial": serial}),
    }


# What v1beta3 has as well.


def kept(source: Source, *names: str) -> JSON:
    """The fields that ``omitempty`` keeps."""
    return filled({name: source.get(name) for name in names})


def filled(fields: Source) -> JSON:
    """The fields that are neither absent nor empty."""
    return {name: value for name, value in fields.items() if value}


def part(source: Source, name: str) -> Source:
    """A struct within a struct; absent is the same as empty."""
    value: Source = source.get(name) or {}
    return value


def is_defined(value: object) -> bool:
    """Whether Go would tell the value from that of an untouched struct: a list or a pointer counts even when it holds nothing."""
    if isinstance(value, Mapping):
        return any(map(is_defined, value.values()))
    return value is not None and value != ""


def duration(seconds: int | None) -> str | None:
    return None if seconds is None else str(Duration.of(seconds=seconds))


def endpoint(source: Source) -> JSON:
    return kept(source, "advertiseAddress", "bindPort")


def extra_volumes(component: Source) -> list[JSON]:
    return [
        {**{name: volume.get(name, "") for name in ("name", "hostPath", "mountPath")}, **kept(volume, "readOnly", "pathType")}
        for volume in component.get("extraVolumes") or ()
    ]


def etcd(source: Source, settings: JSON) -> JSON:
    """``settings`` are the arguments and variables of a local etcd, which the versions write each in their own way."""
    local, external = part(source, "local"), part(source, "external")
    found: JSON = {}
    if is_defined(local):
        names = ("imageRepository", "imageTag", "serverCertSANs", "peerCertSANs")
        found["local"] = {"dataDir": local.get("dataDir", ""), **settings, **kept(local, *names)}
    if is_defined(external):
        files = {name: external.get(name, "") for name in ("caFile", "certFile", "keyFile")}
        found["external"] = {"endpoints": external.get("endpoints"), **files}
    return found


def taints(registration: Source) -> list[JSON] | None:
    """None and an empty list are different: kubeadm taints a control plane only where nothing is said."""
    listed = registration.get("taints")
    if listed is None:
        return None
    return [
        {
            "key": taint.get("key", ""),
            "effect": taint.get("effect", ""),
            **kept(taint, "value"),
            **filled({"timeAdded": time(taint.get("timeAdded"))}),
        }
        for taint in listed
    ]


def bootstrap_tokens(source: Source) -> list[JSON]:
    return [
        {
            "token": token.get("token"),
            **kept(token, "description", "usages", "groups"),
            **filled({"ttl": duration(token.get("ttlSeconds")), "expires": time(token.get("expires"))}),
        }
        for token in source.get("bootstrapTokens") or ()
    ]


def discovery(source: Source) -> JSON:
    token, file = part(source, "bootstrapToken"), part(source, "file")
    found = kept(source, "tlsBootstrapToken")
    if is_defined(token):
        found["bootstrapToken"] = {
            "token": token.get("token", ""),
            **kept(token, "apiServerEndpoint", "caCertHashes", "unsafeSkipCAVerification"),
        }
    if is_defined(file):
        # The kubeconfig itself is Cluster API's affair: it becomes a file on the host.
        found["file"] = {"kubeConfigPath": file.get("kubeConfigPath", "")}
    return found


def join_control_plane(source: Source) -> JSON:
    """The section that makes a join one of a control plane: there, even if empty, or not."""
    section = source.get("controlPlane")
    return {} if section is None else {"controlPlane": {"localAPIEndpoint": endpoint(part(section, "localAPIEndpoint"))}}


def patches(source: Source) -> JSON:
    directory = part(source, "patches").get("directory")
    return {"patches": {"directory": directory}} if directory else {}


def environment(component: Source) -> list[JSON]:
    return [
        {"name": variable.get("name", ""), **kept(variable, "value"), **_value_from(variable.get("valueFrom"))}
        for variable in component.get("extraEnvs") or ()
    ]


def _value_from(source: Source | None) -> JSON:
    if source is None:
        return {}
    found: JSON = {}
    for name, always in (
        ("fieldRef", ("fieldPath",)),
        ("configMapKeyRef", ("key",)),
        ("secretKeyRef", ("key",)),
        ("fileKeyRef", ("volumeName", "path", "key")),
    ):
        if source.get(name) is not None:
            selector = {key: value for key, value in source[name].items() if is_defined(value)}
            found[name] = {**dict.fromkeys(always, ""), **selector}
    resource = source.get("resourceFieldRef")
    if resource is not None:
        found["resourceFieldRef"] = {
            "resource": resource.get("resource", ""),
            "divisor": _quantity(resource.get("divisor")),
            **kept(resource, "containerName"),
        }
    return {"valueFrom": found}


def _quantity(value: str | int | None) -> str:
    try:
        return "0" if value is None else canonical(str(value))
    except QuantityError as error:
        raise ConfigurationError(f"extraEnvs: the divisor {value!r} of a resourceFieldRef is no quantity: {error}") from None


def time(value: str | None) -> str | None:
    """A time as Go prints it, in UTC; the zero time is none."""
    try:
        return None if value is None else _TIME.encode(_TIME.read(value))
    except BadValueError as error:
        raise ConfigurationError(str(error)) from None
