"""What each phase of ``init`` does: a few lines that call the part which knows how.

Parts are imported when their phase runs, so that help and completion can read the tree of phases without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.host.interface import Host
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext


class InitOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags say about the configuration, by the names of its fields."""
    only: str = ""
    """The phase to run alone, such as ``certs/ca``; empty for all."""
    detect_cri: bool = True
    kubeconfig_dir: str = paths.KUBERNETES_DIR
    kubeconfig: str = paths.ADMIN_CONF
    """With what phases that talk to the cluster reach it."""
    upload_certs: bool = False
    skip_token_print: bool = False
    skip_certificate_key_print: bool = False
    print_manifest: bool = False


class InitRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``init`` share."""

    ctx: NodeContext
    options: InitOptions
    machine: Host
    """The host as it is; in a dry run the context's one has the files of the run, too."""
    skip_phases: tuple[str, ...] = ()
    cluster: Cluster | None = None


def preflight(state: InitRun) -> None:
    from slipway.node.preflight import check, machine, resume, workflows

    ctx = state.ctx
    ignored = {name.lower() for name in ctx.config.node_registration.ignore_preflight_errors}
    ctx.progress.say("[preflight] Running pre-flight checks")
    check.run([machine.privileged_user()], state.machine, ctx.progress, ignored)
    left = resume.of_control_plane(ctx, state.machine)
    left.tell(ctx.progress, "init")
    check.run(workflows.init_checks(ctx.config, ctx.release, earlier=left), state.machine, ctx.progress, ignored)
    if ctx.host.dry_run:
        ctx.progress.say("[preflight] Would pull the required images (like 'kubeadm config images pull')")
        return
    from slipway.node import imagepull

    imagepull.pull_in_preflight(ctx, ignored)


def certificates(state: InitRun) -> None:
    from slipway.node.pki import store

    store.announce_folder(state.ctx)


def certificate(name: str, state: InitRun) -> None:
    from slipway.node.pki import store

    store.ensure_certificate(state.ctx, name)


def service_account_key(state: InitRun) -> None:
    from slipway.node.pki import store

    store.ensure_service_account_key(state.ctx)


def kubeconfigs(state: InitRun) -> None:
    from slipway.node import kubeconfigs as files

    files.announce_folder(state.ctx, state.options.kubeconfig_dir)


def kubeconfig(name: str, state: InitRun) -> None:
    from slipway.node import kubeconfigs as files

    files.ensure(state.ctx, name, state.options.kubeconfig_dir)


def local_etcd(state: InitRun) -> None:
    from slipway.node import dryrun
    from slipway.node.etcd import pod

    if state.ctx.config.cluster.etcd.external is None:
        pod.write_local(state.ctx)
        dryrun.show_etcd(state.ctx)


def control_plane(state: InitRun) -> None:
    state.ctx.progress.say(f'[control-plane] Using manifest folder "{state.ctx.host.location(paths.MANIFESTS_DIR)}"')


def component(name: str, state: InitRun) -> None:
    from slipway.node.staticpods import components

    components.write(state.ctx, name)


def kubelet_start(state: InitRun) -> None:
    from slipway.node.kubelet import files as kubelet
    from slipway.node.kubelet import service

    ctx = state.ctx
    if ctx.host.dry_run:
        kubelet.write_files(ctx)
        return
    running = service.is_active(ctx)
    if not running:
        # One that is started over and over, for want of its files, shall not find half of them.
        service.stop(ctx)
    kubelet.write_files(ctx)
    if running and service.runs_with_its_files(ctx):
        ctx.progress.say("[kubelet-start] The kubelet is running with these files already")
        return
    ctx.progress.say("[kubelet-start] Starting the kubelet")
    service.restart(ctx)


def wait_control_plane(state: InitRun) -> None:
    from slipway.node import dryrun
    from slipway.node.health import wait as health
    from slipway.workload.configmaps import KUBELET_GROUP

    ctx = state.ctx
    if ctx.host.dry_run:
        dryrun.show_files(ctx, control_plane=True)
        _cluster(state)
    folder = ctx.host.location(paths.MANIFESTS_DIR)
    ctx.progress.say(f'[wait-control-plane] Waiting for the kubelet to boot up the control plane as static Pods from directory "{folder}"')
    if not ctx.host.dry_run:
        health.wait_for_control_plane(ctx)
        return
    dryrun.say_kubelet_wait(ctx.progress, ctx.config.cluster.component_configs[KUBELET_GROUP])
    if not ctx.release.gate(ctx.config.cluster.feature_gates, "WaitForAllControlPlaneComponents"):
        ctx.progress.say("[dryrun] Would wait for the API Server's /healthz endpoint to return 'ok'")


def upload_kubeadm_config(state: InitRun) -> None:
    from slipway.workload import configmaps

    cluster = _cluster(state)
    state.ctx.progress.say('[upload-config] Storing the configuration used in ConfigMap "kubeadm-config" in the "kube-system" Namespace')
    cluster.apply_all(configmaps.kubeadm_config(state.ctx.config.cluster, state.ctx.release))


