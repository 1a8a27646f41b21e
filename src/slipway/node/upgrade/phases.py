"""The story of ``upgrade``: ``apply`` moves the cluster to another version, ``node`` brings one more node along.

``APPLY_PHASES`` and ``NODE_PHASES`` are the stories; what a phase does is in upgradesteps.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.node import paths, workflow
from slipway.node.upgrade import preflight, steps
from slipway.node.upgrade.steps import UpgradeOptions, UpgradeRun
from slipway.node.workflow import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.internal import UpgradeConfiguration
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster
    from slipway.node.cluster.live import LiveCluster

__all__ = ["APPLY_PHASES", "NODE_PHASES", "UpgradeOptions", "UpgradeResult", "UpgradeRun", "apply", "node", "prepare_apply", "prepare_node"]

# The flags of the phases' own sub-commands.
_FLAGS = ("config", "kubeconfig", "dry-run")
_CONTROL_PLANE = (*_FLAGS, "certificate-renewal", "etcd-snapshot-dir", "etcd-upgrade", "patches")
_PREFLIGHT = (*_FLAGS, "force", "ignore-preflight-errors", "allow-experimental-upgrades", "allow-release-candidate-upgrades", "yes")

# fmt: off
_KUBECONFIG: Phase[UpgradeRun] = Phase(
    name="kubeconfig", short="Let kubelet.conf point at the local API server", run=steps.kubeconfig, flags=_FLAGS, hidden=True)
_KUBELET_CONFIG: Phase[UpgradeRun] = Phase(
    name="kubelet-config", short="Write the kubelet's configuration of the new version", run=steps.kubelet_config,
    flags=(*_FLAGS, "patches"))
_ADDON: Phase[UpgradeRun] = Phase(name="addon", short="Upgrade the add-ons", flags=(*_FLAGS, "patches"), phases=(
    Phase(name="coredns", short="Upgrade CoreDNS", run=partial(steps.addon, "coredns"), flags=(*_FLAGS, "patches")),
    Phase(name="kube-proxy", short="Upgrade kube-proxy", run=partial(steps.addon, "kube-proxy"), flags=_FLAGS),
))
_POST_UPGRADE: Phase[UpgradeRun] = Phase(name="post-upgrade", short="Tidy up after the upgrade", run=steps.post_upgrade, flags=_FLAGS)

APPLY_PHASES: tuple[Phase[UpgradeRun], ...] = (
    Phase(name="preflight", short="Check that the cluster can be upgraded", run=preflight.check_cluster, flags=_PREFLIGHT),
    Phase(name="control-plane", short="Upgrade the control plane of this node", run=steps.control_plane_apply, flags=_CONTROL_PLANE),
    Phase(name="upload-config", short="Keep the configuration of the new version in the cluster", aliases=("uploadconfig",),
          flags=_FLAGS, phases=(
        Phase(name="kubeadm", short="Keep the ClusterConfiguration in the ConfigMap kubeadm-config", run=steps.upload_kubeadm_config,
              flags=_FLAGS),
        Phase(name="kubelet", short="Keep the kubelet's configuration in the ConfigMap kubelet-config", run=steps.upload_kubelet_config,
              flags=_FLAGS),
    )),
    _KUBECONFIG,
    _KUBELET_CONFIG,
    Phase(name="bootstrap-token", short="Renew what joining nodes are allowed to do", run=steps.bootstrap_token, flags=_FLAGS),
    _ADDON,
    _POST_UPGRADE,
)

NODE_PHASES: tuple[Phase[UpgradeRun], ...] = (
    Phase(name="preflight", short="Check that this node can be upgraded", run=preflight.check_node,
          flags=("config", "ignore-preflight-errors")),
    Phase(name="control-plane", short="Upgrade the control plane of this node, if it has one", run=steps.control_plane_node,
          flags=_CONTROL_PLANE),
    _KUBECONFIG,
    _KUBELET_CONFIG,
    _ADDON,
    _POST_UPGRADE,
)
# fmt: on


class UpgradeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an upgrade did, for programs that call it."""

    node_name: str
    kubernetes_version: str
    is_control_plane: bool
    exchanged: tuple[str, ...] = ()
    """The static Pods that run from new manifests, in the order in which they were exchanged."""
    backup_dir: str = ""
    """Where the manifests of before are kept; empty where none was exchanged."""
    etcd_snapshot: str = ""
    seconds: Mapping[str, float] = msgspec.field(default_factory=dict)
    """How long each phase took that ran, by its path."""


def prepare_apply(options: UpgradeOptions, host: Host, progress: Progress) -> UpgradeRun:
    """Read the configuration of the upgrade and of the cluster."""
    from slipway.node.config import load as configuration
    from slipway.node.config import version as kubeversion

    config, _ = configuration.load_upgrade(host, options.text, options.overrides, progress, source=options.source)
    wanted = config.apply
    if not wanted.kubernetes_version:
        raise OperatorError("missing one or more required arguments. Required arguments: [version]")
    # The kubeadm of a version upgrades to it.
    release = kubeversion.acting_release(host.environment, wanted.kubernetes_version)
    state = _prepare(options, host, progress, release, "apply", config, dry_run=bool(wanted.dry_run), is_control_plane=True)
    state.ctx.config.patches = wanted.patches
    state.ctx.config.cluster.kubernetes_version = _normalized(wanted.kubernetes_version)
    state.ignored = frozenset(name.lower() for name in wanted.ignore_preflight_errors)
    if wanted.print_config:
        _show_configuration(state)
    return state


