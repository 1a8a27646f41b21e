"""``certs``: look at, renew and request certificates."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation
    from slipway.node.context import NodeContext


def certificate_key(call: Invocation) -> None:
    from slipway.node.pki import copycerts

    sys.stdout.write(f"{copycerts.new_certificate_key()}\n")


def check_expiration(call: Invocation) -> None:
    from slipway.cli.printer import output_format, print_object
    from slipway.node.pki import expiration

    chosen = output_format(call)
    report = expiration.check(_context(call, "check-expiration", quiet=chosen != "text"))
    print_object(expiration.manifest(report), chosen, expiration.table(report))


def generate_csr(call: Invocation) -> None:
    from slipway.cli.session import node_context
    from slipway.node.pki import requests

    # Unlike elsewhere, --cert-dir beats the file here.
    ctx = node_context(call, {"certificatesDir": call.text("cert-dir")} if call.text("cert-dir") else {})
    requests.generate(ctx, call.text("kubeconfig-dir"))


def renew(call: Invocation) -> None:
    from slipway.node.pki import renewal

    ctx = _context(call, "renew")
    if call.command.name == "all":
        renewal.renew_all(ctx)
    else:
        renewal.renew(ctx, call.command.name)


def _context(call: Invocation, command: str, *, quiet: bool = False) -> NodeContext:
    """With the configuration of the file, or of the cluster, or the default where neither can be had."""
    from slipway.cli.session import live_context, node_context
    from slipway.host.progress import TextProgress, WarningsOnly

    if call.changed("config"):
        return node_context(call, {})
    ctx = live_context(call, call.text("kubeconfig"), WarningsOnly(TextProgress()) if quiet else TextProgress(), command)
    if ctx is None:
        # A version is given, so that nothing is looked up on a network.
        ctx = node_context(call, {"kubernetesVersion": _version(call)})
    if call.changed("cert-dir"):
        ctx.config.cluster.certificates_dir = call.text("cert-dir")
    return ctx


def _version(call: Invocation) -> str:
    from slipway.node.config import version

    return f"v{version.acting_release(call.host.environment).version}"
