"""The shared certificates on their way into the cluster: encrypted, readable by joining nodes, gone after two hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm.internal import BootstrapToken
from slipway.api.machinery.duration import Duration
from slipway.credentials import tokens
from slipway.node.pki import copycerts
from slipway.workload import roles

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext

_LIFETIME = Duration.of(hours=2)


def upload(ctx: NodeContext, cluster: Cluster, certificate_key: str) -> None:
    """Keep the certificates in a Secret that is deleted together with a token that can do nothing."""
    namespace = copycerts.NAMESPACE
    ctx.progress.say(f'[upload-certs] Storing the certificates in Secret "{copycerts.SECRET_NAME}" in the "{namespace}" Namespace')
    owner = BootstrapToken(token=tokens.generate(), description="Proxy for managing TTL for the kubeadm-certs secret", ttl=_LIFETIME)
    name = tokens.secret_name(owner.token_id)
    earlier: list[str] = []
    if ctx.host.dry_run:
        # What kubeadm asks for is part of what a dry run shows.
        cluster.get("v1", "Secret", name, namespace)
    else:
        earlier = owners(cluster.get("v1", "Secret", copycerts.SECRET_NAME, namespace) or {})
    cluster.apply(tokens.secret(owner, ctx.host.now()))
    created = cluster.get("v1", "Secret", name, namespace) or {}
    uid = created.get("metadata", {}).get("uid", "")
    reading = roles.reading("kubeadm:kubeadm-certs", namespace, "secrets", copycerts.SECRET_NAME, roles.group(roles.JOINING_NODES))
    cluster.apply_all([copycerts.secret(ctx, certificate_key, owner_name=name, owner_uid=uid), *reading])
    # The token of an upload that this one replaces has nothing left to look after.
    for token in earlier:
        cluster.delete("v1", "Secret", token, namespace)


def owners(secret: Manifest) -> list[str]:
    """The tokens with which the uploaded certificates go."""
    references = (secret.get("metadata") or {}).get("ownerReferences") or []
    return [owner["name"] for owner in references if owner.get("kind") == "Secret" and owner["name"].startswith("bootstrap-token-")]
