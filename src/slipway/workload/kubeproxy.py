"""The kube-proxy add-on: a DaemonSet that makes Services reachable on every node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api import components, rbac
from slipway.api.kubeadm import addresses
from slipway.api.machinery.errors import ConfigurationError
from slipway.workload import arguments, configmaps, images, roles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.kubeadm.internal import ClusterConfiguration, EnvVar, InitConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release

NAME = "kube-proxy"
NAMESPACE = "kube-system"
GROUP = "kubeproxy.config.k8s.io"
_LABEL = {"k8s-app": NAME}
_FOLDER = "/var/lib/kube-proxy"
_CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"


def config_map(config: InitConfiguration, release: Release) -> Manifest:
    """The configuration is the cluster's own, where it has one."""
    component = config.cluster.component_configs.get(GROUP)
    if component is None:
        raise ConfigurationError("no kube-proxy component config found in the active component config set")
    server = addresses.control_plane_url(config)
    # Neither text ends with a newline, as in kubeadm's: the hash is made from them.
    data = {"config.conf": components.marshal(component, release).rstrip("\n"), "kubeconfig.conf": kubeconfig(server)}
    made = configmaps.config_map(NAME, data)
    if not component.user_supplied:
        made = configmaps.signed(made)
    made["metadata"] = {**made["metadata"], "labels": {"app": NAME}}
    return made


def kubeconfig(server: str) -> str:
    """How kube-proxy reaches the API server with the credentials of its service account."""
    return f"""\
apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: {_CREDENTIALS}/ca.crt
    server: {server}
  name: default
contexts:
- context:
    cluster: default
    namespace: default
    user: default
  name: default
current-context: default
users:
- name: default
  user:
    tokenFile: {_CREDENTIALS}/token"""


def daemon_set(cluster: ClusterConfiguration, proxies: Sequence[EnvVar] = ()) -> Manifest:
    """``proxies`` are variables that the containers of the control plane get, too."""
    container = {
        "name": NAME,
        "image": images.kubernetes(cluster, NAME),
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/local/bin/kube-proxy", f"--config={_FOLDER}/config.conf", "--hostname-override=$(NODE_NAME)"],
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"mountPath": _FOLDER, "name": NAME},
            {"mountPath": "/run/xtables.lock", "name": "xtables-lock"},
            {"mountPath": "/lib/modules", "name": "lib-modules", "readOnly": True},
        ],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, *arguments.env(proxies)],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": dict(_LABEL)},
        "spec": {
            "selector": {"matchLabels": dict(_LABEL)},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": dict(_LABEL)},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "containers": [container],
                    "hostNetwork": True,
                    "serviceAccountName": NAME,
                    "volumes": [
                        {"name": NAME, "configMap": {"name": NAME}},
                        {"name": "xtables-lock", "hostPath": {"path": "/run/xtables.lock", "type": "FileOrCreate"}},
                        {"name": "lib-modules", "hostPath": {"path": "/lib/modules"}},
                    ],
                    "tolerations": [{"operator": "Exists"}],
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                },
            },
        },
    }


def access() -> list[Manifest]:
    """The account of kube-proxy and its role; joining nodes may read its configuration too."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE}},
        rbac.binding("kubeadm:node-proxier", "system:node-proxier", [rbac.service_account(NAME, NAMESPACE)]),
        *roles.reading(NAME, NAMESPACE, "configmaps", NAME, roles.group(roles.JOINING_NODES)),
    ]
