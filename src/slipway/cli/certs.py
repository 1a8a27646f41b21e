"""``certs``: look at, renew and request certificates."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.parser import Invocation
    from slipway.node.context import NodeContext


def certificate_key(call: Invocation) -> None:
    from slipway.node import copycerts

    sys.stdout.write(f"{copycerts.new_certificate_key()}\n")


def check_expiration(call: Invocation) -> None:
    from slipway.cli.printer import output_format, print_object
    from slipway.node import expiration

    chosen = output_format(call)
    report = expiration.check(_context(call, "check-expiration"))
    print_object(expiration.manifest(report), chosen, expiration.table(report))


def generate_csr(call: Invocation) -> None:
    from slipway.cli.session import node_context
    from slipway.node import csr

    # Unlike elsewhere, --cert-dir beats the file here.
    ctx = node_context(call, {"certificatesDir": call.text("cert-dir")} if call.text("cert-dir") else {})
    csr.generate(ctx, call.text("kubeconfig-dir"))


def renew(call: Invocation) -> None:
    from slipway.node import renewal

    ctx = _context(call, "renew")
    if call.command.name == "all":
        renewal.renew_all(ctx)
    else:
        renewal.renew(ctx, call.command.name)


def _context(call: Invocation, command: str) -> NodeContext:
    """The configuration is the file's or the default; asking the cluster for its own comes with the client."""
    from slipway.cli.session import node_context

    fields: dict[str, object] = {}
    if not call.changed("config"):
        # A version is given, so that nothing is looked up on a network.
        fields = {"kubernetesVersion": _version(call)}
        if call.changed("cert-dir"):
            fields["certificatesDir"] = call.text("cert-dir")
    return node_context(call, fields)


def _version(call: Invocation) -> str:
    from slipway.node import kubeversion

    return f"v{kubeversion.acting_release(call.host.environment).version}"
