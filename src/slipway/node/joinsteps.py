"""What each phase of ``join`` does: a few lines that call the part which knows how.

Parts are imported when their phase runs, so that help and completion can read the tree of phases without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.internal import JoinConfiguration
    from slipway.api.releases import Release
    from slipway.node.cluster import Cluster
    from slipway.node.context import NodeContext
    from slipway.node.host import Host
    from slipway.node.kubeconfig import Document
    from slipway.node.progress import Progress


class JoinOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags say about the configuration, by the names of its fields."""
    only: str = ""
    """The phase to run alone, such as ``control-plane-prepare/certs``; empty for all."""
    detect_cri: bool = True
    discovers: bool = True
    """Whether the command has flags for discovery; a phase without them works with the admin.conf of earlier phases."""


class JoinRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``join`` share; the last three are filled in when a phase first needs them."""

    config: JoinConfiguration
    options: JoinOptions
    release: Release
    host: Host
    machine: Host
    """The host as it is; in a dry run ``host`` has the files of the run, too."""
    progress: Progress
    cluster: Cluster | None = None
    bootstrap: Document | None = None
    ctx: NodeContext | None = None


def is_control_plane(state: JoinRun) -> bool:
    return state.config.control_plane is not None


def fetches_certificates(state: JoinRun) -> bool:
    return bool(certificate_key(state))


def certificate_key(state: JoinRun) -> str:
    return state.config.control_plane.certificate_key if state.config.control_plane is not None else ""


def preflight(state: JoinRun) -> None:
    from slipway.node.preflight import check, machine, workflows

    ignored = {name.lower() for name in state.config.node_registration.ignore_preflight_errors}
    state.progress.say("[preflight] Running pre-flight checks")
    check.run([machine.privileged_user()], state.machine, state.progress, ignored)
    check.run(workflows.join_checks(state.config, state.release), state.machine, state.progress, ignored)
    ctx = context(state)
    if not is_control_plane(state):
        return
    _check_ready_for_control_plane(state, ctx)
    state.progress.say("[preflight] Running pre-flight checks before initializing the new control plane instance")
    checks = workflows.init_checks(ctx.config, ctx.release, joining=True, certificates_follow=fetches_certificates(state))
    check.run(checks, state.machine, state.progress, ignored)
    state.progress.say("[preflight] Would pull the required images (like 'kubeadm config images pull')")


def download_certs(state: JoinRun) -> None:
    from slipway.node import copycerts

    ctx, cluster = context(state), _cluster(state)
    name, namespace = copycerts.SECRET_NAME, copycerts.NAMESPACE
    state.progress.say(f'[download-certs] Downloading the certificates in Secret "{name}" in the "{namespace}" Namespace')
    secret = cluster.get("v1", "Secret", name, namespace)
    if secret is None:
        raise OperatorError(
            f'Secret "{name}" was not found in the "{namespace}" Namespace. This Secret might have expired. '
            "Please, run `kubeadm init phase upload-certs --upload-certs` on a control plane to generate a new one"
        )
    copycerts.save(ctx, secret, certificate_key(state))


def certificates(state: JoinRun) -> None:
    from slipway.node import pki

    ctx = context(state)
    state.progress.say(f'[certs] Using certificateDir folder "{ctx.config.cluster.certificates_dir}"')
    pki.ensure_for_join(ctx)


def kubeconfigs(state: JoinRun) -> None:
    from slipway.node import kubeconfig

    ctx = context(state)
    state.progress.say("[kubeconfig] Generating kubeconfig files")
    kubeconfig.announce_folder(ctx)
    kubeconfig.ensure_for_join(ctx)


def control_plane(state: JoinRun) -> None:
    from slipway.node import staticpods

    ctx = context(state)
    state.progress.say(f'[control-plane] Using manifest folder "{ctx.host.location(paths.MANIFESTS_DIR)}"')
    for component in staticpods.COMPONENTS:
        staticpods.write(ctx, component)


def check_etcd(state: JoinRun) -> None:
    if context(state).config.cluster.etcd.external is not None:
        state.progress.say("[check-etcd] Skipping etcd check in external mode")
    else:
        state.progress.say("[dryrun] Would check that the etcd cluster is healthy")


def kubelet_start(state: JoinRun) -> None:
    from slipway.node import discovery, dryrun, endpoints, kubeconfig, kubelet

    ctx = context(state)
    bootstrap = _bootstrap(state)
    local_mode = ctx.release.gate(ctx.config.cluster.feature_gates, "ControlPlaneKubeletLocalMode")
    # The kubelet of a control plane talks to the API server beside it.
    server = endpoints.local_api_url(ctx.config.local_api_endpoint) if is_control_plane(state) and local_mode else ""
    leading = discovery.leading_to(bootstrap, ctx.config.cluster.cluster_name, server)
    ctx.host.write(paths.BOOTSTRAP_KUBELET_CONF, kubeconfig.text(leading, ctx.release).encode())
    ca_path = f"{ctx.config.cluster.certificates_dir}/ca.crt" if ctx.host.dry_run else state.config.ca_cert_path
    if not ctx.host.exists(ca_path):
        ctx.host.write(ca_path, discovery.certificate_authority(bootstrap), 0o644)
    _refuse_ready_node(state, kubelet.node_name_and_hostname(ctx)[0])
    state.progress.say("[kubelet-start] Would stop the kubelet")
    kubelet.write_joined_files(ctx, worker=not is_control_plane(state))
    state.progress.say("[kubelet-start] Would start the kubelet")
    dryrun.show_files(ctx, control_plane=is_control_plane(state))


def etcd_join(state: JoinRun) -> None:
    from slipway.node import dryrun, etcd

    ctx = context(state)
    local = ctx.config.cluster.etcd.local
    if local is None or ctx.config.cluster.etcd.external is not None:
        state.progress.say("[control-plane-join] Using external etcd - no local stacked instance added")
        return
    state.progress.say(f'[control-plane-join] Would ensure that "{local.data_dir}" directory is present')
    state.progress.say(f"[etcd] Would add etcd member: {etcd.peer_url(ctx.config.local_api_endpoint)}")
    etcd.write_joined(ctx, ())
    dryrun.show_etcd(ctx)
    state.progress.say("[etcd] Would wait for the new etcd member to join the cluster")


def kubelet_wait_bootstrap(state: JoinRun) -> None:
    from slipway.node import markcontrolplane

    ctx = context(state)
    state.progress.say("[kubelet-wait] Would wait for the kubelet to be bootstrapped")
    markcontrolplane.annotate_cri_socket(ctx, _cluster(state))


def mark_control_plane(state: JoinRun) -> None:
    name = context(state).config.node_registration.name
    state.progress.say(f"[control-plane-join] Would mark node {name} as a control-plane")


def wait_control_plane(state: JoinRun) -> None:
    """A dry run does not wait; but a real one could not either without what earlier phases wrote."""
    from slipway.node import joincommand, staticpods

    ctx = context(state)
    joincommand.cluster_of(ctx, paths.ADMIN_CONF)
    for component in staticpods.COMPONENTS:
        path = staticpods.path_of(component)
        if not ctx.host.exists(path):
            raise OperatorError(f"failed to read manifest for {component}: no such file: {ctx.host.location(path)}")


def context(state: JoinRun) -> NodeContext:
    """The configuration of the cluster and of this node together, read from the cluster once."""
    from slipway.node import clusterconfig
    from slipway.node.context import NodeContext

    if state.ctx is None:
        cluster, config = _cluster(state), state.config
        _bootstrap(state)
        fetched = clusterconfig.read(cluster, state.release, state.progress, "preflight")
        fetched.node_registration = config.node_registration
        if config.control_plane is not None:
            fetched.local_api_endpoint = config.control_plane.local_api_endpoint
        clusterconfig.complete(fetched, state.release, state.machine, state.progress)
        fetched.timeouts, fetched.patches = config.timeouts, config.patches
        state.ctx = NodeContext(config=fetched, release=state.release, host=state.host, progress=state.progress)
    return state.ctx


def _bootstrap(state: JoinRun) -> Document:
    """The kubeconfig that discovery found; a control plane that has an admin.conf already needs none."""
    from slipway.node import discovery, kubeconfig

    if state.bootstrap is None:
        if is_control_plane(state) and state.machine.exists(paths.ADMIN_CONF):
            state.bootstrap = kubeconfig.load(state.machine.read(paths.ADMIN_CONF), paths.ADMIN_CONF)
        else:
            state.bootstrap = discovery.discover(state.config.discovery, _cluster(state), state.machine, check_pins=False)
    return state.bootstrap


def _cluster(state: JoinRun) -> Cluster:
    from slipway.node import imagined
    from slipway.node.cluster import DryRunCluster

    if state.cluster is None:
        if not state.host.dry_run:
            raise not_yet("join")
        token = state.config.discovery.bootstrap_token.token if state.config.discovery.bootstrap_token is not None else ""
        state.cluster = DryRunCluster(state.progress, state.release, imagined=imagined.objects(state.release, token), expects_cluster=True)
    return state.cluster


def _check_ready_for_control_plane(state: JoinRun, ctx: NodeContext) -> None:
    from slipway.node import pki

    problems = []
    if not ctx.config.cluster.control_plane_endpoint:
        problems.append("unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint address")
    elif not fetches_certificates(state):
        problems = pki.shared_problems(ctx)
    if problems:
        raise OperatorError(
            "\nOne or more conditions for hosting a new control plane instance is not satisfied.\n\n"
            + "\n".join(problems)
            + "\n\nPlease ensure that:\n* The cluster has a stable controlPlaneEndpoint address.\n"
            "* The certificates that must be shared among control plane instances are provided.\n\n"
        )


def _refuse_ready_node(state: JoinRun, name: str) -> None:
    """Two nodes of one name would take each other's place."""
    node = _cluster(state).get("v1", "Node", name) or {}
    conditions = (node.get("status") or {}).get("conditions") or []
    if any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions):
        raise OperatorError(
            f'a Node with name "{name}" and status "Ready" already exists in the cluster. '
            "You must delete the existing Node or change the name of this new joining Node"
        )


def not_yet(what: str) -> OperatorError:
    return OperatorError(f"{what} needs a live cluster, which this version cannot talk to yet: add --dry-run")
