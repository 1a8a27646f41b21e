"""The configuration of a cluster as its ConfigMaps have it, for the commands that join, upgrade, reset or look at a node.

The ConfigMaps may be of any age: what an older kubeadm wrote is read as what this one would have written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import documents, migrate
from slipway.api.kubeadm.addresses import parse_host_port
from slipway.api.kubeadm.internal import Taint
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.host import waiting
from slipway.kube import kubeconfig
from slipway.kube.connection import from_kubeconfig
from slipway.kube.errors import ForbiddenError
from slipway.node import paths
from slipway.node.cluster import marking
from slipway.node.config import dynamicdefaults, load
from slipway.node.staticpods import components
from slipway.workload import configmaps, kubeproxy

if TYPE_CHECKING:
    from slipway.api.kubeadm.documents import ConfigDocument
    from slipway.api.kubeadm.internal import InitConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster

NAMESPACE = configmaps.NAMESPACE
CLUSTER_CONFIGURATION = "ClusterConfiguration"
# kubeadm up to 1.11 kept the whole configuration, that of its node too, under this key.
_MASTER_CONFIGURATION = "MasterConfiguration"
_WHOLE = ("", "kubeadm.k8s.io/v1alpha1", "kubeadm.k8s.io/v1alpha2")
_KUBELET_KEY = "kubelet"
_PROXY_KEY = "config.conf"
# Seconds that a node's own Pods may take to be mirrored into the API.
_MIRROR_PATIENCE = 60.0


def fetch(
    cluster: Cluster,
    release: Release,
    host: Host,
    progress: Progress,
    prefix: str,
    *,
    name: str,
    is_control_plane: bool,
    patience: float = _MIRROR_PATIENCE,
) -> InitConfiguration:
    """All that the cluster knows of itself and of the node ``name``, complete."""
    config = read(cluster, release, progress, prefix)
    fill_in_node(config, cluster, name, host, progress, is_control_plane=is_control_plane, patience=patience)
    complete(config, release, host, progress)
    return config


def kubernetes_version(cluster: Cluster) -> str:
    """The kubernetesVersion of the cluster's configuration: what made or upgraded its control plane last."""
    text = _kubeadm_text(cluster.get("v1", "ConfigMap", configmaps.KUBEADM_CONFIG, NAMESPACE))
    return _version(_documents(text, None, ""))


def read(cluster: Cluster, release: Release, progress: Progress, prefix: str) -> InitConfiguration:
    """The cluster's part of the configuration; what is a node's own is still to be filled in."""
    announce(release, progress, prefix)
    split = _documents(_kubeadm_text(cluster.get("v1", "ConfigMap", configmaps.KUBEADM_CONFIG, NAMESPACE)), progress, prefix)
    proxy = _kube_proxy(cluster)
    kubelet = _kubelet(cluster, _version(split))
    entries = ((kubeproxy.GROUP, proxy, _PROXY_KEY), (configmaps.KUBELET_GROUP, kubelet, _KUBELET_KEY))
    for _, found, key in entries:
        if found is not None:
            split += _component(found, key)
    config = load.read_init(split, release, problems_are_errors=False, warn=progress.warn, deprecated=None)
    for group, found, _ in entries:
        if group in config.cluster.component_configs:
            config.cluster.component_configs[group].user_supplied = not configmaps.is_signed(found or {})
    return config


def announce(release: Release, progress: Progress, prefix: str) -> None:
    """What is said before the cluster is asked."""
    progress.say(f'[{prefix}] Reading configuration from the "kubeadm-config" ConfigMap in namespace "{NAMESPACE}"...')
    progress.say(f"[{prefix}] Use 'kubeadm init phase {release.reupload_phases} --config your-config-file' to re-upload it.")


def complete(config: InitConfiguration, release: Release, host: Host, progress: Progress) -> None:
    """The defaults that depend on the node, once its registration and its endpoint are known."""
    dynamicdefaults.fill_cluster(config, release, host, progress.warn)
    dynamicdefaults.fill_components(config, release, host, progress.warn)


def fill_in_node(
    config: InitConfiguration,
    cluster: Cluster,
    name: str,
    host: Host,
    progress: Progress,
    *,
    is_control_plane: bool,
    patience: float = _MIRROR_PATIENCE,
) -> None:
    """What is known of a node: its runtime's socket, its taints, and where its API server listens."""
    node = cluster.get("v1", "Node", name)
    if node is None:
        raise OperatorError(f'failed to get node registration: there is no Node "{name}" in the cluster')
    registration = config.node_registration
    registration.name = name
    registration.taints = [
        Taint(key=taint["key"], value=taint.get("value", ""), effect=taint.get("effect", ""), time_added=taint.get("timeAdded"))
        for taint in (node.get("spec") or {}).get("taints") or ()
    ]
    registration.cri_socket = _cri_socket(node, host, progress)
    if is_control_plane:
        try:
            address, port = parse_host_port(_advertised(cluster, name, patience))
        except ValueError as error:
            raise OperatorError(f'could not parse API endpoint for node "{name}": {error}') from None
        config.local_api_endpoint.advertise_address, config.local_api_endpoint.bind_port = address, int(port)
        dynamicdefaults.fill_endpoint(config.local_api_endpoint, host, progress.warn)


def node_name(host: Host, path: str = "") -> str:
    """The name under which this machine is a node: that of the kubelet's client certificate, else the host name."""
    path = path or paths.KUBELET_CONF
    if host.exists(path):
        certificate = from_kubeconfig(kubeconfig.load(host.read(path), path), host.read, source=path).client_certificate
        if certificate:
            return _common_name(certificate, path).removeprefix("system:node:")
    return dynamicdefaults.node_name("", host)


