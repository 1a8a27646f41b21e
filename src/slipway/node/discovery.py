"""How a machine that joins finds out where its cluster is and whom to trust: by a bootstrap token, or by a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.node import clusterinfo, kubeconfig

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import BootstrapTokenDiscovery, Discovery
    from slipway.node.cluster import Cluster
    from slipway.node.host import Host
    from slipway.node.kubeconfig import Document

BOOTSTRAP_USER = "tls-bootstrap-token-user"
_DEFAULT_CLUSTER = "kubernetes"


def discover(discovery: Discovery, cluster: Cluster, host: Host, *, check_pins: bool = True) -> Document:
    """A kubeconfig for the TLS bootstrap; a dry run does not check the pins, since it may only imagine the cluster."""
    try:
        if discovery.file is not None:
            found = _load_file(discovery.file.kube_config_path, host)
        elif discovery.bootstrap_token is not None:
            found = _signed_by(discovery.bootstrap_token, cluster, check_pins=check_pins)
        else:
            raise OperatorError("couldn't find a valid discovery configuration: give a token and an endpoint, or a discovery file")
    except OperatorError as error:
        raise OperatorError(f"couldn't validate the identity of the API Server: {error.message}") from error
    if discovery.tls_bootstrap_token:
        server, ca = _only_cluster(found)
        credentials = {"token": discovery.tls_bootstrap_token}
        return kubeconfig.document(server=server, cluster=_DEFAULT_CLUSTER, user=BOOTSTRAP_USER, ca=ca, credentials=credentials)
    if not any((entry or {}).get("user") for entry in found.get("users") or []):
        raise OperatorError(
            "could not find authentication credentials for the TLS bootstrap process. Please use Token discovery, "
            "a discovery file with embedded authentication credentials or the TLSBootstrapToken flag"
        )
    return found


def leading_to(bootstrap: Document, cluster_name: str, server: str = "") -> Document:
    """The kubeconfig with the cluster under its real name, and with another server where one is given."""
    current = bootstrap.get("current-context")
    address, ca = _only_cluster(bootstrap)
    return {
        **bootstrap,
        "clusters": [
            {"name": cluster_name, "cluster": {"certificate-authority-data": kubeconfig.encoded(ca), "server": server or address}}
        ],
        "contexts": [
            {**entry, "context": {**entry["context"], "cluster": cluster_name}} if entry["name"] == current else entry
            for entry in bootstrap["contexts"]
        ],
    }


def certificate_authority(bootstrap: Document) -> bytes:
    return _only_cluster(bootstrap)[1]


def _signed_by(discovery: BootstrapTokenDiscovery, cluster: Cluster, *, check_pins: bool) -> Document:
    token_id = discovery.token.partition(".")[0]
    found = cluster.get("v1", "ConfigMap", clusterinfo.NAME, clusterinfo.NAMESPACE) or {}
    data = found.get("data") or {}
    text = data.get("kubeconfig", "")
    if not text:
        raise OperatorError(
            "there is no kubeconfig key in the cluster-info ConfigMap. This API Server isn't set up for token bootstrapping, can't connect"
        )
    signature = data.get(clusterinfo.SIGNATURE_PREFIX + token_id, "")
    if not signature:
        raise OperatorError(
            f'token id "{token_id}" is invalid for this cluster or it has expired. '
            'Use "kubeadm token create" on the control-plane node to create a new valid token'
        )
    if signature != clusterinfo.signature(text, discovery.token):
        raise OperatorError("failed to verify JWS signature of received cluster info object, can't trust this API Server")
    document = kubeconfig.load(text.encode(), "the cluster-info ConfigMap")
    if check_pins and discovery.ca_cert_hashes:
        pins = clusterinfo.public_key_pins(_only_cluster(document)[1])
        if not {pin.lower() for pin in discovery.ca_cert_hashes} & set(pins):
            raise OperatorError(f"cluster CA found in cluster-info ConfigMap is invalid: none of the public keys {pins} are pinned")
    return document


def _load_file(path: str, host: Host) -> Document:
    if path.startswith("https://"):
        raise OperatorError(f"a discovery file at a URL cannot be fetched by this version yet: download {path} and name the file")
    try:
        return kubeconfig.load(host.read(path), path)
    except OSError as error:
        raise OperatorError(f"failed to load the discovery file {path}: {error.strerror or error}") from error


def _only_cluster(document: Document) -> tuple[str, bytes]:
    """Server and authority of the current context's cluster, or of the only one where there is no context."""
    context = kubeconfig.named(document, "context", document.get("current-context") or "")
    clusters = document.get("clusters") or []
    if context is not None:
        cluster = kubeconfig.named(document, "cluster", context.get("cluster") or "")
    else:
        cluster = clusters[0].get("cluster") if len(clusters) == 1 else None
    if not cluster:
        raise OperatorError("malformed kubeconfig: it leads to no cluster, or to several")
    ca = kubeconfig.decoded(cluster.get("certificate-authority-data"), "certificate-authority-data")
    return str(cluster.get("server", "")), ca
