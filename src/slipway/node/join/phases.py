"""The story of ``join``: a machine becomes a node of a cluster, or one more of its control planes.

``PHASES`` is the story, from top to bottom; what a phase does is in joinsteps.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths, workflow
from slipway.node.join import cluster, steps
from slipway.node.join.steps import JoinOptions, JoinRun, is_control_plane
from slipway.node.workflow import Phase

if TYPE_CHECKING:
    from slipway.host.interface import Host
    from slipway.host.progress import Progress

__all__ = ["PHASES", "JoinOptions", "JoinResult", "JoinRun", "perform", "prepare", "run"]

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
    Phase(name="preflight", short="Check that this machine can join", run=steps.preflight, argument=_ENDPOINT,
          flags=(*_PREPARE, *_LOCAL, "ignore-preflight-errors", "cri-socket", "node-name", "certificate-key")),
    Phase(name="control-plane-prepare", short="Make what a new control plane needs on its disk", argument=_ENDPOINT,
          flags=(*_PREPARE, *_LOCAL, "node-name", "certificate-key", "patches"), phases=(
        Phase(name="download-certs", short="Fetch the shared certificates from the Secret kubeadm-certs", run=steps.download_certs,
              applies=steps.fetches_certificates, argument=_ENDPOINT, flags=(*_PREPARE, "certificate-key")),
        Phase(name="certs", short="Make the certificates of the new control plane", run=steps.certificates, applies=is_control_plane,
              argument=_ENDPOINT, flags=(*_PREPARE, "apiserver-advertise-address", "node-name")),
        Phase(name="kubeconfig", short="Write the kubeconfig files of the new control plane", run=steps.kubeconfigs,
              applies=is_control_plane, argument=_ENDPOINT, flags=(*_PREPARE, "certificate-key")),
        Phase(name="control-plane", short="Write the static Pods of the new control plane", run=steps.control_plane,
              applies=is_control_plane, flags=(*_ROLE, *_LOCAL, "patches", "dry-run")),
    )),
    Phase(name="check-etcd", short="Check that the cluster's etcd is healthy", run=steps.check_etcd, applies=is_control_plane, hidden=True),
    Phase(name="kubelet-start", short="Write the kubelet's settings and its bootstrap credentials, and start it", run=steps.kubelet_start,
          argument=_ENDPOINT, flags=("config", "cri-socket", "node-name", *_DISCOVERY, "patches", "dry-run")),
    Phase(name="etcd-join", short="Add a member of etcd on this node", run=steps.etcd_join, applies=steps.joins_etcd_first,
          flags=_ETCD),
    Phase(name="kubelet-wait-bootstrap", short="Wait for the kubelet to get its own credentials", run=steps.kubelet_wait_bootstrap,
          applies=steps.stays_local, flags=("config", "cri-socket", "dry-run")),
    Phase(name="control-plane-join", short="Make this node one of the control planes", flags=_ETCD, phases=(
        Phase(name="etcd", short="Add a member of etcd on this node, where ControlPlaneKubeletLocalMode is off", run=steps.etcd_join,
              applies=steps.joins_etcd_last, hidden=True),
        Phase(name="mark-control-plane", short="Label and taint this node as a control plane", run=steps.mark_control_plane,
              applies=is_control_plane, flags=(*_ROLE, "node-name", "dry-run")),
    )),
    Phase(name="wait-control-plane", short="Wait for the control plane on this node to answer", run=steps.wait_control_plane,
          applies=is_control_plane),
)
# fmt: on


class JoinResult(msgspec.Struct, kw_only=True, frozen=True):
    """What has become of the machine."""

    node_name: str
    control_plane: bool
    server: str
    """The URL of the cluster's API server."""
    version: str
    """The Kubernetes version of the cluster, whose kubeadm was acted as."""
    seconds: float


def run(options: JoinOptions, host: Host, progress: Progress) -> JoinResult:
    """The whole command."""
    return perform(prepare(options, host, progress))


def prepare(options: JoinOptions, host: Host, progress: Progress) -> JoinRun:
    """Read the configuration; nothing is changed yet but for the folder of a dry run."""
    from slipway.node import dryrun
    from slipway.node.config import dynamicdefaults
    from slipway.node.config import load as configuration

    overrides = dict(options.overrides)
    if not options.discovers:
        if not host.exists(paths.ADMIN_CONF):
            raise OperatorError(
                f"File {paths.ADMIN_CONF} does not exists. "
                "Please use 'kubeadm join phase control-plane-prepare' subcommands to generate it."
            )
        overrides["discovery.file.kubeConfigPath"] = paths.ADMIN_CONF
    config, release = configuration.load_join(
        host, options.text, overrides, progress, source=options.source, skip_cri_detection=not options.detect_cri
    )
    if config.control_plane is not None:
        dynamicdefaults.verify_bind_address(config.control_plane.local_api_endpoint.advertise_address)
    here = dryrun.host_for(host, dryrun.JOIN_VARIABLE, "kubeadm-join-dryrun", progress) if config.dry_run else host
    return JoinRun(config=config, options=options, release=release, host=here, machine=host, progress=progress)


def perform(state: JoinRun) -> JoinResult:
    """Run the phases, and say what has become of the node."""
    import time

    began = time.monotonic()
    cluster.look_early(state)
    workflow.execute(PHASES, state, state.progress, only=state.options.only, skip=state.config.skip_phases)
    if not state.options.only:
        state.progress.show(_farewell(state))
    return JoinResult(
        node_name=state.config.node_registration.name,
        control_plane=is_control_plane(state),
        server=cluster.server(state),
        version=state.ctx.config.cluster.kubernetes_version if state.ctx is not None else f"v{state.release.version}",
        seconds=time.monotonic() - began,
    )


def _farewell(state: JoinRun) -> str:
    if not is_control_plane(state):
        return _WORKER_JOINED
    external = cluster.context(state).config.cluster.etcd.external is not None
    etcd = "" if external else "* A new etcd member was added to the local/stacked etcd cluster."
    return _CONTROL_PLANE_JOINED.format(etcd=etcd, admin_conf=paths.ADMIN_CONF)


_WORKER_JOINED = """
This node has joined the cluster:
* Certificate signing request was sent to apiserver and a response was received.
* The Kubelet was informed of the new secure connection details.

Run 'kubectl get nodes' on the control-plane to see this node join the cluster.

"""
_CONTROL_PLANE_JOINED = """
This node has joined the cluster and a new control plane instance was created:

* Certificate signing request was sent to apiserver and approval was received.
* The Kubelet was informed of the new secure connection details.
* Control plane label and taint were applied to the new node.
* The Kubernetes control plane instances scaled up.
{etcd}

To start administering your cluster from this node, you need to run the following as a regular user:

\tmkdir -p $HOME/.kube
\tsudo cp -i {admin_conf} $HOME/.kube/config
\tsudo chown $(id -u):$(id -g) $HOME/.kube/config

Run 'kubectl get nodes' to see this node join the cluster.

"""
