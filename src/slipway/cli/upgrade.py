"""``upgrade``: flags in, the workflows of slipway.node.upgrade out; ``plan`` and ``diff`` need a live cluster."""

from __future__ import annotations

from slipway.api.kubeadm.validation import refuse_mixed_arguments
from slipway.api.machinery.errors import UsageError
from slipway.cli.overrides import config_text
from slipway.cli.printer import output_format
from slipway.cli.session import not_yet, progress_for
from slipway.node import configuration, upgrade
from slipway.node.progress import TextProgress
from slipway.node.upgrade import UpgradeOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import UpgradeConfiguration
    from slipway.cli.parser import Invocation


_FIELDS = {
    "dry-run": "dryRun",
    "ignore-preflight-errors": "ignorePreflightErrors",
    "patches": "patches.directory",
    "skip-phases": "skipPhases",
}


def apply(call: Invocation) -> None:
    progress = progress_for(call)
    config = _configuration(call)
    if call.arguments or not config.apply.kubernetes_version:
        _require_version(call)
    state = upgrade.prepare_apply(_options(call, "apply"), call.host, progress)
    call.release = state.ctx.release
    upgrade.apply(state)


def node(call: Invocation) -> None:
    progress = progress_for(call)
    _configuration(call)
    state = upgrade.prepare_node(_options(call, "node"), call.host, progress)
    call.release = state.ctx.release
    upgrade.node(state)


def plan(call: Invocation) -> None:
    output_format(call)
    refuse_mixed_arguments(call.given)
    _configuration(call)
    raise not_yet("upgrade plan", "a live cluster")


def diff(call: Invocation) -> None:
    refuse_mixed_arguments(call.given)
    if not _configuration(call).diff.kubernetes_version:
        _require_version(call)
    raise not_yet("upgrade diff", "a live cluster")


def _options(call: Invocation, section: str) -> UpgradeOptions:
    """Flags and the version, as fields of the section of the configuration that the command reads."""
    fields = {f"{section}.{field}": call.given[name] for name, field in _FIELDS.items() if call.changed(name)}
    if call.arguments:
        fields["apply.kubernetesVersion"] = call.arguments[0]
    return UpgradeOptions(text=config_text(call), source=call.config_path, overrides=fields, only=call.command.phase)


def _configuration(call: Invocation) -> UpgradeConfiguration:
    text = config_text(call)
    config, call.release = configuration.load_upgrade(call.host, text, {}, TextProgress(), source=call.config_path)
    return config


def _require_version(call: Invocation) -> None:
    """One argument, the version; kubeadm does not count empty ones."""
    given = [argument for argument in call.arguments if argument]
    if len(given) > 1:
        raise UsageError("too many arguments. Required arguments: [version]")
    if not given:
        raise UsageError("missing one or more required arguments. Required arguments: [version]")
