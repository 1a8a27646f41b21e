"""Discovery by a bootstrap token: cluster-info is believed because the token signs it, and its authority because it is pinned.

It is fetched from whoever answers first, checked, and with a pin fetched again over a connection that the pinned authority
vouches for; both must be equal.  A cluster that is still coming up is waited for; what waiting does not mend is told at once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.kube import kubeconfig
from slipway.node.discovery import trust as discovery
from slipway.workload import clusterinfo

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import BootstrapTokenDiscovery
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.kube.connection import Connection
    from slipway.kube.kubeconfig import Document

_INTERVAL = 0.25
_ANSWER = 10.0
SETTLING = 10.0
"""Seconds after which a token that is not among those that signed cluster-info is taken to be a wrong one.

The controller manager signs with a new token within a second.  kubeadm waits for all of timeouts.discovery; so does this
program where no token has signed yet, because then the controller manager may still be starting.
"""


class NotYetError(OperatorError):
    """What a cluster that is still coming up answers.  ``signed_by_others`` tells that other tokens have signed."""

    def __init__(self, message: str, awaited: str, *, signed_by_others: bool = False) -> None:
        super().__init__(message)
        self.awaited = awaited
        self.signed_by_others = signed_by_others


def discover(wanted: BootstrapTokenDiscovery, host: Host, progress: Progress, timeout: float) -> Document:
    """The kubeconfig of cluster-info."""
    began = time.monotonic()
    told = ""
    found: Document = {}

    def probe() -> str:
        nonlocal told, found
        try:
            found = look(wanted, host)
        except NotYetError as error:
            if error.signed_by_others and time.monotonic() - began > SETTLING:
                raise OperatorError(f"{error.message} (other tokens have signed cluster-info, this one has not)") from error
            if error.awaited != told:
                told = error.awaited
                progress.say(f"[discovery] Waiting up to {waiting.shown(timeout)} for {told}")
            return error.message
        return ""

    waiting.until(probe, timeout=timeout, interval=_INTERVAL)
    return found


def look(wanted: BootstrapTokenDiscovery, host: Host) -> Document:
    """One try: the kubeconfig, or NotYetError for what may come right by itself, or the reason why it never will."""
    from slipway.kube.connection import Connection

    server = f"https://{wanted.api_server_endpoint}"
    text = _signed(_fetch(Connection(server=server, insecure=True), host), wanted.token)
    document = kubeconfig.load(text.encode(), "the cluster-info ConfigMap")
    if not wanted.ca_cert_hashes:
        discovery.cluster_of(document)
        return document
    document = discovery.with_pinned_authority(document, wanted.ca_cert_hashes)
    verified = _fetch(Connection(server=server, ca=discovery.certificate_authority(document)), host)
    if verified.get("kubeconfig") != text:
        raise OperatorError(
            "the second kubeconfig from the cluster-info ConfigMap (using validated TLS) was different from the first: "
            f"a man in the middle answers at {server}, or cluster-info was changed just now; try again"
        )
    return document


def _signed(data: dict[str, str], token: str) -> str:
    try:
        return discovery.signed_text(data, token)
    except discovery.UnsignedError as error:
        awaited = f'a JWS signature in the cluster-info ConfigMap for token ID "{token.partition(".")[0]}"'
        others = any(key.startswith(clusterinfo.SIGNATURE_PREFIX) for key in data)
        raise NotYetError(error.message, awaited, signed_by_others=others) from error


def _fetch(connection: Connection, host: Host) -> dict[str, str]:
    """The data of cluster-info as anybody may read it."""
    from slipway.kube.client import Client
    from slipway.kube.errors import ApiError, UnreachableError, UntrustedError

    client = Client(connection, timeout=_ANSWER, environment=host.environment)
    failed = "failed to request the cluster-info ConfigMap"
    try:
        found = client.get("v1", "ConfigMap", clusterinfo.NAME, clusterinfo.NAMESPACE)
    except UntrustedError as error:
        from slipway.node.discovery import distrust

        raise distrust.distrust(f"{failed}: {error.message}", connection.shown, connection.ca, host.now()) from error
    except UnreachableError as error:
        raise NotYetError(f"{failed}: {error.message}", f"the API server: {error.message}") from error
    except ApiError as error:
        # Before init has made cluster-info and the right to read it, strangers are refused.
        raise NotYetError(f"{failed}: {error.message}", f"the cluster-info ConfigMap: {error.message}") from error
    finally:
        client.close()
    if found is None:
        missing = f"{connection.shown} has no ConfigMap cluster-info in the namespace {clusterinfo.NAMESPACE}"
        raise NotYetError(f"{failed}: {missing}", f"the cluster-info ConfigMap: {missing}")
    data = found.get("data") or {}
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise OperatorError(f"{failed}: what {connection.shown} answers is no ConfigMap: its data must be texts by name")
    return data
