"""What each phase of ``join`` does: a few lines that call the part which knows how; ``would_…`` is a dry run's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import addresses
from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.node import dryrun, imagepull, paths
from slipway.node import kubeconfigs as kubeconfigfiles
from slipway.node.cluster import marking
from slipway.node.config import dynamicdefaults, load
from slipway.node.etcd import membership
from slipway.node.etcd import pod as etcd
from slipway.node.health import diagnosis
from slipway.node.health import wait as health
from slipway.node.join import tlsbootstrap
from slipway.node.join.cluster import Found, Imagined, context, local_api_ready
from slipway.node.join.options import JoinRun
from slipway.node.join.result import JoinResult
from slipway.node.kubelet import files, service
from slipway.node.pki import copycerts, specs, store
from slipway.node.preflight import check, machine, resume, workflows
from slipway.node.staticpods import components

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.context import NodeContext
    from slipway.node.join.options import JoinOptions
    from slipway.node.preflight.resume import Earlier


def prepare(options: JoinOptions, host: Host, progress: Progress) -> JoinRun:
    overrides = dict(options.overrides)
    if not options.discovers:
        if not host.exists(paths.ADMIN_CONF):
            raise OperatorError(
                f"File {paths.ADMIN_CONF} does not exists. "
                "Please use 'kubeadm join phase control-plane-prepare' subcommands to generate it."
            )
        overrides["discovery.file.kubeConfigPath"] = paths.ADMIN_CONF
    config, release = load.load_join(
        host, options.text, overrides, progress, source=options.source, skip_cri_detection=not options.detect_cri
    )
    if config.control_plane is not None:
        dynamicdefaults.verify_bind_address(config.control_plane.local_api_endpoint.advertise_address)
    here = dryrun.host_for(host, dryrun.JOIN_VARIABLE, "kubeadm-join-dryrun", progress) if config.dry_run else host
    way = Imagined() if config.dry_run else Found()
    return JoinRun(config=config, options=options, release=release, host=here, machine=host, progress=progress, way=way)


def is_control_plane(state: JoinRun) -> bool:
    return state.is_control_plane


def fetches_certificates(state: JoinRun) -> bool:
    return bool(certificate_key(state))


def certificate_key(state: JoinRun) -> str:
    return state.config.control_plane.certificate_key if state.config.control_plane is not None else ""


def stays_local(state: JoinRun) -> bool:
    """Whether the kubelet of a control plane talks to the API server beside it, so that etcd must be there before it."""
    ctx = context(state)
    return ctx.release.gate(ctx.config.cluster.feature_gates, "ControlPlaneKubeletLocalMode")


def joins_etcd_first(state: JoinRun) -> bool:
    return state.is_control_plane and stays_local(state)


def joins_etcd_last(state: JoinRun) -> bool:
    """With ControlPlaneKubeletLocalMode off, the kubelet gets its credentials before there is a member of etcd here."""
    return state.is_control_plane and not stays_local(state)


def preflight(state: JoinRun) -> None:
    release = _announce_preflight(state)
    ctx = _check_machine(state, release, _left_by_an_earlier_join(state))
    if state.is_control_plane:
        _announce_control_plane(state, ctx)
        _check_control_plane(state, ctx, resume.of_control_plane(ctx, state.machine, joining=True))
        imagepull.pull_in_preflight(ctx, _ignored(state))


def would_preflight(state: JoinRun) -> None:
    """A dry run goes on with nothing of an earlier one."""
    release = _announce_preflight(state)
    ctx = _check_machine(state, release, resume.NOTHING)
    if state.is_control_plane:
        _announce_control_plane(state, ctx)
        _check_control_plane(state, ctx, resume.NOTHING)
        state.progress.say("[preflight] Would pull the required images (like 'kubeadm config images pull')")


def _announce_preflight(state: JoinRun) -> Release:
    """The release by which the machine is judged until the cluster was asked."""
    state.progress.say("[preflight] Running pre-flight checks")
    check.run([machine.privileged_user()], state.machine, state.progress, _ignored(state))
    return state.way.expected_release(state)


def _check_machine(state: JoinRun, release: Release, left: Earlier) -> NodeContext:
    left.tell(state.progress, "join")
    check.run(workflows.join_checks(state.config, release, earlier=left), state.machine, state.progress, _ignored(state))
    ctx = context(state)
    if ctx.release != release:
        # What a release demands of the machine differs; the cluster has told only now which one it is.
        check.run(workflows.join_checks(state.config, ctx.release, earlier=left), state.machine, state.progress, _ignored(state))
    return ctx


def _announce_control_plane(state: JoinRun, ctx: NodeContext) -> None:
    _check_ready_for_control_plane(state, ctx)
    _make_keys_ahead(state)
    state.progress.say("[preflight] Running pre-flight checks before initializing the new control plane instance")


def _check_control_plane(state: JoinRun, ctx: NodeContext, left: Earlier) -> None:
    left.tell(state.progress, "join")
    certificates_follow = fetches_certificates(state)
    checks = workflows.init_checks(ctx.config, ctx.release, joining=True, certificates_follow=certificates_follow, earlier=left)
    check.run(checks, state.machine, state.progress, _ignored(state))


def _ignored(state: JoinRun) -> set[str]:
    return {name.lower() for name in state.config.node_registration.ignore_preflight_errors}


def _left_by_an_earlier_join(state: JoinRun) -> Earlier:
    """What is in the way can only be judged by the cluster that it leads to, so that is looked for first."""
    if not resume.join_traces(state.config, state.machine):
        return resume.NOTHING
    ca, _ = resume.credentials_of(state.way.bootstrap(state))
    return resume.of_join(state.config, state.machine, ca)


def download_certs(state: JoinRun) -> None:
    ctx, cluster = context(state), state.way.client(state)
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
    ctx = context(state)
    _make_keys_ahead(state)
    state.progress.say(f'[certs] Using certificateDir folder "{ctx.config.cluster.certificates_dir}"')
    store.ensure_for_join(ctx)


def kubeconfigs(state: JoinRun) -> None:
    ctx = context(state)
    state.progress.say("[kubeconfig] Generating kubeconfig files")
    kubeconfigfiles.announce_folder(ctx)
    kubeconfigfiles.ensure_for_join(ctx)


def control_plane(state: JoinRun) -> None:
    if not _starts_after_etcd(state):
        _write_control_plane(context(state), components.write)


def would_control_plane(state: JoinRun) -> None:
    _write_control_plane(context(state), components.would_write)


def _starts_after_etcd(state: JoinRun) -> bool:
    """Whether the static Pods are held back until etcd is here.

    An API server that is started before its etcd dials it in vain, and its pauses grow to several seconds; the phase alone
    writes the files at once, as does a join that leaves etcd out.
    """
    return (
        not state.options.only
        and "etcd-join" not in state.config.skip_phases
        and context(state).config.cluster.etcd.external is None
        and joins_etcd_first(state)
    )


def _write_control_plane(ctx: NodeContext, write: Callable[[NodeContext, str], None]) -> None:
    ctx.progress.say(f'[control-plane] Using manifest folder "{ctx.host.location(paths.MANIFESTS_DIR)}"')
    for component in components.COMPONENTS:
        write(ctx, component)


def check_etcd(state: JoinRun) -> None:
    ctx = context(state)
    if _has_own_etcd(state, ctx):
        state.progress.say("[check-etcd] Checking that the etcd cluster is healthy")
        membership.check_health(ctx, membership.connect(ctx, state.way.administrator(state)))


def would_check_etcd(state: JoinRun) -> None:
    if _has_own_etcd(state, context(state)):
        state.progress.say("[dryrun] Would check that the etcd cluster is healthy")


def _has_own_etcd(state: JoinRun, ctx: NodeContext) -> bool:
    external = ctx.config.cluster.etcd.external is not None
    if external:
        state.progress.say("[check-etcd] Skipping etcd check in external mode")
    return not external


def kubelet_start(state: JoinRun) -> None:
    ctx, found = context(state), state.way.bootstrap(state)
    worker = not state.is_control_plane
    tlsbootstrap.write_credentials(ctx, found, _kubelet_server(state))
    tlsbootstrap.write_authority(ctx, found, state.config.ca_cert_path)
    name = files.node_name_and_hostname(ctx)[0]
    if not tlsbootstrap.is_own_node(ctx, name, found):
        _refuse_ready_node(state, name)
    service.stop(ctx)
    files.write_joined_files(ctx, worker=worker)
    state.progress.say("[kubelet-start] Starting the kubelet")
    service.restart(ctx)
    if not stays_local(state):
        _wait_for_bootstrap(state, ctx)


def would_kubelet_start(state: JoinRun) -> None:
    ctx, found = context(state), state.way.bootstrap(state)
    worker = not state.is_control_plane
    tlsbootstrap.write_credentials(ctx, found, _kubelet_server(state))
    tlsbootstrap.would_write_authority(ctx, found)
    _refuse_ready_node(state, files.node_name_and_hostname(ctx)[0])
    state.progress.say("[kubelet-start] Would stop the kubelet")
    files.write_joined_files(ctx, worker=worker)
    state.progress.say("[kubelet-start] Would start the kubelet")
    dryrun.show_files(ctx, control_plane=not worker)


def _kubelet_server(state: JoinRun) -> str:
    """The API server that the kubelet asks for its certificate; empty for the cluster's."""
    if not state.is_control_plane or not stays_local(state):
        return ""
    return addresses.local_api_url(context(state).config.local_api_endpoint)


