"""The last step for the kubelet of a first control plane: kubelet.conf follows the certificate that the kubelet rotates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.host import files
from slipway.kube import kubeconfig
from slipway.node import paths
from slipway.node.kubelet import service
from slipway.workload import arguments

if TYPE_CHECKING:
    from slipway.kube.kubeconfig import Document
    from slipway.node.context import NodeContext


def enable_client_cert_rotation(ctx: NodeContext) -> None:
    """Nothing where the kubelet has not written a rotating certificate."""
    folder = arguments.value_of(ctx.config.node_registration.kubelet_extra_args, "cert-dir") or f"{paths.KUBELET_DIR}/pki"
    certificate = f"{folder}/kubelet-client-current.pem"
    if not ctx.host.exists(certificate):
        return
    ctx.progress.say(f'[kubelet-finalize] Updating "{paths.KUBELET_CONF}" to point to a rotatable kubelet client certificate and key')
    if ctx.host.dry_run:
        return
    try:
        current = kubeconfig.load(ctx.host.read(paths.KUBELET_CONF), paths.KUBELET_CONF)
    except OSError as error:
        raise OperatorError(f'could not load "{paths.KUBELET_CONF}": {error.strerror or error}') from error
    rotating = pointed_at(current, certificate)
    files.keep(ctx.host, paths.KUBELET_CONF, kubeconfig.text(rotating, ctx.release).encode(), 0o600)
    if not service.runs_with_its_files(ctx):
        service.restart(ctx)


def pointed_at(config: Document, certificate: str) -> Document:
    """The kubeconfig with a file in place of the certificate and key of its current user."""
    context = kubeconfig.named(config, "context", config.get("current-context") or "")
    if context is None:
        raise OperatorError(f'the file "{paths.KUBELET_CONF}" is not a valid kubeconfig: its current-context is not among its contexts')
    name = context.get("user") or ""
    user = kubeconfig.named(config, "user", name)
    if user is None:
        raise OperatorError(f'the file "{paths.KUBELET_CONF}" does not contain authentication for user "{name}"')
    kept = {field: value for field, value in user.items() if field not in ("client-certificate-data", "client-key-data")}
    rotating = {"name": name, "user": {**kept, "client-certificate": certificate, "client-key": certificate}}
    return {**config, "users": [rotating if entry.get("name") == name else entry for entry in config["users"]]}
