"""``kubeconfig user``: a kubeconfig for another user, on standard output."""

from __future__ import annotations

import sys

from slipway.cli.session import live_context, node_context
from slipway.host.progress import TextProgress, WarningsOnly
from slipway.node import kubeconfigs, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation


def user(call: Invocation) -> None:
    # Unlike kubeadm, which leads to this node by default, the cluster is asked where it is to be reached.
    ctx = None if call.changed("config") else live_context(call, paths.ADMIN_CONF, WarningsOnly(TextProgress()), "kubeconfig")
    ctx = ctx or node_context(call, {})
    text = kubeconfigs.user(
        ctx,
        client_name=call.text("client-name"),
        organizations=tuple(call.texts("org")),
        token=call.text("token"),
        validity=call.duration("validity-period"),
    )
    # kubeadm ends a kubeconfig with an empty line.
    sys.stdout.write(f"{text}\n")
