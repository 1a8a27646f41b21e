"""The configuration of a cluster as its ConfigMaps have it, for the commands that join, upgrade or reset a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.node import configreading, kubeproxy, kubeversion, machinedefaults, uploadconfig

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import InitConfiguration
    from slipway.api.releases import Release
    from slipway.node.cluster import Cluster, Manifest
    from slipway.node.host import Host
    from slipway.node.progress import Progress

NAMESPACE = uploadconfig.NAMESPACE
# The ConfigMaps in the order in which they are read, and the key that holds each document.
_ENTRIES = {uploadconfig.KUBEADM_CONFIG: "ClusterConfiguration", kubeproxy.NAME: "config.conf", uploadconfig.KUBELET_CONFIG: "kubelet"}


def read(cluster: Cluster, release: Release, progress: Progress, prefix: str) -> InitConfiguration:
    """The cluster's part of the configuration; what is a node's own is still to be filled in."""
    from slipway.api.kubeadm import documents

    progress.say(f'[{prefix}] Reading configuration from the "kubeadm-config" ConfigMap in namespace "{NAMESPACE}"...')
    progress.say(f"[{prefix}] Use 'kubeadm init phase {release.reupload_phases} --config your-config-file' to re-upload it.")
    found = {name: cluster.get("v1", "ConfigMap", name, NAMESPACE) for name in _ENTRIES}
    if found[uploadconfig.KUBEADM_CONFIG] is None:
        raise OperatorError(f'failed to get config map: there is no ConfigMap "kubeadm-config" in the namespace "{NAMESPACE}"')
    texts = [_entry(manifest, name) for name, manifest in found.items() if manifest is not None]
    split = documents.split("---\n".join(texts), uploadconfig.KUBEADM_CONFIG)
    config = configreading.read_init(split, release, problems_are_errors=False, warn=progress.warn, deprecated=None)
    for name, group in ((kubeproxy.NAME, kubeproxy.GROUP), (uploadconfig.KUBELET_CONFIG, uploadconfig.KUBELET_GROUP)):
        if group in config.cluster.component_configs:
            config.cluster.component_configs[group].user_supplied = not uploadconfig.is_signed(found[name] or {})
    return config


def complete(config: InitConfiguration, release: Release, host: Host, progress: Progress) -> None:
    """The defaults that depend on the node, once its registration and its endpoint are known."""
    machinedefaults.fill_cluster(config, release, host, progress.warn, kubeversion.fetch_label)
    machinedefaults.fill_components(config, release, host, progress.warn)


def _entry(manifest: Manifest, name: str) -> str:
    key = _ENTRIES[name]
    text = (manifest.get("data") or {}).get(key)
    if not text:
        raise OperatorError(f'unexpected error when reading {name} ConfigMap: it has no key "{key}"')
    return str(text)
