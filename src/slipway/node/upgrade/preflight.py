"""The first phase of an upgrade: whether this node and its cluster can be upgraded, and whether the operator wants it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.node import addons, imagepull, paths
from slipway.node.health import wait as health
from slipway.node.preflight import check, machine, workflows
from slipway.node.upgrade import controlplane, policy
from slipway.node.upgrade import health as upgradehealth

if TYPE_CHECKING:
    from slipway.node.upgrade.options import UpgradeRun

_TRIES_AFTER_INTERRUPTION = 4
_FRESH, _LEADER_PATIENCE = 5.0, 60.0
"""Seconds: the age of a lease that somebody renews, and how long somebody is waited for."""


def check_cluster(state: UpgradeRun) -> None:
    wanted = state.config.apply
    _check_machine(state)
    _check_health(state)
    _check_policy(state)
    if not (wanted.force_upgrade or state.options.assume_yes):
        _confirm(state)
    _pull(state)


def would_check_cluster(state: UpgradeRun) -> None:
    """Of a cluster that is there everything is checked that does not change it."""
    if not state.is_live:
        _preflight_imagined(state)
        return
    _check_machine(state)
    upgradehealth.would_check(state.ctx, state.cluster, state.ignored)
    _check_policy(state)
    _would_pull(state)


def _check_machine(state: UpgradeRun) -> None:
    ctx = state.ctx
    ctx.progress.say("[upgrade/preflight] Running preflight checks")
    check.run([machine.privileged_user()], state.machine, ctx.progress, state.ignored)
    check.run(workflows.upgrade_checks(ctx.config, ctx.release), state.machine, ctx.progress, state.ignored)
    addons.check_corefile(ctx, state.cluster, state.ignored)


def _check_policy(state: UpgradeRun) -> None:
    ctx, wanted = state.ctx, state.config.apply
    for warning in policy.gate_warnings(ctx.config.cluster.feature_gates, ctx):
        ctx.progress.say(f"[upgrade/preflight] {warning}")
    allowed = policy.Allowed(bool(wanted.allow_experimental_upgrades), bool(wanted.allow_rc_upgrades), bool(wanted.force_upgrade))
    policy.enforce(ctx, state.cluster, allowed)


def _check_health(state: UpgradeRun) -> None:
    """A cluster whose upgrade was killed may still be electing its leaders: it is given the time for that."""
    ctx = state.ctx
    tries = _TRIES_AFTER_INTERRUPTION if controlplane.was_interrupted(state.machine) else 1
    if tries > 1:
        ctx.progress.say("[upgrade/preflight] An earlier upgrade of this node was interrupted: waiting for its control plane first")
        health.wait_for_components(ctx, health.CONTROL_PLANE, waiting.seconds(ctx.config.timeouts.upgrade_manifests, 300))
    _await_leaders(state)
    for left in reversed(range(tries)):
        try:
            upgradehealth.check(ctx, state.cluster, state.ignored)
            return
        except OperatorError as error:
            if not left:
                raise
            ctx.progress.say(f"[upgrade/preflight] The cluster is not well yet, trying again: {error.message}")


def _await_leaders(state: UpgradeRun) -> None:
    """No Job runs before there are leaders, and one that was killed keeps its lease for 15 s: wait until somebody renews it."""

    def renewed(name: str) -> str:
        lease = state.cluster.get("coordination.k8s.io/v1", "Lease", name, "kube-system") or {}
        return str((lease.get("spec") or {}).get("renewTime") or "")

    def is_fresh(moment: str) -> bool:
        return bool(moment) and abs((state.ctx.host.now() - datetime.fromisoformat(moment)).total_seconds()) < _FRESH

    first = {name: renewed(name) for name in ("kube-controller-manager", "kube-scheduler")}
    stale = {name: moment for name, moment in first.items() if not is_fresh(moment)}

    def led() -> str:
        waits = [name for name, moment in stale.items() if renewed(name) == moment]
        return f"nobody leads {' and '.join(waits)}" if waits else ""

    try:
        waiting.until(led, timeout=_LEADER_PATIENCE, interval=0.5)
    except waiting.TimedOutError as error:
        state.ctx.progress.warn(f"[upgrade/preflight] {error.message}")


def _confirm(state: UpgradeRun) -> None:
    if state.options.answer is None:
        return
    state.ctx.progress.show("[upgrade] Are you sure you want to proceed? [y/N]: ")
    if state.options.answer().strip().lower() not in ("y", "yes"):
        raise OperatorError("won't proceed; the user didn't answer (Y|y) in order to continue")


def _pull(state: UpgradeRun) -> None:
    wanted = state.wanted
    serial = wanted.image_pull_serial is not False
    imagepull.pull_in_preflight(state.ctx, state.ignored, policy=wanted.image_pull_policy, serial=serial, tag="[upgrade/preflight]")


def _would_pull(state: UpgradeRun) -> None:
    state.ctx.progress.say("[dryrun] Would pull the required images (like 'kubeadm config images pull')")


def _preflight_imagined(state: UpgradeRun) -> None:
    """What a dry run without a cluster goes through."""
    say, version = state.ctx.progress.say, state.ctx.config.cluster.kubernetes_version
    say("[upgrade/preflight] Running preflight checks")
    check.run([machine.privileged_user()], state.machine, state.ctx.progress, state.ignored)
    # The Corefile and the version of CoreDNS are asked for twice: can it be migrated, and must it be.
    for _ in range(2):
        state.cluster.get("v1", "ConfigMap", "coredns", "kube-system")
        state.cluster.list("apps/v1", "Deployment", "kube-system", {"k8s-app": "kube-dns"})
    say("[upgrade] Running cluster health checks")
    if not state.cluster.list("v1", "Node", "", {}):
        state.ctx.progress.warn('The preflight check "CreateJob" was skipped because there are no schedulable Nodes in the cluster.')
    state.cluster.list("v1", "Node", "", {})
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        say(f"[dryrun] would check if {paths.MANIFESTS_DIR}/{component}.yaml exists")
    say(f'[upgrade/preflight] You have chosen to upgrade the cluster version to "{version}"')
    say(f"[upgrade/versions] Cluster version: 1.{state.ctx.release.minor}.0")
    say(f"[upgrade/versions] kubeadm version: v{state.ctx.release.version}")
    state.cluster.list("v1", "Node", "", {})
    _would_pull(state)


def check_node(state: UpgradeRun) -> None:
    _check_this_node(state)
    if state.is_control_plane:
        _pull(state)
    else:
        state.ctx.progress.say("[upgrade/preflight] Skipping prepull. Not a control plane node.")


def would_check_node(state: UpgradeRun) -> None:
    _check_this_node(state)
    if state.is_control_plane:
        state.ctx.progress.say("[upgrade/preflight] Would pull the required images (like 'kubeadm config images pull')")
    else:
        state.ctx.progress.say("[upgrade/preflight] Skipping prepull. Not a control plane node.")


def _check_this_node(state: UpgradeRun) -> None:
    ctx = state.ctx
    ctx.progress.say("[upgrade/preflight] Running pre-flight checks")
    check.run([machine.privileged_user()], state.machine, ctx.progress, state.ignored)
    if state.is_live:
        checks = workflows.upgrade_checks(ctx.config, ctx.release, control_plane=state.is_control_plane)
        check.run(checks, state.machine, ctx.progress, state.ignored)
