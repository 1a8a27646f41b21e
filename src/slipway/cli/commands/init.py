"""``init`` and ``init phase …``: flags in, the workflow of slipway.node.init out."""

from __future__ import annotations

from slipway.api.kubeadm.validation.rules import refuse_mixed_arguments
from slipway.cli.fields import config_text, init_overrides
from slipway.node import init, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation


def run(call: Invocation) -> None:
    progress = call.progress()
    overrides = init_overrides(call, progress)
    refuse_mixed_arguments(call.given)
    options = init.InitOptions(
        text=config_text(call),
        source=call.config_path,
        overrides=overrides,
        only=call.command.phase,
        # A phase without --cri-socket does not care which runtime there is.
        detect_cri="cri-socket" in call.flags,
        kubeconfig_dir=call.text("kubeconfig-dir") if call.changed("kubeconfig-dir") else paths.KUBERNETES_DIR,
        kubeconfig=call.text("kubeconfig") if call.changed("kubeconfig") else paths.ADMIN_CONF,
        upload_certs=call.is_on("upload-certs"),
        skip_token_print=call.is_on("skip-token-print"),
        skip_certificate_key_print=call.is_on("skip-certificate-key-print"),
        print_manifest=call.is_on("print-manifest"),
    )
    state = init.prepare(options, call.host, progress)
    call.release = state.ctx.release
    init.perform(state)