def etcd_join(state: JoinRun) -> None:
    ctx = context(state)
    if not _adds_member(state, ctx):
        return
    skipped = {"control-plane-prepare", "control-plane-prepare/control-plane"} & {*state.config.skip_phases}
    held = not skipped and _starts_after_etcd(state)
    membership.join(ctx, state.way.administrator(state))
    if held:
        _write_control_plane(ctx, components.write)


def would_etcd_join(state: JoinRun) -> None:
    ctx = context(state)
    if not _adds_member(state, ctx):
        return
    local = ctx.config.cluster.etcd.local
    assert local is not None
    state.progress.say(f'[control-plane-join] Would ensure that "{local.data_dir}" directory is present')
    state.progress.say(f"[etcd] Would add etcd member: {etcd.peer_url(ctx.config.local_api_endpoint)}")
    etcd.would_write_joined(ctx)
    dryrun.show_etcd(ctx)
    state.progress.say("[etcd] Would wait for the new etcd member to join the cluster")


def _adds_member(state: JoinRun, ctx: NodeContext) -> bool:
    stacked = ctx.config.cluster.etcd.local is not None and ctx.config.cluster.etcd.external is None
    if not stacked:
        state.progress.say("[control-plane-join] Using external etcd - no local stacked instance added")
    return stacked


