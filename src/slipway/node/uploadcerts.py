"""The shared certificates on their way into the cluster: encrypted, readable by joining nodes, gone after two hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm.internal import BootstrapToken
from slipway.api.machinery.duration import Duration
from slipway.node import copycerts, rbac, tokens

if TYPE_CHECKING:
    from slipway.node.cluster import Cluster
    from slipway.node.context import NodeContext

_LIFETIME = Duration.of(hours=2)


def upload(ctx: NodeContext, cluster: Cluster, certificate_key: str) -> None:
    """Keep the certificates in a Secret that is deleted together with a token that can do nothing."""
    namespace = copycerts.NAMESPACE
    ctx.progress.say(f'[upload-certs] Storing the certificates in Secret "{copycerts.SECRET_NAME}" in the "{namespace}" Namespace')
    owner = BootstrapToken(token=tokens.generate(), description="Proxy for managing TTL for the kubeadm-certs secret", ttl=_LIFETIME)
    name = tokens.secret_name(owner.token_id)
    cluster.get("v1", "Secret", name, namespace)
    cluster.apply(tokens.secret(owner, ctx.host.now()))
    created = cluster.get("v1", "Secret", name, namespace) or {}
    uid = created.get("metadata", {}).get("uid", "")
    cluster.apply(copycerts.secret(ctx, certificate_key, owner_name=name, owner_uid=uid))
    for manifest in rbac.reading("kubeadm:kubeadm-certs", namespace, "secrets", copycerts.SECRET_NAME, rbac.group(rbac.JOINING_NODES)):
        cluster.apply(manifest)
