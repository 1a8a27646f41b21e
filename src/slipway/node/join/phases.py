"""The story of ``join``: a machine becomes a node of a cluster, or one more of its control planes.

``PHASES`` is the story, from top to bottom; what a phase does is in steps.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.node import workflow
from slipway.node.workflow import Phase

if TYPE_CHECKING:
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.join.options import JoinOptions, JoinRun
    from slipway.node.join.result import JoinResult

_ENDPOINT = "[api-server-endpoint]"

# The flags of the phases' own sub-commands.
_DISCOVERY = (
    "discovery-file", "discovery-token", "discovery-token-ca-cert-hash", "discovery-token-unsafe-skip-ca-verification",
    "tls-bootstrap-token", "token",
)  # fmt: skip
_LOCAL = ("apiserver-advertise-address", "apiserver-bind-port")
_ROLE = ("config", "control-plane")
_PREPARE = (*_ROLE, *_DISCOVERY, "dry-run")
_ETCD = (*_ROLE, "node-name", "patches", "apiserver-advertise-address", "dry-run")

# fmt: off
PHASES: tuple[Phase[JoinRun], ...] = (
    Phase(name="preflight", short="Check that this machine can join",
          run="steps:preflight", would="steps:would_preflight", argument=_ENDPOINT,
          flags=(*_PREPARE, *_LOCAL, "ignore-preflight-errors", "cri-socket", "node-name", "certificate-key")),
    Phase(name="control-plane-prepare", short="Make what a new control plane needs on its disk", argument=_ENDPOINT,
          flags=(*_PREPARE, *_LOCAL, "node-name", "certificate-key", "patches"), phases=(
        Phase(name="download-certs", short="Fetch the shared certificates from the Secret kubeadm-certs", run="steps:download_certs",
              applies="steps:fetches_certificates", argument=_ENDPOINT, flags=(*_PREPARE, "certificate-key")),
        Phase(name="certs", short="Make the certificates of the new control plane",
              run="steps:certificates", applies="steps:is_control_plane",
              argument=_ENDPOINT, flags=(*_PREPARE, "apiserver-advertise-address", "node-name")),
        Phase(name="kubeconfig", short="Write the kubeconfig files of the new control plane", run="steps:kubeconfigs",
              applies="steps:is_control_plane", argument=_ENDPOINT, flags=(*_PREPARE, "certificate-key")),
        Phase(name="control-plane", short="Write the static Pods of the new control plane",
              run="steps:control_plane", would="steps:would_control_plane",
              applies="steps:is_control_plane", flags=(*_ROLE, *_LOCAL, "patches", "dry-run")),
    )),
    Phase(name="check-etcd", short="Check that the cluster's etcd is healthy",
          run="steps:check_etcd", would="steps:would_check_etcd", applies="steps:is_control_plane", hidden=True),
    Phase(name="kubelet-start", short="Write the kubelet's settings and its bootstrap credentials, and start it",
          run="steps:kubelet_start", would="steps:would_kubelet_start",
          argument=_ENDPOINT, flags=("config", "cri-socket", "node-name", *_DISCOVERY, "patches", "dry-run")),
    Phase(name="etcd-join", short="Add a member of etcd on this node",
          run="steps:etcd_join", would="steps:would_etcd_join", applies="steps:joins_etcd_first",
          flags=_ETCD),
    Phase(name="kubelet-wait-bootstrap", short="Wait for the kubelet to get its own credentials",
          run="steps:kubelet_wait_bootstrap", would="steps:would_kubelet_wait_bootstrap",
          applies="steps:stays_local", flags=("config", "cri-socket", "dry-run")),
    Phase(name="control-plane-join", short="Make this node one of the control planes", flags=_ETCD, phases=(
        Phase(name="etcd", short="Add a member of etcd on this node, where ControlPlaneKubeletLocalMode is off",
              run="steps:etcd_join", would="steps:would_etcd_join",
              applies="steps:joins_etcd_last", hidden=True),
        Phase(name="mark-control-plane", short="Label and taint this node as a control plane",
              run="steps:mark_control_plane", would="steps:would_mark_control_plane",
              applies="steps:is_control_plane", flags=(*_ROLE, "node-name", "dry-run")),
    )),
    Phase(name="wait-control-plane", short="Wait for the control plane on this node to answer",
          run="steps:wait_control_plane", would="steps:would_wait_control_plane",
          applies="steps:is_control_plane"),
)
# fmt: on


def run(options: JoinOptions, host: Host, progress: Progress) -> JoinResult:
    """The whole command."""
    return perform(prepare(options, host, progress))


def prepare(options: JoinOptions, host: Host, progress: Progress) -> JoinRun:
    """Read the configuration; nothing is changed yet but for the folder of a dry run."""
    # Help and completion read the tree alone.
    from slipway.node.join import steps

    return steps.prepare(options, host, progress)


def perform(state: JoinRun) -> JoinResult:
    """Run the phases, and say what has become of the node."""
    from slipway.node.join import steps

    config, options = state.config, state.options
    state.way.look_ahead(state)
    recorder = workflow.Recorder(state.progress)
    workflow.execute(PHASES, state, recorder, package=__package__, only=options.only, skip=config.skip_phases, dry_run=bool(config.dry_run))
    if not options.only:
        state.progress.show(steps.farewell(state))
    return steps.result(state, recorder.seconds)
