"""What each phase of ``upgrade apply`` and ``upgrade node`` does; ``would_…`` is a dry run's.

The exchange of static Pods is in controlplane.py, the first phase in preflight.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.kubeadm import addresses, defaults
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.host import waiting
from slipway.kube import kubeconfig as kubeconfigfile
from slipway.node import addons, dryrun, paths
from slipway.node import kubeconfigs as kubeconfigfiles
from slipway.node.cluster import imagined, marking
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.cluster.live import connect
from slipway.node.config import cluster as clusterconfig
from slipway.node.config import load
from slipway.node.config import version as kubeversion
from slipway.node.context import NodeContext
from slipway.node.kubelet import files, service
from slipway.node.staticpods import components
from slipway.node.upgrade import controlplane, policy
from slipway.node.upgrade.options import UpgradeRun
from slipway.node.upgrade.result import UpgradeResult
from slipway.workload import arguments, clusterinfo, configmaps, roles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.internal import UpgradeConfiguration
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster
    from slipway.node.cluster.live import LiveCluster
    from slipway.node.upgrade.options import UpgradeOptions


def prepare(options: UpgradeOptions, host: Host, progress: Progress) -> UpgradeRun:
    config, release = load.load_upgrade(host, options.text, options.overrides, progress, source=options.source)
    if options.command == "node":
        # A node has a control plane if it has an API server.
        has_api_server = host.exists(f"{paths.MANIFESTS_DIR}/kube-apiserver.yaml")
        state = _prepare(options, host, progress, release, config, dry_run=bool(config.node.dry_run), is_control_plane=has_api_server)
        state.ctx.config.patches = config.node.patches
        return state
    wanted = config.apply
    if not wanted.kubernetes_version:
        raise OperatorError("missing one or more required arguments. Required arguments: [version]")
    # The kubeadm of a version upgrades to it.
    release = kubeversion.acting_release(host.environment, wanted.kubernetes_version)
    state = _prepare(options, host, progress, release, config, dry_run=bool(wanted.dry_run), is_control_plane=True)
    state.ctx.config.patches = wanted.patches
    state.ctx.config.cluster.kubernetes_version = kubeversion.normalized(wanted.kubernetes_version) or wanted.kubernetes_version
    if wanted.print_config:
        _show_configuration(state)
    return state


class _Reached(NamedTuple):
    """The cluster, as far as there is one, and what it says of this node."""

    cluster: Cluster
    release: Release
    name: str
    is_live: bool


def _prepare(
    options: UpgradeOptions,
    host: Host,
    progress: Progress,
    release: Release,
    upgrade: UpgradeConfiguration,
    *,
    dry_run: bool,
    is_control_plane: bool,
) -> UpgradeRun:
    kubeconfig = options.kubeconfig or (paths.ADMIN_CONF if is_control_plane else paths.KUBELET_CONF)
    here = host
    if dry_run:
        here = dryrun.host_for(host, dryrun.UPGRADE_VARIABLE, f"kubeadm-upgrade-{options.command}-dryrun", progress)
    else:
        controlplane.recover(host, progress)
    if dry_run and not host.exists(kubeconfig):
        reached = _imagine(host, progress, release)
    else:
        reached = _connect(options, host, progress, release, kubeconfig, waiting.seconds(upgrade.timeouts.kubernetes_api_call, 60))
        if dry_run:
            progress.say(f'[dryrun] Creating a real client from "{kubeconfig}"')
            reached = reached._replace(cluster=DryRunCluster(progress, reached.release, real=reached.cluster))
    config = clusterconfig.fetch(
        reached.cluster, reached.release, host, progress, "upgrade", name=reached.name, is_control_plane=is_control_plane
    )
    if reached.is_live:
        config.timeouts = upgrade.timeouts
    return UpgradeRun(
        ctx=NodeContext(config=config, release=reached.release, host=here, progress=progress),
        config=upgrade,
        options=options,
        machine=host,
        cluster=reached.cluster,
        is_control_plane=is_control_plane,
        is_live=reached.is_live,
        from_version=config.cluster.kubernetes_version,
    )


def _connect(options: UpgradeOptions, host: Host, progress: Progress, release: Release, kubeconfig: str, patience: float) -> _Reached:
    live = connect(host, kubeconfig, patience=patience, waiting=progress.say)
    _await_api(live, patience, progress)
    name = clusterconfig.node_name(host)
    if options.command == "node":
        # A node follows its cluster, whatever the version of this program would be.
        release = kubeversion.acting_release(host.environment, clusterconfig.kubernetes_version(live))
    return _Reached(live, release, name, is_live=True)


def _imagine(host: Host, progress: Progress, release: Release) -> _Reached:
    progress.say("[dryrun] Dryrunning without a real client")
    name = host.hostname().strip().lower()
    objects = [*imagined.objects(release, ""), imagined.corefile()]
    cluster = DryRunCluster(progress, release, imagined=objects, lists=imagined.lists(release, name))
    return _Reached(cluster, release, name, is_live=False)


def _await_api(live: LiveCluster, patience: float, progress: Progress) -> None:
    """An API server that was restarted by a killed upgrade answers before it knows who may ask what."""

    def ready() -> str:
        try:
            live.client.raw("/readyz")
        except OperatorError as error:
            return f"the API server is not ready: {error.message}"
        return ""

    try:
        waiting.until(ready, timeout=patience, interval=0.5)
    except waiting.TimedOutError as error:
        progress.warn(f"[upgrade] {error.message}; going on all the same")


def _show_configuration(state: UpgradeRun) -> None:
    lines = configmaps.cluster_configuration(state.ctx.config.cluster, state.ctx.release).splitlines()
    state.ctx.progress.say("\n".join(["[upgrade/config] Configuration used:", *(f"\t{line}" for line in lines)]))


def control_plane_apply(state: UpgradeRun) -> None:
    version, timeout = state.ctx.config.cluster.kubernetes_version, waiting.seconds(state.config.timeouts.upgrade_manifests, 300)
    state.ctx.progress.say(
        f'[upgrade/control-plane] Upgrading your static Pod-hosted control plane to version "{version}" '
        f"(timeout: {waiting.shown(timeout)})..."
    )
    _exchange(state, timeout)


def would_control_plane_apply(state: UpgradeRun) -> None:
    ctx = state.ctx
    ctx.progress.say(f'[dryrun] Would upgrade your static Pod-hosted control plane to version "{ctx.config.cluster.kubernetes_version}"')
    for component in components.COMPONENTS:
        components.write_manifest(ctx, component, components.manifest(component, ctx))
    for component in components.COMPONENTS:
        dryrun.show_file(ctx, components.path_of(component))


def control_plane_node(state: UpgradeRun) -> None:
    if _announce_control_plane(state):
        _exchange(state, waiting.seconds(state.config.timeouts.upgrade_manifests, 300))


def would_control_plane_node(state: UpgradeRun) -> None:
    if _announce_control_plane(state):
        would_control_plane_apply(state)


def _announce_control_plane(state: UpgradeRun) -> bool:
    """Whether this node has a control plane to be upgraded."""
    say, version = state.ctx.progress.say, state.ctx.config.cluster.kubernetes_version
    if state.is_control_plane:
        say(f'[upgrade/control-plane] Upgrading your Static Pod-hosted control plane instance to version "{version}"...')
    else:
        say("[upgrade/control-plane] Skipping phase. Not a control plane node.")
    return state.is_control_plane


def _exchange(state: UpgradeRun, timeout: float) -> None:
    wishes = controlplane.Wishes(
        etcd_upgrade=state.wanted.etcd_upgrade is not False,
        renew_certificates=state.wanted.certificate_renewal is not False,
        snapshot_dir=state.options.etcd_snapshot_dir,
        timeout=timeout,
    )
    state.outcome = controlplane.upgrade(state.ctx, state.cluster, wishes)
    state.ctx.progress.say("[upgrade/control-plane] The control plane instance for this node was successfully upgraded!")


def upload_kubeadm_config(state: UpgradeRun) -> None:
    state.ctx.progress.say('[upload-config] Storing the configuration used in ConfigMap "kubeadm-config" in the "kube-system" Namespace')
    state.cluster.apply_all(configmaps.kubeadm_config(state.ctx.config.cluster, state.ctx.release))


def would_upload_kubeadm_config(state: UpgradeRun) -> None:
    state.ctx.progress.say("[dryrun] Would upload the kubeadm ClusterConfiguration to a ConfigMap")


def upload_kubelet_config(state: UpgradeRun) -> None:
    ctx, node = state.ctx, state.ctx.config.node_registration
    ctx.progress.say(
        '[kubelet] Creating a ConfigMap "kubelet-config" in namespace kube-system with the configuration for the kubelets in the cluster'
    )
    state.cluster.apply_all(configmaps.kubelet_config(ctx.config.cluster, ctx.release))
    if ctx.release.node_annotation_cri_socket and not ctx.release.gate(ctx.config.cluster.feature_gates, "NodeLocalCRISocket"):
        state.cluster.amend_node(node.name, annotations={marking.CRI_SOCKET_ANNOTATION: node.cri_socket})
    else:
        state.cluster.amend_node(node.name, dropped_annotations=(marking.CRI_SOCKET_ANNOTATION,))


def would_upload_kubelet_config(state: UpgradeRun) -> None:
    state.ctx.progress.say("[dryrun] Would upload the kubelet configuration to a ConfigMap")
    state.ctx.progress.say("[dryrun] Would write the CRISocket annotation for the control-plane node")


def kubeconfig(state: UpgradeRun) -> None:
    """The kubelet of a control plane is to talk to the API server beside it."""
    if not _has_kubeconfigs(state):
        return
    redirection = _redirection(state)
    if redirection is not None:
        _redirect_kubelet(state.ctx, redirection.wanted)
    state.ctx.progress.say("[upgrade/kubeconfig] The kubeconfig files for this node were successfully upgraded!")


def would_kubeconfig(state: UpgradeRun) -> None:
    if not _has_kubeconfigs(state):
        return
    redirection = _redirection(state)
    if redirection is not None:
        state.ctx.progress.say(
            f'[dryrun] Would change the Server URL from "{redirection.found}" to "{redirection.wanted}" in {paths.KUBELET_CONF} '
            "and try to restart kubelet"
        )
    state.ctx.progress.say("[upgrade/kubeconfig] The kubeconfig files for this node were successfully upgraded!")


def _has_kubeconfigs(state: UpgradeRun) -> bool:
    if not state.is_control_plane:
        state.ctx.progress.say("[upgrade/kubeconfig] Skipping phase. Not a control plane node.")
    return state.is_control_plane


class _Redirection(NamedTuple):
    """The server that the kubelet talks to, and the one that it is to talk to."""

    found: str
    wanted: str


def _redirection(state: UpgradeRun) -> _Redirection | None:
    """None where the kubelet is to go on as it is; a server that an operator chose is left alone."""
    ctx = state.ctx
    if not state.machine.exists(paths.KUBELET_CONF):
        return None
    server = kubeconfigfiles.leads_to(ctx.host, paths.KUBELET_CONF).server
    found, wanted = addresses.control_plane_url(ctx.config), addresses.local_api_url(ctx.config.local_api_endpoint)
    if not ctx.release.gate(ctx.config.cluster.feature_gates, "ControlPlaneKubeletLocalMode"):
        found, wanted = wanted, found
    return _Redirection(server, wanted) if server == found != wanted else None


def _redirect_kubelet(ctx: NodeContext, server: str) -> None:
    document = kubeconfigfile.load(ctx.host.read(paths.KUBELET_CONF), paths.KUBELET_CONF)
    context = kubeconfigfile.named(document, "context", document.get("current-context") or "") or {}
    entry = kubeconfigfile.named(document, "cluster", context.get("cluster") or "")
    if entry is None:
        raise OperatorError(f'cannot find cluster for active context in kubeconfig "{paths.KUBELET_CONF}"')
    entry["server"] = server
    ctx.host.write(paths.KUBELET_CONF, kubeconfigfile.text(document, ctx.release).encode())
    service.restart(ctx)


def kubelet_config(state: UpgradeRun) -> None:
    """Keep the old file, write the new one; an instance configuration that is there is the operator's as well."""
    ctx = state.ctx
    folder = _kubelet_backup(ctx)
    ctx.progress.say(f"[upgrade] Backing up kubelet config file to {folder}/config.yaml")
    try:
        ctx.host.write(f"{folder}/config.yaml", ctx.host.read(paths.KUBELET_CONFIG), 0o644)
    except FileNotFoundError as error:
        raise OperatorError(f"error backing up the kubelet config file: there is no {ctx.host.location(paths.KUBELET_CONFIG)}") from error
    node_local = ctx.release.gate(ctx.config.cluster.feature_gates, "NodeLocalCRISocket")
    has_instance = ctx.host.exists(paths.KUBELET_INSTANCE_CONFIG)
    if node_local and not has_instance:
        ctx.config.node_registration.cri_socket = files.take_flag(ctx, "container-runtime-endpoint")
    files.write_configuration(ctx, instance=not has_instance)
    if node_local:
        # What the file has is no longer the annotation's business.
        dropped = (marking.CRI_SOCKET_ANNOTATION,)
        state.cluster.amend_node(ctx.config.node_registration.name, dropped_annotations=dropped)
    ctx.progress.say("[upgrade/kubelet-config] The kubelet configuration for this node was successfully upgraded!")


