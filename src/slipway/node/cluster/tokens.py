"""The bootstrap tokens that a cluster knows: made, listed and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.credentials.tokens import NAMESPACE, SECRET_TYPE, secret, secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from slipway.api.kubeadm.internal import BootstrapToken
    from slipway.api.machinery.objects import Manifest
    from slipway.node.cluster.interface import Cluster


def create(cluster: Cluster, wanted: Iterable[BootstrapToken], now: datetime) -> None:
    """Make tokens known to the cluster; one that it has already is an error."""
    for token in wanted:
        if cluster.get("v1", "Secret", secret_name(token.token_id), NAMESPACE) is not None:
            raise OperatorError(f'a token with id "{token.token_id}" already exists')
        cluster.apply(secret(token, now))


def delete(cluster: Cluster, token_id: str) -> None:
    """Make the cluster forget a token; one that it does not have is an error."""
    complaint = f'failed to delete bootstrap token "{token_id}"'
    try:
        found = cluster.delete("v1", "Secret", secret_name(token_id), NAMESPACE)
    except OperatorError as error:
        raise OperatorError(f"{complaint}: {error.message}") from error
    if not found:
        raise OperatorError(f'{complaint}: secrets "{secret_name(token_id)}" not found')


def secrets(cluster: Cluster) -> Sequence[Manifest]:
    """The Secrets of all tokens."""
    try:
        found = cluster.list("v1", "Secret", NAMESPACE, {}, {"type": SECRET_TYPE})
    except OperatorError as error:
        raise OperatorError(f"failed to list bootstrap tokens: {error.message}") from error
    return [manifest for manifest in found if manifest.get("type") == SECRET_TYPE]
