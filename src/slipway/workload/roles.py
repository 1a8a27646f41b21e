"""Who may do what in a new cluster: the roles and bindings that joining nodes, kubelets and administrators need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api import rbac

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release

JOINING_NODES = "system:bootstrappers:kubeadm:default-node-token"
NODES = "system:nodes"
CLUSTER_ADMINS = "kubeadm:cluster-admins"


def group(name: str) -> Manifest:
    return {"kind": "Group", "name": name}


def user(name: str) -> Manifest:
    return {"kind": "User", "name": name}


def reading(name: str, namespace: str, resource: str, object_name: str, *subjects: Manifest) -> list[Manifest]:
    """A Role that may get one object, and a RoleBinding of the same name."""
    rule = {"apiGroups": [""], "resources": [resource], "resourceNames": [object_name], "verbs": ["get"]}
    return [rbac.role(name, [rule], namespace=namespace), rbac.binding(name, name, subjects, namespace=namespace)]


def cluster_admins() -> Manifest:
    """Makes the group of admin.conf administrators; super-admin.conf creates it, which nothing else could."""
    return rbac.binding(CLUSTER_ADMINS, "cluster-admin", [group(CLUSTER_ADMINS)])


def api_server_kubelet_client() -> Manifest:
    """Lets API servers use the API of kubelets without being administrators."""
    return rbac.binding("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", [user("kube-apiserver-kubelet-client")])


def for_joining_nodes(release: Release) -> list[tuple[str, list[Manifest]]]:
    """What makes joining possible, each with the words in which it is announced."""
    signing = "system:certificates.k8s.io:certificatesigningrequests"
    rules = [
        (
            "allow Node Bootstrap tokens to get nodes",
            [
                rbac.role("kubeadm:get-nodes", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]),
                rbac.binding("kubeadm:get-nodes", "kubeadm:get-nodes", [group(JOINING_NODES)]),
            ],
        ),
        (
            "allow Node Bootstrap tokens to post CSRs in order for nodes to get long term certificate credentials",
            [rbac.binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", [group(JOINING_NODES)])],
        ),
        (
            "allow the csrapprover controller automatically approve CSRs from a Node Bootstrap Token",
            [rbac.binding("kubeadm:node-autoapprove-bootstrap", f"{signing}:nodeclient", [group(JOINING_NODES)])],
        ),
        (
            "allow certificate rotation for all node client certificates in the cluster",
            [rbac.binding("kubeadm:node-autoapprove-certificate-rotation", f"{signing}:selfnodeclient", [group(NODES)])],
        ),
    ]
    if release.kubelet_client_binding:
        rules.append(
            (
                "allow the API server kubelet client certificate to access the kubelet API",
                [api_server_kubelet_client()],
            )
        )
    return rules
