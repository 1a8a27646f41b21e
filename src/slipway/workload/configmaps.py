"""The configuration as it is kept in the cluster: the ConfigMaps kubeadm-config and kubelet-config, and who may read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api import components
from slipway.api.kubeadm import conversion, v1beta4
from slipway.api.machinery import strict
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.yaml import goyaml
from slipway.workload import roles

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import ClusterConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release

NAMESPACE = "kube-system"
KUBEADM_CONFIG = "kubeadm-config"
KUBELET_CONFIG = "kubelet-config"
KUBELET_GROUP = components.KUBELET_GROUP


def kubeadm_config(cluster: ClusterConfiguration, release: Release) -> list[Manifest]:
    """The ClusterConfiguration for upgrades and joins; component configurations have ConfigMaps of their own."""
    read = roles.reading(
        "kubeadm:nodes-kubeadm-config", NAMESPACE, "configmaps", KUBEADM_CONFIG, roles.group(roles.JOINING_NODES), roles.group(roles.NODES)
    )
    return [config_map(KUBEADM_CONFIG, {"ClusterConfiguration": cluster_configuration(cluster, release)}), *read]


def kubelet_config(cluster: ClusterConfiguration, release: Release) -> list[Manifest]:
    """The KubeletConfiguration that every node starts from."""
    component = cluster.component_configs.get(KUBELET_GROUP)
    if component is None:
        raise ConfigurationError("no kubelet component config found in the active component config set")
    made = config_map(KUBELET_CONFIG, {"kubelet": components.marshal(component, release)})
    read = roles.reading(
        "kubeadm:kubelet-config", NAMESPACE, "configmaps", KUBELET_CONFIG, roles.group(roles.NODES), roles.group(roles.JOINING_NODES)
    )
    return [made if component.user_supplied else signed(made), *read]


def cluster_configuration(cluster: ClusterConfiguration, release: Release) -> str:
    """The ClusterConfiguration as v1beta4; a CI build is kept under the name that it was asked for by."""
    if cluster.ci_kubernetes_version:
        cluster = msgspec.structs.replace(cluster, kubernetes_version=cluster.ci_kubernetes_version)
    document = strict.encode(conversion.to_version(cluster, v1beta4.ClusterConfiguration, release))
    return goyaml.dump({"apiVersion": v1beta4.API_VERSION, "kind": "ClusterConfiguration", **document})


def config_map(name: str, data: dict[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data}


def signed(manifest: Manifest) -> Manifest:
    """With the hash that tells an upgrade that no user wrote or changed this configuration."""
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {components.HASH_ANNOTATION: components.checksum(manifest)}}}


def is_signed(manifest: Manifest) -> bool:
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return components.HASH_ANNOTATION in annotations and annotations[components.HASH_ANNOTATION] == components.checksum(manifest)
