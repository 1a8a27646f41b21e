"""Configuration of the kubelet and kube-proxy: documents of their own since v1alpha3, parts of MasterConfiguration before.

They are plain mappings, since they belong to other programs.  What those programs no longer know is dropped or renamed
here, because kubeadm refuses a file with an unknown field; everything else is the user's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.machinery.objects import Object

if TYPE_CHECKING:
    from slipway.api.kubeadm.history.journal import Journal

KUBELET_GROUP = "kubelet.config.k8s.io"
KUBE_PROXY_GROUP = "kubeproxy.config.k8s.io"

API_VERSIONS = {
    "KubeletConfiguration": f"{KUBELET_GROUP}/v1beta1",
    "KubeProxyConfiguration": f"{KUBE_PROXY_GROUP}/v1alpha1",
}

# The groups under which Kubernetes 1.8 and 1.9 had these kinds, before they had versions that anybody promised to keep.
_OLD_API_VERSIONS = {
    "KubeletConfiguration": ("kubeletconfig/v1alpha1", "componentconfig/v1alpha1"),
    "KubeProxyConfiguration": ("componentconfig/v1alpha1",),
}

# Fields that were in the types of some release from 1.9 on and are in none from 1.33 to 1.36.
_RENAMED = {
    "KubeletConfiguration": {
        "manifestURL": "staticPodURL",
        "manifestURLHeader": "staticPodURLHeader",
        "podManifestPath": "staticPodPath",
    },
    "KubeProxyConfiguration": {},
}
_RETIRED: dict[str, tuple[tuple[str, ...], ...]] = {
    "KubeletConfiguration": (
        ("allowPrivileged",),
        ("cAdvisorPort",),
        ("configTrialDuration",),
        ("hostIPCSources",),
        ("hostNetworkSources",),
        ("hostPIDSources",),
        ("logging", "sanitization"),
    ),
    "KubeProxyConfiguration": (
        ("conntrack", "max"),
        ("resourceContainer",),
        ("udpIdleTimeout",),
        ("udpTimeoutMilliseconds",),
    ),
}


class Component(Object):
    """A document of another program; ``value`` has its apiVersion and kind in it."""

    kind: str = ""
    value: dict[str, Any] = {}  # noqa: RUF012 (msgspec copies it)


def is_component(api_version: str, kind: str) -> bool:
    """Whether a document is a configuration of the kubelet or kube-proxy, also by the names of long ago."""
    return kind in API_VERSIONS and (api_version == API_VERSIONS[kind] or api_version in _OLD_API_VERSIONS[kind])


def embedded(kind: str, config: dict[str, Any], path: str, journal: Journal) -> Component:
    """The document of its own for a configuration that stood inside a MasterConfiguration at ``path``."""
    journal.moved(path, f"a {kind} document of its own")
    return Component(kind=kind, value=config | {"apiVersion": config.get("apiVersion") or API_VERSIONS[kind], "kind": kind})


def feature_gates_from_text(text: str) -> dict[str, bool]:
    """kube-proxy 1.9 had its gates as ``A=true,B=false``; ValueError names the part that is not of this form."""
    gates: dict[str, bool] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if value not in _GO_BOOLEANS:
            raise ValueError(f'"{part}" is not of the form Name=true or Name=false')
        gates[name] = _GO_BOOLEANS[value]
    return gates


# What Go's strconv.ParseBool reads.
_GO_BOOLEANS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True)
_GO_BOOLEANS |= dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False)


def repair(component: Component, journal: Journal) -> None:
    """Bring a kubelet or kube-proxy configuration of any age to what kubeadm 1.33 to 1.36 can read."""
    kind, value = component.kind, component.value
    if value.get("apiVersion") != API_VERSIONS[kind]:
        journal.repaired(f"{kind}.apiVersion", f"{value.get('apiVersion')} is from Kubernetes 1.9; {API_VERSIONS[kind]} took its place")
        value["apiVersion"] = API_VERSIONS[kind]
    _repair_feature_gates(component, journal)
    for old, new in _RENAMED[kind].items():
        if old in value:
            journal.moved(f"{kind}.{old}", f"{kind}.{new}")
            value.setdefault(new, value.pop(old))
    for path in _RETIRED[kind]:
        parent: Any = value
        for name in path[:-1]:
            parent = parent.get(name) if isinstance(parent, dict) else None
        if isinstance(parent, dict) and path[-1] in parent:
            del parent[path[-1]]
            journal.dropped(f"{kind}.{'.'.join(path)}", "Kubernetes 1.33 to 1.36 have no such field and kubeadm would refuse the file")


def _repair_feature_gates(component: Component, journal: Journal) -> None:
    gates = component.value.get("featureGates")
    if component.kind != "KubeProxyConfiguration" or not isinstance(gates, str):
        return
    try:
        component.value["featureGates"] = feature_gates_from_text(gates)
    except ValueError as error:
        journal.refused("KubeProxyConfiguration.featureGates", f"cannot be converted: {error}")
        return
    journal.repaired("KubeProxyConfiguration.featureGates", "a text in Kubernetes 1.9, now a map of names to true or false")
