"""``upgrade plan`` and ``upgrade diff``: what an upgrade would do, without doing any of it."""

from __future__ import annotations

from slipway.api.kubeadm.validation.rules import refuse_mixed_arguments
from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.api.machinery.version import Version
from slipway.cli.fields import config_text
from slipway.cli.printer import output_format, print_object
from slipway.host.progress import TextProgress, WarningsOnly
from slipway.node.cluster import live
from slipway.node.config import load as configuration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import InitConfiguration, UpgradeConfiguration
    from slipway.api.releases import Release
    from slipway.cli.argv.parser import Invocation
    from slipway.host.progress import Progress
    from slipway.node.cluster.live import LiveCluster
    from slipway.node.context import NodeContext

_PLAN_FIELDS = {
    "allow-experimental-upgrades": "plan.allowExperimentalUpgrades",
    "allow-release-candidate-upgrades": "plan.allowRCUpgrades",
    "etcd-upgrade": "plan.etcdUpgrade",
    "ignore-preflight-errors": "plan.ignorePreflightErrors",
    "print-config": "plan.printConfig",
}


def plan(call: Invocation) -> None:
    from slipway.api.kubeadm.internal import InitConfiguration
    from slipway.node.upgrade import plan as upgradeplan

    chosen = output_format(call)
    refuse_mixed_arguments(call.given)
    progress = TextProgress() if chosen == "text" else WarningsOnly(TextProgress())
    wanted = _configuration(call, {field: call.given[name] for name, field in _PLAN_FIELDS.items() if call.changed(name)}).plan
    version = call.arguments[0] if len(call.arguments) == 1 else wanted.kubernetes_version
    cluster = _connect(call, progress)
    release = upgradeplan.acting_release(call.host.environment, version, cluster.server_version())
    ctx = _context(call, InitConfiguration(), release, progress)
    options = upgradeplan.PlanOptions(
        version=version,
        experimental=bool(wanted.allow_experimental_upgrades),
        release_candidates=bool(wanted.allow_rc_upgrades),
        with_etcd=wanted.etcd_upgrade is not False,
        show_configuration=bool(wanted.print_config),
        ignored=frozenset(name.lower() for name in wanted.ignore_preflight_errors),
    )
    made = upgradeplan.make(ctx, cluster, options)
    if made is not None:
        print_object(made.manifest(), chosen, made.text())


def diff(call: Invocation) -> None:
    from slipway.node.config import cluster as clusterconfig
    from slipway.node.config import version as kubeversion
    from slipway.node.upgrade import diff as upgradediff

    upgradediff.check_manifests(call.host)
    refuse_mixed_arguments(call.given)
    wanted = _configuration(call, {}).diff
    progress = TextProgress()
    cluster = _connect(call, progress)
    given = call.arguments[0] if len(call.arguments) == 1 else wanted.kubernetes_version
    version = given or clusterconfig.kubernetes_version(cluster)
    release = kubeversion.acting_release(call.host.environment, version)
    name = clusterconfig.node_name(call.host)
    config = clusterconfig.fetch(cluster, release, call.host, progress, "upgrade/diff", name=name, is_control_plane=True)
    try:
        Version.parse(version)
    except ValueError:
        raise OperatorError(f'could not parse "{version}" as version') from None
    config.cluster.kubernetes_version = version
    lines = call.number("context-lines") if call.changed("context-lines") else wanted.diff_context_lines
    upgradediff.show(_context(call, config, release, progress), lines)


def _connect(call: Invocation, progress: Progress) -> LiveCluster:
    path = call.text("kubeconfig")
    try:
        return live.connect(call.host, path, waiting=progress.warn)
    except OperatorError as error:
        raise OperatorError(f'couldn\'t create a Kubernetes client from file "{path}": {error.message}') from error


def _context(call: Invocation, config: InitConfiguration, release: Release, progress: Progress) -> NodeContext:
    from slipway.node.context import NodeContext

    call.release = release
    return NodeContext(config=config, release=release, host=call.host, progress=progress)


def _configuration(call: Invocation, fields: dict[str, object]) -> UpgradeConfiguration:
    if len([argument for argument in call.arguments if argument]) > 1:
        raise UsageError("too many arguments. Required arguments: [version]")
    text = config_text(call)
    config, call.release = configuration.load_upgrade(call.host, text, fields, TextProgress(), source=call.config_path)
    return config