def prepare_node(options: UpgradeOptions, host: Host, progress: Progress) -> UpgradeRun:
    """Read the configuration of the upgrade and of the cluster; a node has a control plane if it has an API server."""
    from slipway.node.config import load as configuration

    config, release = configuration.load_upgrade(host, options.text, options.overrides, progress, source=options.source)
    has_api_server = host.exists(f"{paths.MANIFESTS_DIR}/kube-apiserver.yaml")
    dry_run = bool(config.node.dry_run)
    state = _prepare(options, host, progress, release, "node", config, dry_run=dry_run, is_control_plane=has_api_server)
    state.ctx.config.patches = config.node.patches
    state.ignored = frozenset(name.lower() for name in config.node.ignore_preflight_errors)
    return state


def apply(state: UpgradeRun) -> UpgradeResult:
    """Run the phases of ``upgrade apply``."""
    result = _execute(APPLY_PHASES, state, tuple(state.config.apply.skip_phases))
    if not state.options.only and not state.ctx.host.dry_run:
        say = state.ctx.progress.say
        say(f'\n[upgrade] SUCCESS! A control plane node of your cluster was upgraded to "{result.kubernetes_version}".\n')
        say("[upgrade] Now please proceed with upgrading the rest of the nodes by following the right order.")
    return result


def node(state: UpgradeRun) -> UpgradeResult:
    """Run the phases of ``upgrade node``."""
    return _execute(NODE_PHASES, state, tuple(state.config.node.skip_phases))


def _execute(tree: tuple[Phase[UpgradeRun], ...], state: UpgradeRun, skip: tuple[str, ...]) -> UpgradeResult:
    from slipway.node.init.result import Recorder

    ctx = state.ctx
    recorder = Recorder(ctx.progress)
    workflow.execute(tree, state, recorder, only=state.options.only, skip=skip)
    if not state.options.only and ctx.host.dry_run:
        ctx.progress.say("[upgrade/successful] Finished dryrunning successfully!")
    outcome = state.outcome
    return UpgradeResult(
        node_name=ctx.config.node_registration.name,
        kubernetes_version=ctx.config.cluster.kubernetes_version,
        is_control_plane=state.is_control_plane,
        exchanged=outcome.exchanged if outcome else (),
        backup_dir=outcome.backup_dir if outcome and outcome.exchanged else "",
        etcd_snapshot=outcome.snapshot if outcome else "",
        seconds=recorder.seconds,
    )


def _prepare(
    options: UpgradeOptions,
    host: Host,
    progress: Progress,
    release: Release,
    command: str,
    upgrade: UpgradeConfiguration,
    *,
    dry_run: bool,
    is_control_plane: bool,
) -> UpgradeRun:
    from slipway.node import dryrun
    from slipway.node.cluster import imagined
    from slipway.node.cluster.dryrun import DryRunCluster
    from slipway.node.cluster.live import connect
    from slipway.node.config import cluster as clusterconfig
    from slipway.node.config import version as kubeversion
    from slipway.node.context import NodeContext
    from slipway.node.upgrade import controlplane

    kubeconfig = options.kubeconfig or (paths.ADMIN_CONF if is_control_plane else paths.KUBELET_CONF)
    is_live = not dry_run or host.exists(kubeconfig)
    here, name = host, host.hostname().strip().lower()
    if not dry_run:
        controlplane.recover(host, progress)
    else:
        here = dryrun.host_for(host, dryrun.UPGRADE_VARIABLE, f"kubeadm-upgrade-{command}-dryrun", progress)
    cluster: Cluster
    if is_live:
        patience = waiting.seconds(upgrade.timeouts.kubernetes_api_call, 60)
        cluster = live = connect(host, kubeconfig, patience=patience, waiting=progress.say)
        _await_api(live, patience, progress)
        name = clusterconfig.node_name(host)
        if command == "node":
            # A node follows its cluster, whatever the version of this program would be.
            release = kubeversion.acting_release(host.environment, clusterconfig.kubernetes_version(live))
        if dry_run:
            progress.say(f'[dryrun] Creating a real client from "{kubeconfig}"')
            cluster = DryRunCluster(progress, release, real=live)
    else:
        progress.say("[dryrun] Dryrunning without a real client")
        objects = [*imagined.objects(release, ""), imagined.corefile()]
        cluster = DryRunCluster(progress, release, imagined=objects, lists=imagined.lists(release, name))
    config = clusterconfig.fetch(cluster, release, host, progress, "upgrade", name=name, is_control_plane=is_control_plane)
    if is_live:
        config.timeouts = upgrade.timeouts
    ctx = NodeContext(config=config, release=release, host=here, progress=progress)
    return UpgradeRun(
        ctx=ctx,
        config=upgrade,
        options=options,
        machine=host,
        cluster=cluster,
        is_control_plane=is_control_plane,
        is_live=is_live,
    )


def _await_api(live: LiveCluster, patience: float, progress: Progress) -> None:
    """An API server that was restarted by a killed upgrade answers before it knows who may ask what."""

    def ready() -> str:
        try:
            live.client.raw("/readyz")
        except OperatorError as error:
            return f"the API server is not ready: {error.message}"
        return ""

    try:
        waiting.until(ready, timeout=patience, interval=0.5)
    except waiting.TimedOutError as error:
        progress.warn(f"[upgrade] {error.message}; going on all the same")


def _show_configuration(state: UpgradeRun) -> None:
    from slipway.workload import configmaps

    lines = configmaps.cluster_configuration(state.ctx.config.cluster, state.ctx.release).splitlines()
    state.ctx.progress.say("\n".join(["[upgrade/config] Configuration used:", *(f"\t{line}" for line in lines)]))


def _normalized(version: str) -> str:
    from slipway.node.config import version as kubeversion

    return kubeversion.normalized(version) or version