def _common_name(pem: bytes, path: str) -> str:
    from cryptography.x509.oid import NameOID

    from slipway.credentials import x509

    try:
        # The certificate of the one who presents it comes first.
        subject = x509.parse(pem)[0].subject
    except ValueError as error:
        raise OperatorError(f"the client certificate of the kubeconfig file {path} cannot be read: {error}") from None
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def _kubeadm_text(manifest: Manifest | None) -> str:
    if manifest is None:
        raise OperatorError(f'failed to get config map: there is no ConfigMap "kubeadm-config" in the namespace "{NAMESPACE}"')
    data = manifest.get("data") or {}
    text = data.get(CLUSTER_CONFIGURATION) or data.get(_MASTER_CONFIGURATION)
    if not text:
        raise OperatorError(f"unexpected error when reading kubeadm-config ConfigMap: {CLUSTER_CONFIGURATION} key value pair missing")
    return str(text)


def _documents(text: str, progress: Progress | None, prefix: str) -> list[ConfigDocument]:
    """The ClusterConfiguration first, brought to a version that is read.

    With one of v1alpha3 to v1beta2 may come an InitConfiguration of nothing but its timeout; that of an older text is of the
    node that wrote it.
    """
    from slipway.api.kubeadm import documents

    values = [document.value for document in goyaml.load(text, configmaps.KUBEADM_CONFIG)]
    written = next((str(value.get("apiVersion") or "") for value in values if isinstance(value, dict)), "")
    if written not in documents.API_VERSIONS:
        text, notes = migrate.migrate(text, configmaps.KUBEADM_CONFIG)
        if progress is not None:
            progress.say(f"[{prefix}] The configuration was written as {written or 'kubeadm.k8s.io/v1alpha1'} by an older release")
            for note in notes:
                progress.say(f"[{prefix}] {note}")
    split = documents.split(text, configmaps.KUBEADM_CONFIG)
    found = documents.of_kind(split, CLUSTER_CONFIGURATION)
    if found is None:
        raise OperatorError("unexpected error when reading kubeadm-config ConfigMap: it has no ClusterConfiguration")
    init = documents.of_kind(split, "InitConfiguration") if written not in _WHOLE else None
    return [found, init] if init is not None else [found]


def _version(split: list[ConfigDocument]) -> str:
    found = split[0].content.value.get("kubernetesVersion")
    if not isinstance(found, str) or not found:
        raise OperatorError('the ClusterConfiguration in the ConfigMap "kubeadm-config" has no kubernetesVersion')
    return found


def _component(manifest: Manifest, key: str) -> list[ConfigDocument]:
    name = manifest["metadata"]["name"]
    text = (manifest.get("data") or {}).get(key)
    if not text:
        raise OperatorError(f'unexpected error when reading {name} ConfigMap: it has no key "{key}"')
    return documents.split(str(text), name)


def _kube_proxy(cluster: Cluster) -> Manifest | None:
    """A cluster may do without kube-proxy, and then nobody may read its ConfigMap."""
    try:
        return cluster.get("v1", "ConfigMap", kubeproxy.NAME, NAMESPACE)
    except ForbiddenError:
        return None


def _kubelet(cluster: Cluster, version: str) -> Manifest:
    """Up to 1.23 the ConfigMap had the minor version in its name."""
    found = cluster.get("v1", "ConfigMap", configmaps.KUBELET_CONFIG, NAMESPACE)
    if found is None:
        old = f"{configmaps.KUBELET_CONFIG}-{'.'.join(version.removeprefix('v').split('.')[:2])}"
        try:
            found = cluster.get("v1", "ConfigMap", old, NAMESPACE)
        except ForbiddenError:
            found = None
    if found is None:
        raise OperatorError(
            f'failed to get component configs: there is no ConfigMap "{configmaps.KUBELET_CONFIG}" in the namespace "{NAMESPACE}"'
        )
    return found


def _cri_socket(node: Manifest, host: Host, progress: Progress) -> str:
    """On the Node up to some release, and in a file of the kubelet since."""
    socket = (node["metadata"].get("annotations") or {}).get(marking.CRI_SOCKET_ANNOTATION, "")
    if not socket and host.exists(paths.KUBELET_INSTANCE_CONFIG):
        socket = _runtime_endpoint(host.read(paths.KUBELET_INSTANCE_CONFIG).decode(), paths.KUBELET_INSTANCE_CONFIG)
    return dynamicdefaults.cri_socket(socket, host, progress.warn, skip_detection=False)


def _runtime_endpoint(text: str, path: str) -> str:

    found = [document.value for document in goyaml.load(text, path) if isinstance(document.value, dict)]
    return str(found[0].get("containerRuntimeEndpoint") or "") if found else ""


def _advertised(cluster: Cluster, name: str, patience: float) -> str:
    """Where the API server of a node says that it listens; its static Pod may not be mirrored into the API yet."""
    address = ""

    def look() -> str:
        nonlocal address
        pods = cluster.list("v1", "Pod", NAMESPACE, {"component": "kube-apiserver", "tier": "control-plane"})
        own = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName") == name]
        if len(own) != 1:
            return f'API server pod for node name "{name}" has {len(own)} entries, only one was expected'
        address = (own[0]["metadata"].get("annotations") or {}).get(components.ADVERTISE_ADDRESS_ANNOTATION, "")
        return "" if address else f'API server pod for node name "{name}" lacks the annotation "{components.ADVERTISE_ADDRESS_ANNOTATION}"'

    waiting.until(look, timeout=patience, interval=0.5)
    return address