def would_kubelet_config(state: UpgradeRun) -> None:
    ctx = state.ctx
    ctx.progress.say(f"[dryrun] Would back up kubelet config file to {ctx.host.location(_kubelet_backup(ctx))}/config.yaml")
    node_local = ctx.release.gate(ctx.config.cluster.feature_gates, "NodeLocalCRISocket")
    if node_local:
        ctx.config.node_registration.cri_socket = _cri_socket(state)
    files.write_configuration(ctx)
    for path in (*([paths.KUBELET_INSTANCE_CONFIG] if node_local else []), paths.KUBELET_CONFIG):
        dryrun.show_file(ctx, path)
    if node_local:
        # What the file has is no longer the annotation's business.
        state.cluster.amend_node(ctx.config.node_registration.name)
    ctx.progress.say("[upgrade/kubelet-config] The kubelet configuration for this node was successfully upgraded!")


def _kubelet_backup(ctx: NodeContext) -> str:
    return f"{paths.TMP_DIR}/kubeadm-kubelet-config-{ctx.host.now():%Y-%m-%d-%H-%M-%S}"


def _cri_socket(state: UpgradeRun) -> str:
    """The socket that the kubelet of this node uses: by its instance configuration, its flags, or the default."""
    from slipway.api.machinery.yaml import goyaml
    from slipway.node.kubelet import files

    host = state.machine
    if host.exists(paths.KUBELET_INSTANCE_CONFIG):
        text = host.read(paths.KUBELET_INSTANCE_CONFIG).decode()
        return str(goyaml.load(text, paths.KUBELET_INSTANCE_CONFIG)[0].value.get("containerRuntimeEndpoint", ""))
    if host.exists(paths.KUBELET_FLAGS_ENV):
        flags, _ = arguments.from_command(files.flags_of_environment_file(host.read(paths.KUBELET_FLAGS_ENV).decode()))
        return arguments.value_of(flags, "container-runtime-endpoint") or ""
    state.ctx.progress.say(
        '[dryrun] would read the flag --container-runtime-endpoint value from "kubeadm-flags.env", which is missing. '
        f'Using default socket "{defaults.CRI_SOCKET}" instead'
    )
    return defaults.CRI_SOCKET