def upload_kubelet_config(state: InitRun) -> None:
    from slipway.node.cluster import marking
    from slipway.workload import configmaps

    cluster = _cluster(state)
    state.ctx.progress.say(
        '[kubelet] Creating a ConfigMap "kubelet-config" in namespace kube-system with the configuration for the kubelets in the cluster'
    )
    cluster.apply_all(configmaps.kubelet_config(state.ctx.config.cluster, state.ctx.release))
    marking.annotate_cri_socket(state.ctx, cluster)


def upload_certs(state: InitRun) -> None:
    from slipway.node.pki import copycerts

    ctx = state.ctx
    if not state.options.upload_certs:
        ctx.progress.say("[upload-certs] Skipping phase. Please see --upload-certs")
        return
    cluster = _cluster(state)
    ctx.config.certificate_key = ctx.config.certificate_key or copycerts.new_certificate_key()
    copycerts.upload(ctx, cluster, ctx.config.certificate_key)
    if not state.options.skip_certificate_key_print:
        ctx.progress.say(f"[upload-certs] Using certificate key:\n{ctx.config.certificate_key}")


def mark_control_plane(state: InitRun) -> None:
    from slipway.node.cluster import marking

    marking.mark(state.ctx, _cluster(state))


def bootstrap_token(state: InitRun) -> None:
    from slipway.credentials import tokens
    from slipway.kube import kubeconfig
    from slipway.node.init import joincommand
    from slipway.workload import clusterinfo, roles

    ctx, cluster = state.ctx, _cluster(state)
    server, ca = joincommand.cluster_of(ctx, _kubeconfig(state))
    texts = [token.token for token in ctx.config.bootstrap_tokens]
    if texts and not state.options.skip_token_print:
        shown = f"token: {texts[0]}" if len(texts) == 1 else f"tokens: [{' '.join(texts)}]"
        ctx.progress.say(f"[bootstrap-token] Using {shown}")
    ctx.progress.say("[bootstrap-token] Configuring bootstrap tokens, cluster-info ConfigMap, RBAC Roles")
    # What a live cluster gets at once is shown in a dry run in the order of the announcements.
    waiting: list[Manifest] = []
    write = cluster.apply if ctx.host.dry_run else waiting.append
    for token in ctx.config.bootstrap_tokens:
        if ctx.host.dry_run:
            cluster.get("v1", "Secret", tokens.secret_name(token.token_id), tokens.NAMESPACE)
        write(tokens.secret(token, ctx.host.now()))
    for words, manifests in roles.for_joining_nodes(ctx.release):
        ctx.progress.say(f"[bootstrap-token] Configured RBAC rules to {words}")
        for manifest in manifests:
            write(manifest)
    ctx.progress.say('[bootstrap-token] Creating the "cluster-info" ConfigMap in the "kube-public" namespace')
    for manifest in (
        clusterinfo.config_map(clusterinfo.kubeconfig(server, kubeconfig.encoded(ca), ctx.release)),
        *clusterinfo.access(),
    ):
        write(manifest)
    cluster.apply_all(waiting)


def enable_client_cert_rotation(state: InitRun) -> None:
    from slipway.node.kubelet import files

    files.enable_client_cert_rotation(state.ctx)


def addon(name: str, state: InitRun) -> None:
    from slipway.api.machinery import goyaml
    from slipway.node import addons

    if not state.options.print_manifest:
        addons.install(name, state.ctx, _cluster(state))
        return
    for manifest in addons.manifests(name, state.ctx):
        state.ctx.progress.show(f"---\n{goyaml.dump(manifest)}")


def show_join_command(state: InitRun) -> None:
    from slipway.node.init import joincommand

    ctx, options = state.ctx, state.options
    server, ca = joincommand.cluster_of(ctx, _kubeconfig(state))
    pins = joincommand.pins_of(ca, _kubeconfig(state))
    for token in ctx.config.bootstrap_tokens:
        join_control_plane = joincommand.control_plane(
            server,
            pins,
            token.token,
            ctx.config.certificate_key,
            show_token=not options.skip_token_print,
            show_certificate_key=not options.skip_certificate_key_print,
        )
        ctx.progress.show(
            joincommand.farewell(
                admin_conf=ctx.host.location(paths.ADMIN_CONF),
                join_worker=joincommand.worker(server, pins, token.token, show_token=not options.skip_token_print),
                join_control_plane=join_control_plane if ctx.config.cluster.control_plane_endpoint else "",
                uploaded=options.upload_certs,
            )
        )


def _cluster(state: InitRun) -> Cluster:
    """The API server, reached with admin.conf, which therefore must be there."""
    from slipway.node.cluster.dryrun import DryRunCluster
    from slipway.node.init import admin, joincommand

    if state.cluster is None:
        if state.ctx.host.dry_run:
            joincommand.cluster_of(state.ctx, paths.ADMIN_CONF)
            state.cluster = DryRunCluster(state.ctx.progress, state.ctx.release)
        else:
            state.cluster = admin.connect(state.ctx, _kubeconfig(state))
    return state.cluster


def _kubeconfig(state: InitRun) -> str:
    """A dry run has an admin.conf of its own, and looks at no other."""
    return paths.ADMIN_CONF if state.ctx.host.dry_run else state.options.kubeconfig
