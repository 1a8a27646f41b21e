"""``join`` and ``join phase …``: flags in, the workflow of slipway.node.join out."""

from __future__ import annotations

from slipway.api.kubeadm.validation.rules import refuse_mixed_arguments
from slipway.cli.fields import config_text, join_overrides
from slipway.node import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation


def run(call: Invocation) -> None:
    progress = call.progress()
    refuse_mixed_arguments(call.given)
    overrides = join_overrides(call, progress)
    options = join.JoinOptions(
        text=config_text(call),
        source=call.config_path,
        overrides=overrides,
        only=call.command.phase,
        # A phase without --cri-socket does not care which runtime there is, nor one without --discovery-file about discovery.
        detect_cri="cri-socket" in call.flags,
        discovers="discovery-file" in call.flags,
    )
    state = join.prepare(options, call.host, progress)
    call.release = state.release
    try:
        join.perform(state)
    finally:
        # The cluster may have told which release to be.
        call.release = state.release
