"""The ClusterConfiguration that kubeadm keeps in a cluster, in step with what a control plane is to be; nothing is asked or written here.

New nodes join with what it says.  Which fields follow the control plane's spec is Cluster API's choice: those of the components, of etcd,
images, feature gates and certificates; the endpoint, the networks and the name of the cluster are the cluster's own.  Beyond upstream, what
Cluster API's types have no field for stays as it is (``proxy.disabled``, ``dns.disabled``): an upgrade must not turn add-ons on again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.api.machinery.version import Version
from slipway.api.machinery.yaml import goyaml
from slipway.fleet.kubeadm import v1beta3, v1beta4
from slipway.fleet.kubeadm.v1beta4 import is_defined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest

KEY = "ClusterConfiguration"
LOCAL_MODE_GATE = "ControlPlaneKubeletLocalMode"
# The gate was there in these minors; before it was not known, and later it is always on.
_LOCAL_MODE = range(31, 36)
_FIRST_V1BETA4 = Version(1, 31, 0)
_COMPONENTS = ("apiServer", "controllerManager", "scheduler")
_TIMEOUT = "timeoutForControlPlane"


def updated(found: Manifest, spec: Mapping[str, Any], version: str) -> Manifest | None:
    """The ConfigMap with the ClusterConfiguration that a control plane of ``version`` wants; None where it has it already.

    ``spec`` is ``spec.kubeadmConfigSpec.clusterConfiguration``; an empty one leaves everything but the version.
    """
    return _rewritten(found, version, lambda document: _follow(document, spec, version))


def with_dns_image(found: Manifest, dns: Mapping[str, Any], version: str) -> Manifest | None:
    """The ConfigMap with the image of CoreDNS that a control plane wants."""

    def change(document: Manifest) -> None:
        kept = {name: value for name, value in (document.get("dns") or {}).items() if name not in ("imageRepository", "imageTag")}
        document["dns"] = {**kept, **v1beta4.kept(dns, "imageRepository", "imageTag")}

    return _rewritten(found, version, change)


def feature_gates(spec: Mapping[str, Any], version: str) -> dict[str, bool]:
    """Those of the spec, and the one that keeps the kubelet of a control plane at the API server next to it while others are replaced."""
    gates = dict(spec.get("featureGates") or {})
    if _parsed(version).major == 1 and _parsed(version).minor in _LOCAL_MODE:
        gates.setdefault(LOCAL_MODE_GATE, True)
    return gates


def _rewritten(found: Manifest, version: str, change: Any) -> Manifest | None:
    before = _document(found)
    document = _in_api_of(version, before)
    change(document)
    document["kubernetesVersion"] = f"v{_parsed(version)}"
    if _significant(document) == _significant(before):
        return None
    return {**found, "data": {**found["data"], KEY: goyaml.dump(document)}}


def _follow(document: Manifest, spec: Mapping[str, Any], version: str) -> None:
    if not is_defined(spec):
        return
    older = document["apiVersion"] == v1beta3.API_VERSION
    wanted = v1beta3.cluster_configuration(spec, None) if older else v1beta4.cluster_configuration(spec)
    timeout = (document.get("apiServer") or {}).get(_TIMEOUT)
    document |= {name: wanted[name] for name in (*_COMPONENTS, "etcd")}
    if timeout is not None:
        document["apiServer"][_TIMEOUT] = timeout
    # Without one the cluster's own stays: it may have been made with another default.
    if spec.get("imageRepository"):
        document["imageRepository"] = spec["imageRepository"]
    settings = ("featureGates",) if older else ("featureGates", "certificateValidityPeriod", "encryptionAlgorithm")
    for name in settings:
        document.pop(name, None)
    document |= {name: wanted[name] for name in settings if name in wanted}
    if gates := feature_gates(spec, version):
        document["featureGates"] = gates


def _document(found: Manifest) -> Manifest:
    where = "the ConfigMap kube-system/kubeadm-config of the workload cluster"
    text = (found.get("data") or {}).get(KEY)
    if not text:
        raise OperatorError(f'{where} has no key "{KEY}"')
    try:
        documents = goyaml.load(text, where)
    except ConfigurationError as error:
        raise OperatorError(f"{where} cannot be read: {error}") from None
    document = documents[0].value if documents else None
    if not isinstance(document, dict) or document.get("apiVersion") not in (v1beta3.API_VERSION, v1beta4.API_VERSION):
        given = document.get("apiVersion") if isinstance(document, dict) else None
        raise OperatorError(
            f"{where} holds a ClusterConfiguration of {given}, and {v1beta3.API_VERSION} and {v1beta4.API_VERSION} are known"
        )
    return document


def _in_api_of(version: str, document: Manifest) -> Manifest:
    """A copy in the API that kubeadm of a version reads and writes."""
    parsed = _parsed(version)
    wanted = v1beta3.API_VERSION if Version(parsed.major, parsed.minor, parsed.patch) < _FIRST_V1BETA4 else v1beta4.API_VERSION
    copy = {name: dict(value) if isinstance(value, dict) else value for name, value in document.items()}
    if copy["apiVersion"] == wanted:
        return copy
    if wanted == v1beta3.API_VERSION:
        raise OperatorError(f"the kubeadm-config of the workload cluster is {v1beta4.API_VERSION}, which kubeadm {version} does not read")
    copy["apiVersion"] = wanted
    copy.get("apiServer", {}).pop(_TIMEOUT, None)
    for name in _COMPONENTS:
        _list_arguments(copy.get(name))
    if local := (copy.get("etcd") or {}).get("local"):
        copy["etcd"]["local"] = dict(local)
        _list_arguments(copy["etcd"]["local"])
    return copy


def _list_arguments(section: Manifest | None) -> None:
    """A map in v1beta3, a list in v1beta4, which may have a flag twice."""
    if section and isinstance(section.get("extraArgs"), dict):
        section["extraArgs"] = [{"name": name, "value": value} for name, value in sorted(section["extraArgs"].items())]


def _significant(value: Any) -> Any:
    """Without what is empty: Go prints a struct also when nothing is in it, and kubeadm does not tell both apart."""
    if isinstance(value, dict):
        parts = {name: _significant(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part not in (None, "", [], {})}
    return [_significant(part) for part in value] if isinstance(value, list) else value


def _parsed(version: str) -> Version:
    try:
        return Version.tolerant(version)
    except ValueError as error:
        raise OperatorError(f'the version of the control plane cannot be read: "{version}": {error}') from None
