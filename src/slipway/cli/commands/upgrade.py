"""``upgrade apply`` and ``upgrade node``: flags in, the workflows of slipway.node.upgrade out."""

from __future__ import annotations

import sys

from slipway.api.machinery.errors import UsageError
from slipway.cli.fields import config_text
from slipway.host.progress import TextProgress
from slipway.node import upgrade
from slipway.node.config import load as configuration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import UpgradeConfiguration
    from slipway.cli.argv.parser import Invocation
    from slipway.host.progress import Progress
    from slipway.node.upgrade.options import Command


_FIELDS = {
    "certificate-renewal": "certificateRenewal",
    "dry-run": "dryRun",
    "etcd-upgrade": "etcdUpgrade",
    "ignore-preflight-errors": "ignorePreflightErrors",
    "patches": "patches.directory",
    "skip-phases": "skipPhases",
}
_APPLY_FIELDS = {
    "allow-experimental-upgrades": "allowExperimentalUpgrades",
    "allow-release-candidate-upgrades": "allowRCUpgrades",
    "force": "forceUpgrade",
    "print-config": "printConfig",
}


def apply(call: Invocation) -> None:
    progress = call.progress()
    config = _configuration(call)
    if call.arguments or not config.apply.kubernetes_version:
        _require_version(call)
    _run(call, "apply", progress)


def node(call: Invocation) -> None:
    progress = call.progress()
    _configuration(call)
    _run(call, "node", progress)


def _run(call: Invocation, command: Command, progress: Progress) -> None:
    state = upgrade.prepare(_options(call, command), call.host, progress)
    call.release = state.ctx.release
    upgrade.perform(state)


def _options(call: Invocation, section: Command) -> upgrade.UpgradeOptions:
    """Flags and the version, as fields of the section of the configuration that the command reads."""
    known = _FIELDS | (_APPLY_FIELDS if section == "apply" else {})
    fields = {f"{section}.{field}": call.given[name] for name, field in known.items() if call.changed(name)}
    if call.arguments:
        fields["apply.kubernetesVersion"] = call.arguments[0]
    return upgrade.UpgradeOptions(
        command=section,
        text=config_text(call),
        source=call.config_path,
        overrides=fields,
        only=call.command.phase,
        kubeconfig=call.text("kubeconfig") if call.changed("kubeconfig") else "",
        etcd_snapshot_dir=call.text("etcd-snapshot-dir") if "etcd-snapshot-dir" in call.flags else "",
        assume_yes="yes" in call.flags and call.is_on("yes"),
        answer=_answer,
    )


def _answer() -> str:
    # The question ends without a line break, so it may still be in the buffer.
    sys.stdout.flush()
    return sys.stdin.readline()


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