def kubelet_wait_bootstrap(state: JoinRun) -> None:
    _wait_for_bootstrap(state, context(state))


def would_kubelet_wait_bootstrap(state: JoinRun) -> None:
    ctx = context(state)
    state.progress.say("[kubelet-wait] Would wait for the kubelet to be bootstrapped")
    marking.annotate_cri_socket(ctx, state.way.client(state))


def mark_control_plane(state: JoinRun) -> None:
    ctx = context(state)
    try:
        marking.mark(ctx, state.way.administrator(state))
    except OperatorError:
        # Mostly the Node is not there, and then it is the kubelet that can say why.
        state.progress.show(f"\n{diagnosis.explain(ctx, ('kubelet',))}\n\n")
        raise


def would_mark_control_plane(state: JoinRun) -> None:
    name = context(state).config.node_registration.name
    state.progress.say(f"[control-plane-join] Would mark node {name} as a control-plane")


def wait_control_plane(state: JoinRun) -> None:
    ctx = context(state)
    if _waits(ctx):
        timeout = waiting.seconds(ctx.config.timeouts.control_plane_component_health_check, 240)
        health.wait_for_components(ctx, health.CONTROL_PLANE, timeout)


def would_wait_control_plane(state: JoinRun) -> None:
    """A dry run does not wait; but a real one could not either without what earlier phases wrote."""
    _waits(context(state))


def _waits(ctx: NodeContext) -> bool:
    """Whether the release waits, for which everything has to be there."""
    if not ctx.release.gate(ctx.config.cluster.feature_gates, "WaitForAllControlPlaneComponents"):
        return False
    kubeconfigfiles.require(ctx.host, paths.ADMIN_CONF)
    for component in components.COMPONENTS:
        path = components.path_of(component)
        if not ctx.host.exists(path):
            raise OperatorError(f"failed to read manifest for {component}: no such file: {ctx.host.location(path)}")
    return True


def _wait_for_bootstrap(state: JoinRun, ctx: NodeContext) -> None:
    """Until the kubelet runs with credentials of its own; those of the bootstrap are of no use then, whatever became of it."""
    try:
        tlsbootstrap.wait(ctx, local_api_ready(state) if joins_etcd_first(state) else None)
    finally:
        ctx.host.remove(paths.BOOTSTRAP_KUBELET_CONF)
    if marking.keeps_cri_socket(ctx):
        marking.annotate_cri_socket(ctx, state.way.node_client(state))


def _make_keys_ahead(state: JoinRun) -> None:
    """Keys take longer than the rest of what a control plane writes, so they are made on threads meanwhile."""
    if not state.keys_expected:
        state.keys_expected = True
        ctx = context(state)
        leaves = [spec.name for spec in specs.required(ctx.config) if spec.ca]
        store.generate_ahead(ctx, leaves, more=kubeconfigfiles.missing_for_join(ctx))


def _check_ready_for_control_plane(state: JoinRun, ctx: NodeContext) -> None:
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
    node = state.way.client(state).get("v1", "Node", name) or {}
    conditions = (node.get("status") or {}).get("conditions") or []
    if any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions):
        raise OperatorError(
            f'a Node with name "{name}" and status "Ready" already exists in the cluster. '
            "You must delete the existing Node or change the name of this new joining Node"
        )


def farewell(state: JoinRun) -> str:
    if not state.is_control_plane:
        return _WORKER_JOINED
    external = context(state).config.cluster.etcd.external is not None
    etcd_line = "" if external else "* A new etcd member was added to the local/stacked etcd cluster."
    return _CONTROL_PLANE_JOINED.format(etcd=etcd_line, admin_conf=paths.ADMIN_CONF)


def result(state: JoinRun, seconds: Mapping[str, float]) -> JoinResult:
    return JoinResult(
        node_name=state.config.node_registration.name,
        kubernetes_version=state.ctx.config.cluster.kubernetes_version if state.ctx is not None else f"v{state.release.version}",
        endpoint=state.way.server(),
        is_control_plane=state.is_control_plane,
        seconds=dict(seconds),
    )


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
