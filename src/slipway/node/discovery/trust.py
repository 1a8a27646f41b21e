"""How a machine that joins finds out where its cluster is and whom to trust: by a bootstrap token, or by a file.

What may be believed is decided here, from documents; token.py and file.py ask the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.kube import kubeconfig
from slipway.workload import clusterinfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.api.kubeadm.internal import BootstrapTokenDiscovery, Discovery
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.kube.kubeconfig import Document
    from slipway.node.cluster.interface import Cluster

BOOTSTRAP_USER = "tls-bootstrap-token-user"
_DEFAULT_CLUSTER = "kubernetes"


class UnsignedError(OperatorError):
    """The token has not signed cluster-info: it was made a moment ago, or it is not one of this cluster's."""


def find(discovery: Discovery, host: Host, progress: Progress, timeout: float) -> Document:
    """A kubeconfig for the TLS bootstrap, from the live cluster; waits for a cluster that is still coming up."""
    from slipway.node.discovery import file as filediscovery
    from slipway.node.discovery import token as tokendiscovery

    with _Identity():
        if discovery.file is not None:
            found = filediscovery.discover(discovery.file.kube_config_path, host, progress, timeout)
        elif discovery.bootstrap_token is not None:
            found = tokendiscovery.discover(discovery.bootstrap_token, host, progress, timeout)
        else:
            raise _nothing_given()
    return with_credentials(discovery, found)


def imagine(discovery: Discovery, cluster: Cluster, host: Host, *, check_pins: bool = True) -> Document:
    """The same in a dry run, which does not check the pins, since it may only imagine the cluster."""
    with _Identity():
        if discovery.file is not None:
            from slipway.node.discovery import file as filediscovery

            found = filediscovery.load(discovery.file.kube_config_path, host)
        elif discovery.bootstrap_token is not None:
            found = _signed_by(discovery.bootstrap_token, cluster, check_pins=check_pins)
        else:
            raise _nothing_given()
    return with_credentials(discovery, found)


def with_credentials(discovery: Discovery, found: Document) -> Document:
    """What was found, with the token for the TLS bootstrap where one is given; it must have some credentials then."""
    if discovery.tls_bootstrap_token:
        server, ca = only_cluster(found)
        credentials = {"token": discovery.tls_bootstrap_token}
        return kubeconfig.document(server=server, cluster=_DEFAULT_CLUSTER, user=BOOTSTRAP_USER, ca=ca, credentials=credentials)
    if not any((entry or {}).get("user") for entry in found.get("users") or []):
        raise OperatorError(
            "could not find authentication credentials for the TLS bootstrap process. Please use Token discovery, "
            "a discovery file with embedded authentication credentials or the TLSBootstrapToken flag"
        )
    return found


def signed_text(data: Mapping[str, str], token: str) -> str:
    """The kubeconfig in the data of cluster-info, if the token signed it."""
    token_id = token.partition(".")[0]
    text = data.get("kubeconfig", "")
    if not text:
        raise OperatorError(
            "there is no kubeconfig key in the cluster-info ConfigMap. This API Server isn't set up for token bootstrapping, can't connect"
        )
    signature = data.get(clusterinfo.SIGNATURE_PREFIX + token_id, "")
    if not signature:
        raise UnsignedError(
            f'token id "{token_id}" is invalid for this cluster or it has expired. '
            'Use "kubeadm token create" on the control-plane node to create a new valid token'
        )
    if signature != clusterinfo.signature(text, token):
        raise OperatorError(
            "failed to verify JWS signature of received cluster info object, can't trust this API Server: "
            f'the cluster has a token with the id "{token_id}", but with another secret'
        )
    return text


def with_pinned_authority(document: Document, pins: Iterable[str]) -> Document:
    """A kubeconfig from cluster-info that trusts the pinned certificates and none that came with them; an error where there are none."""
    from slipway.credentials import x509

    ca = only_cluster(document)[1]
    try:
        certificates, found = x509.parse(ca), x509.public_key_pins(ca)
    except ValueError as error:
        raise OperatorError(f"failed to parse cluster CA from the cluster-info ConfigMap: {error}") from error
    wanted = [pin.lower() for pin in pins]
    pinned = b"".join(x509.pem(certificate) for certificate, pin in zip(certificates, found, strict=True) if pin in wanted)
    if not pinned:
        raise OperatorError(
            f"cluster CA found in cluster-info ConfigMap is invalid: its public key is {', '.join(found)}, "
            f"and none but {', '.join(wanted)} is pinned; `kubeadm token create --print-join-command` on a control plane shows it"
        )
    if len(certificates) == 1:
        return document
    trusted = {**cluster_of(document), "certificate-authority-data": kubeconfig.encoded(pinned)}
    entries = document.get("clusters") or []
    return {
        **document,
        "clusters": [{**entry, "cluster": trusted} if entry.get("cluster") == cluster_of(document) else entry for entry in entries],
    }


def leading_to(bootstrap: Document, cluster_name: str, server: str = "") -> Document:
    """The kubeconfig with the cluster under its real name, and with another server where one is given."""
    current = bootstrap.get("current-context")
    address, ca = only_cluster(bootstrap)
    return {
        **bootstrap,
        "clusters": [
            {"name": cluster_name, "cluster": {"certificate-authority-data": kubeconfig.encoded(ca), "server": server or address}}
        ],
        "contexts": [
            {**entry, "context": {**(entry.get("context") or {}), "cluster": cluster_name}} if entry.get("name") == current else entry
            for entry in bootstrap.get("contexts") or []
        ],
    }


def certificate_authority(bootstrap: Document) -> bytes:
    return only_cluster(bootstrap)[1]


def only_cluster(document: Document) -> tuple[str, bytes]:
    """Server and authority of the current context's cluster, or of the only one where there is no context."""
    cluster = cluster_of(document)
    ca = kubeconfig.decoded(cluster.get("certificate-authority-data"), "certificate-authority-data")
    return str(cluster.get("server", "")), ca


def cluster_of(document: Document) -> Document:
    """The entry of the current context's cluster, or of the only one."""
    context = kubeconfig.named(document, "context", document.get("current-context") or "")
    clusters = document.get("clusters") or []
    if context is not None:
        cluster = kubeconfig.named(document, "cluster", context.get("cluster") or "")
    else:
        cluster = clusters[0].get("cluster") if len(clusters) == 1 else None
    if not cluster:
        raise OperatorError("malformed kubeconfig: it leads to no cluster, or to several")
    return cluster


def _signed_by(discovery: BootstrapTokenDiscovery, cluster: Cluster, *, check_pins: bool) -> Document:
    found = cluster.get("v1", "ConfigMap", clusterinfo.NAME, clusterinfo.NAMESPACE) or {}
    document = kubeconfig.load(signed_text(found.get("data") or {}, discovery.token).encode(), "the cluster-info ConfigMap")
    return with_pinned_authority(document, discovery.ca_cert_hashes) if check_pins and discovery.ca_cert_hashes else document


def _nothing_given() -> OperatorError:
    return OperatorError("couldn't find a valid discovery configuration: give a token and an endpoint, or a discovery file")


class _Identity:
    """Says of every failure within that it is about whom to trust."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OperatorError):
            error.message = f"couldn't validate the identity of the API Server: {error.message}"
            error.args = (error.message,)
