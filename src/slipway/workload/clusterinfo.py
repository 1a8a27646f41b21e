"""The ConfigMap cluster-info: what a machine may know about a cluster before it has any credentials.

A joining node trusts it because the bootstrap token signs it (a detached JWS), and because of the pinned public key of
the certificate authority.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.machinery.yaml import goyaml
from slipway.workload import roles

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release

NAME = "cluster-info"
NAMESPACE = "kube-public"
SIGNATURE_PREFIX = "jws-kubeconfig-"


def kubeconfig(server: str, ca_data: str, release: Release) -> str:
    """A kubeconfig without users: only where the cluster is and which authority it has (``ca_data`` in base64)."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "", "cluster": {"certificate-authority-data": ca_data, "server": server}}],
        "contexts": None,
        "current-context": "",
        "users": None,
    }
    if release.null_creation_timestamp:
        document["preferences"] = {}
    return goyaml.dump(document)


def config_map(text: str) -> Manifest:
    """``text`` is the kubeconfig; the controller manager adds a signature for every token."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {"kubeconfig": text}}


def access() -> list[Manifest]:
    """Anybody may read it."""
    return roles.reading("kubeadm:bootstrap-signer-clusterinfo", NAMESPACE, "configmaps", NAME, roles.user("system:anonymous"))


def signature(text: str, token: str) -> str:
    """The detached JWS of a kubeconfig: header and signature, with nothing in between."""
    import hashlib
    import hmac

    token_id, _, token_secret = token.partition(".")
    header = _base64url(f'{{"alg":"HS256","kid":"{token_id}"}}'.encode())
    signed = f"{header}.{_base64url(text.encode())}"
    return f"{header}..{_base64url(hmac.digest(token_secret.encode(), signed.encode(), hashlib.sha256))}"


def _base64url(content: bytes) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(content).rstrip(b"=").decode()
