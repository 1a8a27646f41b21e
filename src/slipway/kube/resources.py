"""Where each kind lives in the API: its plural name and whether its objects are in a namespace."""

from __future__ import annotations

from typing import NamedTuple

from slipway.api.cluster import kinds


class Resource(NamedTuple):
    plural: str
    namespaced: bool


_RESOURCES = {
    "ClusterRole": Resource("clusterroles", False),
    "ClusterRoleBinding": Resource("clusterrolebindings", False),
    "CertificateSigningRequest": Resource("certificatesigningrequests", False),
    "ConfigMap": Resource("configmaps", True),
    "DaemonSet": Resource("daemonsets", True),
    "Deployment": Resource("deployments", True),
    "EndpointSlice": Resource("endpointslices", True),
    "Endpoints": Resource("endpoints", True),
    "Event": Resource("events", True),
    "Job": Resource("jobs", True),
    "Lease": Resource("leases", True),
    "Namespace": Resource("namespaces", False),
    "Node": Resource("nodes", False),
    "Pod": Resource("pods", True),
    "ReplicaSet": Resource("replicasets", True),
    "Role": Resource("roles", True),
    "RoleBinding": Resource("rolebindings", True),
    "Secret": Resource("secrets", True),
    "Service": Resource("services", True),
    "ServiceAccount": Resource("serviceaccounts", True),
}


def path(api_version: str, kind: str, namespace: str = "", name: str = "") -> str:
    """The path of one object, or without a name of all of a kind, in one namespace or in all of them."""
    resource = _RESOURCES.get(kind)
    if resource is None:
        raise ValueError(f"the client does not know where objects of the kind {kind} are: its table of resources lacks it")
    group, _, version = api_version.rpartition("/")
    return kinds.path(kinds.Kind(group, version, kind, resource.plural, resource.namespaced), namespace, name)
