"""``reset`` and ``reset phase …``: flags in, the workflow of slipway.node.reset out."""

from __future__ import annotations

import sys

from slipway.api.kubeadm.validation.rules import refuse_mixed_arguments
from slipway.cli import fields
from slipway.node import paths, reset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation


def run(call: Invocation) -> None:
    progress = call.progress()
    refuse_mixed_arguments(call.given)
    options = reset.ResetOptions(
        text=fields.config_text(call),
        source=call.config_path,
        overrides=fields.reset_overrides(call),
        only=call.command.phase,
        # A phase without --cri-socket does not care which runtime there is.
        detect_cri="cri-socket" in call.flags,
        kubeconfig=call.text("kubeconfig") if "kubeconfig" in call.flags else paths.ADMIN_CONF,
        answer=_answer,
    )
    state = reset.prepare(options, call.host, progress)
    call.release = state.release
    reset.perform(state)


def _answer() -> str:
    # The question ends without a line break, so it may still be in the buffer.
    sys.stdout.flush()
    return sys.stdin.readline()
