"""The bootstrap tokens that a cluster knows: made, listed and forgotten; a row for people, an object for programs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from slipway.api.machinery import tabwriter
from slipway.api.machinery.errors import OperatorError
from slipway.credentials.tokens import NAMESPACE, SECRET_TYPE, secret, secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta

    from slipway.api.kubeadm.internal import BootstrapToken
    from slipway.api.machinery.objects import Manifest
    from slipway.node.cluster.interface import Cluster

_COLUMNS = ("TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS")
_DAY = 24
_YEAR = 365 * _DAY


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


def manifest(token: BootstrapToken) -> Manifest:
    """The token in the output API; what it does not have is left out."""
    fields = {
        "token": token.token,
        "description": token.description,
        "expires": token.expires,
        "usages": token.usages,
        "groups": token.groups,
    }
    head = {"kind": "BootstrapToken", "apiVersion": "output.kubeadm.k8s.io/v1alpha3"}
    return {**head, **{name: value for name, value in fields.items() if value}}


def text(token: BootstrapToken, now: datetime, *, first: bool) -> str:
    """The row of a token; the first one has the heads of the columns above it, and only these two are aligned."""
    expires = datetime.fromisoformat(token.expires) if token.expires else None
    row = (
        str(token.token),
        f"{short_duration(expires - now) if expires else '<forever>':<9}",
        token.expires or "<never>",
        f"{','.join(token.usages) or '<none>':<22}",
        f"{token.description or '<none>':<56}",
        ",".join(token.groups) or "<none>",
    )
    return tabwriter.aligned([_COLUMNS, row] if first else [row])


def short_duration(left: timedelta) -> str:
    """The largest unit alone, as kubectl shows an age; clocks may differ by a second."""
    seconds = int(left.total_seconds())
    hours = seconds // 3600
    if seconds < -1:
        return "<invalid>"
    if seconds < 60:
        return f"{max(seconds, 0)}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    if hours < _DAY:
        return f"{hours}h"
    return f"{hours // _DAY}d" if hours < _YEAR else f"{hours // _YEAR}y"
