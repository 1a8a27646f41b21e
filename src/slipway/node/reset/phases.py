"""The story of ``reset``: what ``init`` and ``join`` did to a machine is undone, as far as that can be.

``PHASES`` at the end is the story; what each phase does is in resetsteps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.node import paths, workflow
from slipway.node.workflow import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.api.kubeadm.internal import ClusterConfiguration, ResetConfiguration
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster

_FAREWELL = """
The reset process does not perform cleanup of CNI plugin configuration,
network filtering rules and kubeconfig files.

For information on how to perform this cleanup manually, please see:
    https://k8s.io/docs/reference/setup-tools/kubeadm/kubeadm-reset/

"""


def _nobody_answers() -> str:
    return ""


class ResetOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags say about the configuration, by the names of its fields."""
    only: str = ""
    """The phase to run alone; empty for all."""
    detect_cri: bool = True
    kubeconfig: str = paths.ADMIN_CONF
    answer: Callable[[], str] = _nobody_answers
    """Reads the operator's answer to a question that was shown."""


class ResetRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``reset`` share."""

    config: ResetConfiguration
    options: ResetOptions
    release: Release
    host: Host
    progress: Progress
    cluster: Cluster | None = None
    """The API server, where it could be asked for the configuration."""
    cluster_config: ClusterConfiguration | None = None
    node_name: str = ""
    """The name that the kubelet of this machine has; empty where it has none."""
    etcd_data_dir: str = ""
    """The data folder of etcd, once it was emptied."""

    @property
    def certificates_dir(self) -> str:
        return self.config.certificates_dir or paths.PKI_DIR


def run(options: ResetOptions, host: Host, progress: Progress) -> None:
    """The whole command."""
    perform(prepare(options, host, progress))


def prepare(options: ResetOptions, host: Host, progress: Progress) -> ResetRun:
    """Read the configuration, this node's and the cluster's; nothing is changed yet."""
    from slipway.node.config import load as configuration
    from slipway.node.reset import steps

    config, release = configuration.load_reset(
        host, options.text, options.overrides, progress, source=options.source, skip_cri_detection=not options.detect_cri
    )
    state = ResetRun(config=config, options=options, release=release, host=host, progress=progress)
    if not config.dry_run:
        steps.ask_cluster(state)
    return state


def perform(state: ResetRun) -> None:
    """Run the phases, and say what is left to do by hand."""
    workflow.execute(PHASES, state, state.progress, only=state.options.only, skip=state.config.skip_phases)
    if not state.options.only:
        state.progress.show(_FAREWELL)
        if not state.config.dry_run:
            _say_what_was_left(state)


def _say_what_was_left(state: ResetRun) -> None:
    from slipway.node.reset import steps

    for line in steps.left_alone(state):
        state.progress.say(f"[reset] Left alone: {line}")


def _preflight(state: ResetRun) -> None:
    from slipway.node.reset import steps

    steps.preflight(state)


def _remove_etcd_member(state: ResetRun) -> None:
    from slipway.node.reset import etcd

    etcd.remove_etcd_member(state)


def _cleanup_node(state: ResetRun) -> None:
    from slipway.node.reset import steps

    steps.cleanup_node(state)


PHASES: tuple[Phase[ResetRun], ...] = (
    Phase(
        name="preflight",
        short="Ask for consent and check the privileges",
        run=_preflight,
        aliases=("pre-flight",),
        flags=("ignore-preflight-errors", "force", "dry-run"),
    ),
    Phase(
        name="remove-etcd-member",
        short="Take this node's member out of etcd and empty its data folder",
        run=_remove_etcd_member,
        flags=("kubeconfig", "dry-run"),
    ),
    Phase(
        name="cleanup-node",
        short="Stop the kubelet, remove the containers and delete the files",
        run=_cleanup_node,
        aliases=("cleanupnode",),
        flags=("cert-dir", "cri-socket", "cleanup-tmp-dir", "dry-run"),
    ),
)
