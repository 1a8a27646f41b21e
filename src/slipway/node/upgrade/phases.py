"""The story of ``upgrade``: ``apply`` moves the cluster to another version, ``node`` brings one more node along.

``APPLY_PHASES`` and ``NODE_PHASES`` are the stories; what a phase does is in steps.py, the first one in preflight.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.node import workflow
from slipway.node.workflow import Phase

if TYPE_CHECKING:
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.upgrade.options import UpgradeOptions, UpgradeRun
    from slipway.node.upgrade.result import UpgradeResult

# The flags of the phases' own sub-commands.
_FLAGS = ("config", "kubeconfig", "dry-run")
_CONTROL_PLANE = (*_FLAGS, "certificate-renewal", "etcd-snapshot-dir", "etcd-upgrade", "patches")
_PREFLIGHT = (*_FLAGS, "force", "ignore-preflight-errors", "allow-experimental-upgrades", "allow-release-candidate-upgrades", "yes")

# fmt: off
_KUBECONFIG: Phase[UpgradeRun] = Phase(
    name="kubeconfig", short="Let kubelet.conf point at the local API server", run="steps:kubeconfig", would="steps:would_kubeconfig",
    flags=_FLAGS, hidden=True)
_KUBELET_CONFIG: Phase[UpgradeRun] = Phase(
    name="kubelet-config", short="Write the kubelet's configuration of the new version",
    run="steps:kubelet_config", would="steps:would_kubelet_config",
    flags=(*_FLAGS, "patches"))
_ADDON: Phase[UpgradeRun] = Phase(name="addon", short="Upgrade the add-ons", flags=(*_FLAGS, "patches"), phases=(
    Phase(name="coredns", short="Upgrade CoreDNS",
          run="steps:addon", would="steps:would_addon", given=("coredns",), flags=(*_FLAGS, "patches")),
    Phase(name="kube-proxy", short="Upgrade kube-proxy",
          run="steps:addon", would="steps:would_addon", given=("kube-proxy",), flags=_FLAGS),
))
_POST_UPGRADE: Phase[UpgradeRun] = Phase(name="post-upgrade", short="Tidy up after the upgrade",
                                         run="steps:post_upgrade", would="steps:would_post_upgrade", flags=_FLAGS)

APPLY_PHASES: tuple[Phase[UpgradeRun], ...] = (
    Phase(name="preflight", short="Check that the cluster can be upgraded",
          run="preflight:check_cluster", would="preflight:would_check_cluster", flags=_PREFLIGHT),
    Phase(name="control-plane", short="Upgrade the control plane of this node",
          run="steps:control_plane_apply", would="steps:would_control_plane_apply", flags=_CONTROL_PLANE),
    Phase(name="upload-config", short="Keep the configuration of the new version in the cluster", aliases=("uploadconfig",),
          flags=_FLAGS, phases=(
        Phase(name="kubeadm", short="Keep the ClusterConfiguration in the ConfigMap kubeadm-config",
              run="steps:upload_kubeadm_config", would="steps:would_upload_kubeadm_config",
              flags=_FLAGS),
        Phase(name="kubelet", short="Keep the kubelet's configuration in the ConfigMap kubelet-config",
              run="steps:upload_kubelet_config", would="steps:would_upload_kubelet_config",
              flags=_FLAGS),
    )),
    _KUBECONFIG,
    _KUBELET_CONFIG,
    Phase(name="bootstrap-token", short="Renew what joining nodes are allowed to do",
          run="steps:bootstrap_token", would="steps:would_bootstrap_token", flags=_FLAGS),
    _ADDON,
    _POST_UPGRADE,
)

NODE_PHASES: tuple[Phase[UpgradeRun], ...] = (
    Phase(name="preflight", short="Check that this node can be upgraded", run="preflight:check_node", would="preflight:would_check_node",
          flags=("config", "ignore-preflight-errors")),
    Phase(name="control-plane", short="Upgrade the control plane of this node, if it has one",
          run="steps:control_plane_node", would="steps:would_control_plane_node",
          flags=_CONTROL_PLANE),
    _KUBECONFIG,
    _KUBELET_CONFIG,
    _ADDON,
    _POST_UPGRADE,
)
# fmt: on


def run(options: UpgradeOptions, host: Host, progress: Progress) -> UpgradeResult:
    """The whole command; what it did is what it returns."""
    return perform(prepare(options, host, progress))


def prepare(options: UpgradeOptions, host: Host, progress: Progress) -> UpgradeRun:
    """Read the configuration of the upgrade and of the cluster."""
    # Help and completion read the tree alone.
    from slipway.node.upgrade import steps

    return steps.prepare(options, host, progress)


def perform(state: UpgradeRun) -> UpgradeResult:
    """Run the phases of ``upgrade apply`` or ``upgrade node``, and say how it went."""
    from slipway.node.upgrade import steps

    wanted, options, progress = state.wanted, state.options, state.ctx.progress
    tree = APPLY_PHASES if options.command == "apply" else NODE_PHASES
    recorder = workflow.Recorder(progress)
    workflow.execute(tree, state, recorder, package=__package__, only=options.only, skip=wanted.skip_phases, dry_run=bool(wanted.dry_run))
    result = steps.result(state, recorder.seconds)
    if options.only:
        return result
    if wanted.dry_run:
        progress.say("[upgrade/successful] Finished dryrunning successfully!")
    elif options.command == "apply":
        progress.say(f'\n[upgrade] SUCCESS! A control plane node of your cluster was upgraded to "{result.kubernetes_version}".\n')
        progress.say("[upgrade] Now please proceed with upgrading the rest of the nodes by following the right order.")
    return result
