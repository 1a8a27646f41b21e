"""The story of ``reset``: what ``init`` and ``join`` did to a machine is undone, as far as that can be.

``PHASES`` is the story; what each phase does is in steps.py and etcd.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.node import workflow
from slipway.node.workflow import Phase

if TYPE_CHECKING:
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.reset.options import ResetOptions, ResetRun
    from slipway.node.reset.result import ResetResult

PHASES: tuple[Phase[ResetRun], ...] = (
    Phase(
        name="preflight",
        short="Ask for consent and check the privileges",
        run="steps:preflight",
        would="steps:would_preflight",
        aliases=("pre-flight",),
        flags=("ignore-preflight-errors", "force", "dry-run"),
    ),
    Phase(
        name="remove-etcd-member",
        short="Take this node's member out of etcd and empty its data folder",
        run="etcd:remove_etcd_member",
        would="etcd:would_remove_etcd_member",
        flags=("kubeconfig", "dry-run"),
    ),
    Phase(
        name="cleanup-node",
        short="Stop the kubelet, remove the containers and delete the files",
        run="steps:cleanup_node",
        would="steps:would_cleanup_node",
        aliases=("cleanupnode",),
        flags=("cert-dir", "cri-socket", "cleanup-tmp-dir", "dry-run"),
    ),
)


def run(options: ResetOptions, host: Host, progress: Progress) -> ResetResult:
    """The whole command."""
    return perform(prepare(options, host, progress))


def prepare(options: ResetOptions, host: Host, progress: Progress) -> ResetRun:
    """Read the configuration, this node's and the cluster's; nothing is changed yet."""
    # Help and completion read the tree alone.
    from slipway.node.reset import steps

    return steps.prepare(options, host, progress)


def perform(state: ResetRun) -> ResetResult:
    """Run the phases, and say what is left to do by hand."""
    from slipway.node.reset import steps

    config, options = state.config, state.options
    dry_run = bool(config.dry_run)
    recorder = workflow.Recorder(state.progress)
    workflow.execute(PHASES, state, recorder, package=__package__, only=options.only, skip=config.skip_phases, dry_run=dry_run)
    result = steps.result(state, recorder.seconds)
    if not options.only:
        state.progress.show(steps.FAREWELL)
        for line in () if dry_run else result.left_alone:
            state.progress.say(f"[reset] Left alone: {line}")
    return result
