"""The TLS bootstrap: a kubelet with credentials that many share asks the cluster for a certificate of its own.

The kubelet does it by itself, from bootstrap-kubelet.conf to kubelet.conf; here its files are laid out and the end awaited.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.kube import kubeconfig
from slipway.kube.connection import from_kubeconfig
from slipway.node import paths
from slipway.node.discovery import trust
from slipway.node.health import diagnosis
from slipway.node.health import wait as health
from slipway.node.kubelet import service
from slipway.node.preflight import resume

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.kube.kubeconfig import Document
    from slipway.node.context import NodeContext

_INTERVAL = 0.02
_USER_PREFIX = "system:node:"


def write_credentials(ctx: NodeContext, bootstrap: Document, server: str = "") -> None:
    """The file that the kubelet starts with; ``server`` is the API server to ask, where it is not the cluster's."""
    leading = trust.leading_to(bootstrap, ctx.config.cluster.cluster_name, server)
    ctx.host.write(paths.BOOTSTRAP_KUBELET_CONF, kubeconfig.text(leading, ctx.release).encode())


def write_authority(ctx: NodeContext, bootstrap: Document, path: str) -> None:
    """The certificate with which the kubelet knows its clients; one that is there stays, as with kubeadm."""
    ca = trust.certificate_authority(bootstrap)
    if not ctx.host.exists(path):
        ctx.host.write(path, ca, 0o644)
    elif not resume.same_certificates(ctx.host.read(path), ca):
        ctx.progress.warn(
            f"[kubelet-start] WARNING: {path} is not the certificate authority of this cluster: the kubelet will refuse the "
            "requests of its API servers; remove the file and join again"
        )


def would_write_authority(ctx: NodeContext, bootstrap: Document) -> None:
    """A dry run has its files in one folder, and there the cluster's own name for it."""
    path = f"{ctx.config.cluster.certificates_dir}/ca.crt"
    if not ctx.host.exists(path):
        ctx.host.write(path, trust.certificate_authority(bootstrap), 0o644)


def is_own_node(ctx: NodeContext, name: str, bootstrap: Document) -> bool:
    """Whether the kubelet of this machine has credentials as the Node ``name`` of this very cluster, from an earlier try to join it."""
    try:
        existing = kubeconfig.load(ctx.host.read(paths.KUBELET_CONF), paths.KUBELET_CONF)
        certificate = _client_certificate(ctx, existing)
        trusted = trust.certificate_authority(existing)
    except (OSError, OperatorError):
        return False  # Whatever is there, it is no proof.
    same_cluster = resume.same_certificates(trusted, trust.certificate_authority(bootstrap))
    return same_cluster and resume.common_name(certificate) == f"{_USER_PREFIX}{name}"


def wait(ctx: NodeContext, api_is_ready: Callable[[], bool] | None = None) -> None:
    """Until the kubelet is healthy and has credentials of its own; a failure shows what the kubelet says.

    ``api_is_ready`` asks the API server that the kubelet itself has started.  The kubelet's first requests go there in vain,
    and its pauses grow to many seconds; started anew when that API server is ready, it has its certificate at once.
    """
    health.wait_for_kubelet(ctx, waiting.seconds(ctx.config.timeouts.kubelet_health_check, 240))
    ctx.progress.say("[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap")
    timeout = waiting.seconds(ctx.config.timeouts.tls_bootstrap, 300)
    began = time.monotonic()
    started_anew = api_is_ready is None

    def probe() -> str:
        nonlocal started_anew
        missing = _missing(ctx)
        if missing and not started_anew and api_is_ready is not None and api_is_ready():
            started_anew = True
            ctx.progress.say("[kubelet-start] The API server of this node is ready: starting the kubelet anew, so that it asks at once")
            service.restart(ctx)
        return missing

    try:
        waiting.until(probe, timeout=timeout, interval=_INTERVAL if started_anew else waiting.POLL)
    except waiting.TimedOutError as error:
        ctx.progress.show(f"\n{diagnosis.explain(ctx, ('kubelet',))}\n\n")
        raise OperatorError(f"failed while waiting for TLS bootstrap: {error.message}") from error
    ctx.progress.say(f"[kubelet-start] The kubelet has its own credentials after {waiting.shown(time.monotonic() - began)}")


def _missing(ctx: NodeContext) -> str:
    """What the kubelet's own credentials lack: the file, or one of those that it names."""
    if not ctx.host.exists(paths.KUBELET_CONF):
        return f"the kubelet has not written {paths.KUBELET_CONF} yet: no API server has signed its certificate"
    try:
        _client_certificate(ctx, kubeconfig.load(ctx.host.read(paths.KUBELET_CONF), paths.KUBELET_CONF))
    except (OSError, OperatorError) as error:
        return f"{paths.KUBELET_CONF} cannot be used yet: {error}"
    return ""


def _client_certificate(ctx: NodeContext, document: Document) -> bytes:
    certificate = from_kubeconfig(document, ctx.host.read, source=paths.KUBELET_CONF).client_certificate
    if not certificate:
        raise OperatorError(f"{paths.KUBELET_CONF} has no client certificate")
    return certificate