def bootstrap_token(state: UpgradeRun) -> None:
    state.ctx.progress.say("[upgrade/bootstrap-token] Configuring bootstrap token and cluster-info RBAC rules")
    rules = []
    for words, manifests in roles.for_joining_nodes(state.ctx.release):
        state.ctx.progress.say(f"[bootstrap-token] Configured RBAC rules to {words}")
        rules += manifests
    state.cluster.apply_all([*rules, *clusterinfo.access()])


def would_bootstrap_token(state: UpgradeRun) -> None:
    state.ctx.progress.say("[dryrun] Would configure bootstrap token and cluster-info RBAC rules")


def addon(name: str, state: UpgradeRun) -> None:
    if _may_upgrade_addon(name, state):
        addons.install(name, state.ctx, state.cluster)


def would_addon(name: str, state: UpgradeRun) -> None:
    if not _may_upgrade_addon(name, state):
        return
    if not state.is_live:
        state.cluster.list("v1", "Pod", "kube-system", {"component": "kube-apiserver"})
    for manifest in addons.manifests(name, state.ctx):
        state.ctx.progress.show(f"---\n{goyaml.dump(manifest)}")


def _may_upgrade_addon(name: str, state: UpgradeRun) -> bool:
    """An add-on is upgraded with the last of the control planes."""
    ctx, cluster = state.ctx, state.ctx.config.cluster
    disabled = cluster.dns.disabled if name == "coredns" else cluster.proxy.disabled
    if not state.is_control_plane or disabled:
        reason = "The addon is disabled." if state.is_control_plane else "Not a control plane node."
        ctx.progress.say(f"[upgrade/addon] Skipping the addon/{name} phase. {reason}")
        return False
    if state.is_live and (waits_for := policy.addons_wait_for(state.cluster, ctx.config.node_registration.name)):
        ctx.progress.say(policy.addons_wait_message(waits_for))
        return False
    return True


def post_upgrade(state: UpgradeRun) -> None:
    if dropped := state.ctx.release.kubelet_flags_dropped_by_upgrade:
        files.drop_flags(state.ctx, dropped)


def would_post_upgrade(state: UpgradeRun) -> None:
    if dropped := state.ctx.release.kubelet_flags_dropped_by_upgrade:
        state.ctx.progress.say(f"[dryrun] Would remove unwanted kubelet flags [{' '.join(dropped)}] from kubeadm-flags.env")


def result(state: UpgradeRun, seconds: Mapping[str, float]) -> UpgradeResult:
    ctx, outcome = state.ctx, state.outcome
    return UpgradeResult(
        node_name=ctx.config.node_registration.name,
        from_version=state.from_version,
        kubernetes_version=ctx.config.cluster.kubernetes_version,
        is_control_plane=state.is_control_plane,
        exchanged=outcome.exchanged if outcome else (),
        backup_dir=outcome.backup_dir if outcome and outcome.exchanged else "",
        etcd_snapshot=outcome.snapshot if outcome else "",
        seconds=dict(seconds),
    )
