"""What each phase of ``join`` does: a few lines that call the part which knows how.

Parts are imported when their phase runs, so that help and completion can read the tree of phases without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths
from slipway.node.join.cluster import administrator, bootstrap, client, context, expected_release, local_api_ready, node_client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.internal import JoinConfiguration
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.kube.kubeconfig import Document
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext
    from slipway.node.join.cluster import EarlyLook
    from slipway.node.preflight.resume import Earlier


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
    """What the phases of one ``join`` share; from ``early`` on it is filled in when a phase first needs it."""

    config: JoinConfiguration
    options: JoinOptions
    release: Release
    host: Host
    machine: Host
    """The host as it is; in a dry run ``host`` has the files of the run, too."""
    progress: Progress
    early: EarlyLook | None = None
    cluster: Cluster | None = None
    admin: Cluster | None = None
    bootstrap: Document | None = None
    ctx: NodeContext | None = None
    keys_expected: bool = False


def is_control_plane(state: JoinRun) -> bool:
    return state.config.control_plane is not None


def fetches_certificates(state: JoinRun) -> bool:
    return bool(certificate_key(state))


def certificate_key(state: JoinRun) -> str:
    return state.config.control_plane.certificate_key if state.config.control_plane is not None else ""


def stays_local(state: JoinRun) -> bool:
    """Whether the kubelet of a control plane talks to the API server beside it, so that etcd must be there before it."""
    ctx = context(state)
    return ctx.release.gate(ctx.config.cluster.feature_gates, "ControlPlaneKubeletLocalMode")


def joins_etcd_first(state: JoinRun) -> bool:
    return is_control_plane(state) and stays_local(state)


def joins_etcd_last(state: JoinRun) -> bool:
    """With ControlPlaneKubeletLocalMode off, the kubelet gets its credentials before there is a member of etcd here."""
    return is_control_plane(state) and not stays_local(state)


def preflight(state: JoinRun) -> None:
    from slipway.node import imagepull
    from slipway.node.preflight import check, machine, resume, workflows

    ignored = {name.lower() for name in state.config.node_registration.ignore_preflight_errors}
    state.progress.say("[preflight] Running pre-flight checks")
    check.run([machine.privileged_user()], state.machine, state.progress, ignored)
    release = expected_release(state)
    left = _left_by_an_earlier_join(state)
    left.tell(state.progress, "join")
    check.run(workflows.join_checks(state.config, release, earlier=left), state.machine, state.progress, ignored)
    ctx = context(state)
    if ctx.release != release:
        # What a release demands of the machine differs; the cluster has told only now which one it is.
        check.run(workflows.join_checks(state.config, ctx.release, earlier=left), state.machine, state.progress, ignored)
    if not is_control_plane(state):
        return
    _check_ready_for_control_plane(state, ctx)
    _make_keys_ahead(state)
    state.progress.say("[preflight] Running pre-flight checks before initializing the new control plane instance")
    left = resume.of_control_plane(ctx, state.machine, joining=True)
    left.tell(state.progress, "join")
    certificates_follow = fetches_certificates(state)
    checks = workflows.init_checks(ctx.config, ctx.release, joining=True, certificates_follow=certificates_follow, earlier=left)
    check.run(checks, state.machine, state.progress, ignored)
    if ctx.host.dry_run:
        state.progress.say("[preflight] Would pull the required images (like 'kubeadm config images pull')")
        return
    imagepull.pull_in_preflight(ctx, ignored)


def _left_by_an_earlier_join(state: JoinRun) -> Earlier:
    """What is in the way can only be judged by the cluster that it leads to, so that is looked for first."""
    from slipway.node.preflight import resume

    if state.host.dry_run or not resume.join_traces(state.config, state.machine):
        return resume.NOTHING
    ca, _ = resume.credentials_of(bootstrap(state))
    return resume.of_join(state.config, state.machine, ca)


def download_certs(state: JoinRun) -> None:
    from slipway.node.pki import copycerts

    ctx, cluster = context(state), client(state)
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
    from slipway.node.pki import store

    ctx = context(state)
    _make_keys_ahead(state)
    state.progress.say(f'[certs] Using certificateDir folder "{ctx.config.cluster.certificates_dir}"')
    store.ensure_for_join(ctx)


def kubeconfigs(state: JoinRun) -> None:
    from slipway.node import kubeconfigs as kubeconfig

    ctx = context(state)
    state.progress.say("[kubeconfig] Generating kubeconfig files")
    kubeconfig.announce_folder(ctx)
    kubeconfig.ensure_for_join(ctx)


def control_plane(state: JoinRun) -> None:
    if not _starts_after_etcd(state):
        _write_control_plane(context(state))


def _starts_after_etcd(state: JoinRun) -> bool:
    """Whether the static Pods are held back until etcd is here.

    An API server that is started before its etcd dials it in vain, and its pauses grow to several seconds; the phase alone
    writes the files at once, as does a join that leaves etcd out.
    """
    return (
        not state.host.dry_run
        and not state.options.only
        and "etcd-join" not in state.config.skip_phases
        and context(state).config.cluster.etcd.external is None
        and joins_etcd_first(state)
    )


def _write_control_plane(ctx: NodeContext) -> None:
    from slipway.node.staticpods import components

    ctx.progress.say(f'[control-plane] Using manifest folder "{ctx.host.location(paths.MANIFESTS_DIR)}"')
    for component in components.COMPONENTS:
        components.write(ctx, component)


def check_etcd(state: JoinRun) -> None:
    ctx = context(state)
    if ctx.config.cluster.etcd.external is not None:
        state.progress.say("[check-etcd] Skipping etcd check in external mode")
        return
    if ctx.host.dry_run:
        state.progress.say("[dryrun] Would check that the etcd cluster is healthy")
        return
    from slipway.node.etcd import membership

    state.progress.say("[check-etcd] Checking that the etcd cluster is healthy")
    membership.check_health(ctx, membership.connect(ctx, administrator(state)))


def kubelet_start(state: JoinRun) -> None:
    from slipway.node import dryrun
    from slipway.node.join import tlsbootstrap
    from slipway.node.kubelet import files, service
    from slipway.workload import endpoints

    ctx = context(state)
    found = bootstrap(state)
    worker = not is_control_plane(state)
    server = "" if worker or not stays_local(state) else endpoints.local_api_url(ctx.config.local_api_endpoint)
    tlsbootstrap.write_credentials(ctx, found, server)
    tlsbootstrap.write_authority(ctx, found, state.config.ca_cert_path)
    name = files.node_name_and_hostname(ctx)[0]
    if ctx.host.dry_run:
        _refuse_ready_node(state, name)
        state.progress.say("[kubelet-start] Would stop the kubelet")
        files.write_joined_files(ctx, worker=worker)
        state.progress.say("[kubelet-start] Would start the kubelet")
        dryrun.show_files(ctx, control_plane=not worker)
        return
    if not tlsbootstrap.is_own_node(ctx, name, found):
        _refuse_ready_node(state, name)
    service.stop(ctx)
    files.write_joined_files(ctx, worker=worker)
    state.progress.say("[kubelet-start] Starting the kubelet")
    service.restart(ctx)
    if not stays_local(state):
        _wait_for_bootstrap(state, ctx)


def etcd_join(state: JoinRun) -> None:
    from slipway.node import dryrun
    from slipway.node.etcd import pod

    ctx = context(state)
    local = ctx.config.cluster.etcd.local
    if local is None or ctx.config.cluster.etcd.external is not None:
        state.progress.say("[control-plane-join] Using external etcd - no local stacked instance added")
        return
    if not ctx.host.dry_run:
        from slipway.node.etcd import membership

        skipped = {"control-plane-prepare", "control-plane-prepare/control-plane"} & {*state.config.skip_phases}
        held = not skipped and _starts_after_etcd(state)
        membership.join(ctx, administrator(state))
        if held:
            _write_control_plane(ctx)
        return
    state.progress.say(f'[control-plane-join] Would ensure that "{local.data_dir}" directory is present')
    state.progress.say(f"[etcd] Would add etcd member: {pod.peer_url(ctx.config.local_api_endpoint)}")
    pod.write_joined(ctx, ())
    dryrun.show_etcd(ctx)
    state.progress.say("[etcd] Would wait for the new etcd member to join the cluster")


def kubelet_wait_bootstrap(state: JoinRun) -> None:
    from slipway.node.cluster import marking

    ctx = context(state)
    if not ctx.host.dry_run:
        _wait_for_bootstrap(state, ctx)
        return
    state.progress.say("[kubelet-wait] Would wait for the kubelet to be bootstrapped")
    marking.annotate_cri_socket(ctx, client(state))


def mark_control_plane(state: JoinRun) -> None:
    from slipway.node.cluster import marking

    ctx = context(state)
    if ctx.host.dry_run:
        state.progress.say(f"[control-plane-join] Would mark node {ctx.config.node_registration.name} as a control-plane")
        return
    try:
        marking.mark(ctx, administrator(state))
    except OperatorError:
        # Mostly the Node is not there, and then it is the kubelet that can say why.
        from slipway.node.health import diagnosis

        state.progress.show(f"\n{diagnosis.explain(ctx, ('kubelet',))}\n\n")
        raise


def wait_control_plane(state: JoinRun) -> None:
    """A dry run does not wait; but a real one could not either without what earlier phases wrote."""
    from slipway.host import waiting
    from slipway.node.health import wait as health
    from slipway.node.init import joincommand
    from slipway.node.staticpods import components

    ctx = context(state)
    if not ctx.release.gate(ctx.config.cluster.feature_gates, "WaitForAllControlPlaneComponents"):
        return
    joincommand.cluster_of(ctx, paths.ADMIN_CONF)
    for component in components.COMPONENTS:
        path = components.path_of(component)
        if not ctx.host.exists(path):
            raise OperatorError(f"failed to read manifest for {component}: no such file: {ctx.host.location(path)}")
    if not ctx.host.dry_run:
        timeout = waiting.seconds(ctx.config.timeouts.control_plane_component_health_check, 240)
        health.wait_for_components(ctx, health.CONTROL_PLANE, timeout)


def _wait_for_bootstrap(state: JoinRun, ctx: NodeContext) -> None:
    """Until the kubelet runs with credentials of its own; those of the bootstrap are of no use then, whatever became of it."""
    from slipway.node.cluster import marking
    from slipway.node.join import tlsbootstrap

    try:
        tlsbootstrap.wait(ctx, local_api_ready(state) if joins_etcd_first(state) else None)
    finally:
        ctx.host.remove(paths.BOOTSTRAP_KUBELET_CONF)
    if marking.keeps_cri_socket(ctx):
        marking.annotate_cri_socket(ctx, node_client(state))


def _make_keys_ahead(state: JoinRun) -> None:
    """Keys take longer than the rest of what a control plane writes, so they are made on threads meanwhile."""
    from slipway.node import kubeconfigs as kubeconfig
    from slipway.node.pki import specs, store

    if not state.keys_expected:
        state.keys_expected = True
        ctx = context(state)
        leaves = [spec.name for spec in specs.required(ctx.config) if spec.ca]
        store.generate_ahead(ctx, leaves, more=kubeconfig.missing_for_join(ctx))


def _check_ready_for_control_plane(state: JoinRun, ctx: NodeContext) -> None:
    from slipway.node.pki import store

    problems = []
    if not ctx.config.cluster.control_plane_endpoint:
        problems.append("unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint address")
    elif not fetches_certificates(state):
        problems = store.shared_problems(ctx)
    if problems:
        raise OperatorError(
            "\nOne or more conditions for hosting a new control plane instance is not satisfied.\n\n"
            + "\n".join(problems)
            + "\n\nPlease ensure that:\n* The cluster has a stable controlPlaneEndpoint address.\n"
            "* The certificates that must be shared among control plane instances are provided.\n\n"
        )


def _refuse_ready_node(state: JoinRun, name: str) -> None:
    """Two nodes of one name would take each other's place."""
    node = client(state).get("v1", "Node", name) or {}
    conditions = (node.get("status") or {}).get("conditions") or []
    if any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions):
        raise OperatorError(
            f'a Node with name "{name}" and status "Ready" already exists in the cluster. '
            "You must delete the existing Node or change the name of this new joining Node"
        )
