"""What each phase of ``init`` does: a few lines that call the part which knows how; ``would_…`` is a dry run's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.kubeadm import addresses
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.credentials import tokens
from slipway.host.progress import Sensitive
from slipway.kube import kubeconfig as kubeconfigfile
from slipway.node import addons, dryrun, imagepull, paths
from slipway.node import kubeconfigs as kubeconfigfiles
from slipway.node.cluster import marking
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.config import dynamicdefaults, load
from slipway.node.context import NodeContext
from slipway.node.etcd import pod as etcd
from slipway.node.health import wait as health
from slipway.node.init import admin, joincommand
from slipway.node.init.options import InitRun
from slipway.node.init.result import InitResult
from slipway.node.kubelet import files as kubelet
from slipway.node.kubelet import service
from slipway.node.pki import copycerts, store
from slipway.node.preflight import check, machine, resume, workflows
from slipway.node.staticpods import components
from slipway.workload import clusterinfo, configmaps, roles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slipway.api.kubeadm.internal import ClusterConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster
    from slipway.node.init.options import InitOptions
    from slipway.node.preflight.resume import Earlier


def prepare(options: InitOptions, host: Host, progress: Progress) -> InitRun:
    config, release = load.load_init(
        host, options.text, options.overrides, progress, source=options.source, skip_cri_detection=not options.detect_cri
    )
    dynamicdefaults.verify_bind_address(config.local_api_endpoint.advertise_address)
    skip = skipped_phases(config.cluster, tuple(config.skip_phases))
    here = host
    if config.dry_run:
        here = dryrun.host_for(host, dryrun.INIT_VARIABLE, "kubeadm-init-dryrun", progress, config.cluster.certificates_dir)
    ctx = NodeContext(config=config, release=release, host=here, progress=progress)
    external = store.uses_external_ca(ctx)
    if external:
        kubeconfigfiles.validate_external_ca(ctx, options.kubeconfig_dir)
    if (store.uses_external_front_proxy_ca(ctx) or external) and options.upload_certs:
        raise OperatorError("can't use upload-certs with an external CA or an external front-proxy CA")
    return InitRun(
        ctx=ctx,
        options=options,
        machine=host,
        kubeconfig=paths.ADMIN_CONF if config.dry_run else options.kubeconfig,
        connect=_imagine if config.dry_run else admin.connect,
        skip_phases=skip,
    )


def skipped_phases(cluster: ClusterConfiguration, asked: tuple[str, ...]) -> tuple[str, ...]:
    """The phases to skip; an add-on that is disabled is skipped, and one that is skipped is kept as disabled."""
    skip_all = "addon" in asked
    for path, addon in (("addon/coredns", cluster.dns), ("addon/kube-proxy", cluster.proxy)):
        addon.disabled = addon.disabled or skip_all or path in asked
        if addon.disabled and not skip_all and path not in asked:
            asked = (*asked, path)
    return asked


def make_keys_ahead(state: InitRun, selected: Sequence[str]) -> None:
    """Keys take longer than all the rest, so they are made on threads from the first moment."""
    parts = [path.split("/") for path in selected]
    certificates = [path[1] for path in parts if path[0] == "certs" and len(path) == 2]
    kubeconfigs = [path[1] for path in parts if path[0] == "kubeconfig" and len(path) == 2]
    more = kubeconfigfiles.missing(state.ctx, kubeconfigs, state.options.kubeconfig_dir)
    store.generate_ahead(state.ctx, certificates, more=more)


def preflight(state: InitRun) -> None:
    _announce_preflight(state)
    left = resume.of_control_plane(state.ctx, state.machine)
    left.tell(state.ctx.progress, "init")
    _check_machine(state, left)
    imagepull.pull_in_preflight(state.ctx, _ignored(state))


def would_preflight(state: InitRun) -> None:
    """A dry run goes on with nothing of an earlier one."""
    _announce_preflight(state)
    _check_machine(state, resume.NOTHING)
    state.ctx.progress.say("[preflight] Would pull the required images (like 'kubeadm config images pull')")


def _announce_preflight(state: InitRun) -> None:
    state.ctx.progress.say("[preflight] Running pre-flight checks")
    check.run([machine.privileged_user()], state.machine, state.ctx.progress, _ignored(state))


def _check_machine(state: InitRun, left: Earlier) -> None:
    ctx = state.ctx
    check.run(workflows.init_checks(ctx.config, ctx.release, earlier=left), state.machine, ctx.progress, _ignored(state))


def _ignored(state: InitRun) -> set[str]:
    return {name.lower() for name in state.ctx.config.node_registration.ignore_preflight_errors}


def certificates(state: InitRun) -> None:
    store.announce_folder(state.ctx)


def certificate(name: str, state: InitRun) -> None:
    store.ensure_certificate(state.ctx, name)


def service_account_key(state: InitRun) -> None:
    store.ensure_service_account_key(state.ctx)


def kubeconfigs(state: InitRun) -> None:
    kubeconfigfiles.announce_folder(state.ctx, state.options.kubeconfig_dir)


def kubeconfig(name: str, state: InitRun) -> None:
    kubeconfigfiles.ensure(state.ctx, name, state.options.kubeconfig_dir)


def local_etcd(state: InitRun) -> None:
    if state.ctx.config.cluster.etcd.external is None:
        etcd.write_local(state.ctx)


def would_local_etcd(state: InitRun) -> None:
    if state.ctx.config.cluster.etcd.external is None:
        etcd.would_write_local(state.ctx)
        dryrun.show_etcd(state.ctx)


def control_plane(state: InitRun) -> None:
    state.ctx.progress.say(f'[control-plane] Using manifest folder "{state.ctx.host.location(paths.MANIFESTS_DIR)}"')


def component(name: str, state: InitRun) -> None:
    components.write(state.ctx, name)


def would_component(name: str, state: InitRun) -> None:
    components.would_write(state.ctx, name)


def kubelet_start(state: InitRun) -> None:
    ctx = state.ctx
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


def would_kubelet_start(state: InitRun) -> None:
    kubelet.write_files(state.ctx)


def wait_control_plane(state: InitRun) -> None:
    _announce_wait(state)
    health.wait_for_control_plane(state.ctx)


def would_wait_control_plane(state: InitRun) -> None:
    """By now all files are written; without its admin.conf a real run would end here."""
    ctx = state.ctx
    dryrun.show_files(ctx, control_plane=True)
    kubeconfigfiles.require(ctx.host, state.kubeconfig)
    _announce_wait(state)
    dryrun.say_kubelet_wait(ctx.progress, ctx.config.cluster.component_configs[configmaps.KUBELET_GROUP])
    if not ctx.release.gate(ctx.config.cluster.feature_gates, "WaitForAllControlPlaneComponents"):
        ctx.progress.say("[dryrun] Would wait for the API Server's /healthz endpoint to return 'ok'")


def _announce_wait(state: InitRun) -> None:
    folder = state.ctx.host.location(paths.MANIFESTS_DIR)
    state.ctx.progress.say(
        f'[wait-control-plane] Waiting for the kubelet to boot up the control plane as static Pods from directory "{folder}"'
    )


def upload_kubeadm_config(state: InitRun) -> None:
    cluster = _cluster(state)
    state.ctx.progress.say('[upload-config] Storing the configuration used in ConfigMap "kubeadm-config" in the "kube-system" Namespace')
    cluster.apply_all(configmaps.kubeadm_config(state.ctx.config.cluster, state.ctx.release))


def upload_kubelet_config(state: InitRun) -> None:
    cluster = _cluster(state)
    state.ctx.progress.say(
        '[kubelet] Creating a ConfigMap "kubelet-config" in namespace kube-system with the configuration for the kubelets in the cluster'
    )
    cluster.apply_all(configmaps.kubelet_config(state.ctx.config.cluster, state.ctx.release))
    marking.annotate_cri_socket(state.ctx, cluster)


def upload_certs(state: InitRun) -> None:
    if _uploads(state):
        copycerts.upload(state.ctx, _cluster(state), _certificate_key(state))
        _tell_certificate_key(state)


def would_upload_certs(state: InitRun) -> None:
    if _uploads(state):
        copycerts.would_upload(state.ctx, _cluster(state), _certificate_key(state))
        _tell_certificate_key(state)


def _uploads(state: InitRun) -> bool:
    if not state.options.upload_certs:
        state.ctx.progress.say("[upload-certs] Skipping phase. Please see --upload-certs")
    return state.options.upload_certs


def _certificate_key(state: InitRun) -> str:
    config = state.ctx.config
    config.certificate_key = config.certificate_key or copycerts.new_certificate_key()
    return config.certificate_key


def _tell_certificate_key(state: InitRun) -> None:
    if not state.options.skip_certificate_key_print:
        text = f"[upload-certs] Using certificate key:\n{state.ctx.config.certificate_key}"
        state.ctx.progress.say(Sensitive.hiding(text, state.ctx.config.certificate_key))


def mark_control_plane(state: InitRun) -> None:
    marking.mark(state.ctx, _cluster(state))


def bootstrap_token(state: InitRun) -> None:
    """Everything is said first, and then written at once."""
    cluster = _cluster(state)
    waiting: list[Manifest] = []
    _announce_tokens(state)
    for announcement, manifests in _for_joining(state):
        if announcement:
            state.ctx.progress.say(announcement)
        waiting += manifests
    cluster.apply_all(waiting)


def would_bootstrap_token(state: InitRun) -> None:
    """A dry run shows what is written under its announcement; and kubeadm looks for each token first."""
    cluster = _cluster(state)
    _announce_tokens(state)
    for announcement, manifests in _for_joining(state):
        if announcement:
            state.ctx.progress.say(announcement)
        for manifest in manifests:
            if manifest["kind"] == "Secret":
                cluster.get("v1", "Secret", manifest["metadata"]["name"], tokens.NAMESPACE)
            cluster.apply(manifest)


def _announce_tokens(state: InitRun) -> None:
    ctx = state.ctx
    kubeconfigfiles.require(ctx.host, state.kubeconfig)
    texts = [token.token for token in ctx.config.bootstrap_tokens]
    if texts and not state.options.skip_token_print:
        shown = f"token: {texts[0]}" if len(texts) == 1 else f"tokens: [{' '.join(texts)}]"
        ctx.progress.say(Sensitive.hiding(f"[bootstrap-token] Using {shown}", *texts))
    ctx.progress.say("[bootstrap-token] Configuring bootstrap tokens, cluster-info ConfigMap, RBAC Roles")


def _for_joining(state: InitRun) -> Iterator[tuple[str, list[Manifest]]]:
    """What nodes need to join, each with the line that announces it."""
    ctx = state.ctx
    yield "", [tokens.secret(token, ctx.host.now()) for token in ctx.config.bootstrap_tokens]
    for words, manifests in roles.for_joining_nodes(ctx.release):
        yield f"[bootstrap-token] Configured RBAC rules to {words}", manifests
    server, ca = kubeconfigfiles.leads_to(ctx.host, state.kubeconfig)
    info = clusterinfo.config_map(clusterinfo.kubeconfig(server, kubeconfigfile.encoded(ca), ctx.release))
    yield '[bootstrap-token] Creating the "cluster-info" ConfigMap in the "kube-public" namespace', [info, *clusterinfo.access()]


def enable_client_cert_rotation(state: InitRun) -> None:
    kubelet.enable_client_cert_rotation(state.ctx)


def would_enable_client_cert_rotation(state: InitRun) -> None:
    kubelet.announce_rotating_certificate(state.ctx)


def addon(name: str, state: InitRun) -> None:
    if not state.options.print_manifest:
        addons.install(name, state.ctx, _cluster(state))
        return
    for manifest in addons.manifests(name, state.ctx):
        state.ctx.progress.show(f"---\n{goyaml.dump(manifest)}")


def show_join_command(state: InitRun) -> None:
    ctx, options = state.ctx, state.options
    server, ca = kubeconfigfiles.leads_to(ctx.host, state.kubeconfig)
    pins = joincommand.pins_of(ca, state.kubeconfig)
    for token in ctx.config.bootstrap_tokens:
        join_control_plane = joincommand.control_plane(
            server,
            pins,
            token.token,
            ctx.config.certificate_key,
            show_token=not options.skip_token_print,
            show_certificate_key=not options.skip_certificate_key_print,
        )
        farewell = joincommand.farewell(
            admin_conf=ctx.host.location(paths.ADMIN_CONF),
            join_worker=joincommand.worker(server, pins, token.token, show_token=not options.skip_token_print),
            join_control_plane=join_control_plane if ctx.config.cluster.control_plane_endpoint else "",
            uploaded=options.upload_certs,
        )
        ctx.progress.show(Sensitive.hiding(farewell, token.token, ctx.config.certificate_key))


def _cluster(state: InitRun) -> Cluster:
    if state.cluster is None:
        state.cluster = state.connect(state.ctx, state.kubeconfig)
    return state.cluster


def _imagine(ctx: NodeContext, path: str) -> Cluster:
    """The cluster of a dry run, whose phases have to have written an admin.conf all the same."""
    kubeconfigfiles.require(ctx.host, path)
    return DryRunCluster(ctx.progress, ctx.release)


def result(state: InitRun, seconds: Mapping[str, float]) -> InitResult:
    ctx, options = state.ctx, state.options
    made = InitResult(
        node_name=ctx.config.node_registration.name,
        kubernetes_version=ctx.config.cluster.kubernetes_version,
        endpoint=addresses.control_plane_url(ctx.config),
        admin_kubeconfig=ctx.host.location(paths.ADMIN_CONF),
        certificates_dir=ctx.host.location(ctx.config.cluster.certificates_dir),
        manifests_dir=ctx.host.location(paths.MANIFESTS_DIR),
        seconds=dict(seconds),
    )
    if "bootstrap-token" not in seconds:
        return made
    server, ca = kubeconfigfiles.leads_to(ctx.host, state.kubeconfig)
    pins = joincommand.pins_of(ca, state.kubeconfig)
    texts = [token.token for token in ctx.config.bootstrap_tokens]
    key = ctx.config.certificate_key if options.upload_certs and "upload-certs" in seconds else ""
    joins_control_planes = bool(texts and ctx.config.cluster.control_plane_endpoint)
    return msgspec.structs.replace(
        made,
        ca_pins=tuple(pins),
        tokens=tuple(texts),
        certificate_key=key,
        worker_join_command=joincommand.one_line(joincommand.worker(server, pins, texts[0])) if texts else "",
        control_plane_join_command=joincommand.one_line(joincommand.control_plane(server, pins, texts[0], key))
        if joins_control_planes
        else "",
    )
