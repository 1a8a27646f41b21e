"""What each phase of ``upgrade apply`` and ``upgrade node`` does; the exchange of static Pods is in staticpodupgrade.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.api.kubeadm.internal import UpgradeApplyConfiguration, UpgradeConfiguration, UpgradeNodeConfiguration
    from slipway.host.interface import Host
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext
    from slipway.node.upgrade.controlplane import Outcome


class UpgradeOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags and arguments say about the configuration, by the names of its fields: ``apply.kubernetesVersion``."""
    only: str = ""
    """The phase to run alone; empty for all."""
    kubeconfig: str = ""
    """Who asks the cluster; empty for the administrator's file, or the kubelet's on a worker."""
    etcd_snapshot_dir: str = ""
    """Where a snapshot of etcd is saved before anything is changed; empty for none."""
    assume_yes: bool = False
    answer: Callable[[], str] | None = None
    """Reads the answer to the question whether to go on; without one nobody is asked."""


class UpgradeRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``upgrade apply`` or ``upgrade node`` share."""

    ctx: NodeContext
    config: UpgradeConfiguration
    options: UpgradeOptions
    machine: Host
    cluster: Cluster
    is_control_plane: bool
    ignored: frozenset[str] = frozenset()
    outcome: Outcome | None = None
    """What became of the static Pods."""
    is_live: bool = False
    """Whether there is a cluster that answers, in a dry run too."""


def control_plane_apply(state: UpgradeRun) -> None:
    from slipway.node import dryrun
    from slipway.node.staticpods import components

    ctx = state.ctx
    if not ctx.host.dry_run:
        timeout = waiting.seconds(state.config.timeouts.upgrade_manifests, 300)
        ctx.progress.say(
            f'[upgrade/control-plane] Upgrading your static Pod-hosted control plane to version "{ctx.config.cluster.kubernetes_version}" '
            f"(timeout: {waiting.shown(timeout)})..."
        )
        _exchange(state, state.config.apply, timeout)
        return
    ctx.progress.say(f'[dryrun] Would upgrade your static Pod-hosted control plane to version "{ctx.config.cluster.kubernetes_version}"')
    for component in components.COMPONENTS:
        components.write_manifest(ctx, component, components.manifest(component, ctx))
    for component in components.COMPONENTS:
        dryrun.show_file(ctx, components.path_of(component))


def control_plane_node(state: UpgradeRun) -> None:
    if not state.is_control_plane:
        state.ctx.progress.say("[upgrade/control-plane] Skipping phase. Not a control plane node.")
        return
    version = state.ctx.config.cluster.kubernetes_version
    state.ctx.progress.say(f'[upgrade/control-plane] Upgrading your Static Pod-hosted control plane instance to version "{version}"...')
    if state.ctx.host.dry_run:
        control_plane_apply(state)
    else:
        _exchange(state, state.config.node, waiting.seconds(state.config.timeouts.upgrade_manifests, 300))


def _exchange(state: UpgradeRun, wanted: UpgradeApplyConfiguration | UpgradeNodeConfiguration, timeout: float) -> None:
    from slipway.node.upgrade import controlplane

    wishes = controlplane.Wishes(
        etcd_upgrade=wanted.etcd_upgrade is not False,
        renew_certificates=wanted.certificate_renewal is not False,
        snapshot_dir=state.options.etcd_snapshot_dir,
        timeout=timeout,
    )
    state.outcome = controlplane.upgrade(state.ctx, state.cluster, wishes)
    state.ctx.progress.say("[upgrade/control-plane] The control plane instance for this node was successfully upgraded!")


def upload_kubeadm_config(state: UpgradeRun) -> None:
    if not state.ctx.host.dry_run:
        from slipway.workload import configmaps

        state.ctx.progress.say(
            '[upload-config] Storing the configuration used in ConfigMap "kubeadm-config" in the "kube-system" Namespace'
        )
        state.cluster.apply_all(configmaps.kubeadm_config(state.ctx.config.cluster, state.ctx.release))
        return
    state.ctx.progress.say("[dryrun] Would upload the kubeadm ClusterConfiguration to a ConfigMap")


def upload_kubelet_config(state: UpgradeRun) -> None:
    if not state.ctx.host.dry_run:
        _upload_kubelet_config(state)
        return
    state.ctx.progress.say("[dryrun] Would upload the kubelet configuration to a ConfigMap")
    state.ctx.progress.say("[dryrun] Would write the CRISocket annotation for the control-plane node")


def _upload_kubelet_config(state: UpgradeRun) -> None:
    from slipway.node.cluster import marking
    from slipway.workload import configmaps

    ctx, node = state.ctx, state.ctx.config.node_registration
    ctx.progress.say(
        '[kubelet] Creating a ConfigMap "kubelet-config" in namespace kube-system with the configuration for the kubelets in the cluster'
    )
    state.cluster.apply_all(configmaps.kubelet_config(ctx.config.cluster, ctx.release))
    if ctx.release.node_annotation_cri_socket and not ctx.release.gate(ctx.config.cluster.feature_gates, "NodeLocalCRISocket"):
        state.cluster.amend_node(node.name, annotations={marking.CRI_SOCKET_ANNOTATION: node.cri_socket})
    else:
        state.cluster.amend_node(node.name, dropped_annotations=(marking.CRI_SOCKET_ANNOTATION,))


def kubeconfig(state: UpgradeRun) -> None:
    """The kubelet of a control plane is to talk to the API server beside it."""
    from slipway.node.init import joincommand
    from slipway.workload import endpoints

    ctx = state.ctx
    if not state.is_control_plane:
        ctx.progress.say("[upgrade/kubeconfig] Skipping phase. Not a control plane node.")
        return
    if state.machine.exists(paths.KUBELET_CONF):
        server, _ = joincommand.cluster_of(ctx, paths.KUBELET_CONF)
        found, wanted = endpoints.control_plane_url(ctx.config), endpoints.local_api_url(ctx.config.local_api_endpoint)
        if not ctx.release.gate(ctx.config.cluster.feature_gates, "ControlPlaneKubeletLocalMode"):
            found, wanted = wanted, found
        if server == found != wanted and ctx.host.dry_run:
            ctx.progress.say(
                f'[dryrun] Would change the Server URL from "{server}" to "{wanted}" in {paths.KUBELET_CONF} and try to restart kubelet'
            )
        elif server == found != wanted:
            _redirect_kubelet(ctx, wanted)
    ctx.progress.say("[upgrade/kubeconfig] The kubeconfig files for this node were successfully upgraded!")


def _redirect_kubelet(ctx: NodeContext, server: str) -> None:
    from slipway.kube import kubeconfig
    from slipway.node.kubelet import service

    document = kubeconfig.load(ctx.host.read(paths.KUBELET_CONF), paths.KUBELET_CONF)
    context = kubeconfig.named(document, "context", document.get("current-context") or "") or {}
    entry = kubeconfig.named(document, "cluster", context.get("cluster") or "")
    if entry is None:
        raise OperatorError(f'cannot find cluster for active context in kubeconfig "{paths.KUBELET_CONF}"')
    entry["server"] = server
    ctx.host.write(paths.KUBELET_CONF, kubeconfig.text(document, ctx.release).encode())
    service.restart(ctx)


def kubelet_config(state: UpgradeRun) -> None:
    from slipway.node import dryrun
    from slipway.node.kubelet import files

    ctx = state.ctx
    folder = f"{paths.TMP_DIR}/kubeadm-kubelet-config-{ctx.host.now():%Y-%m-%d-%H-%M-%S}"
    if not ctx.host.dry_run:
        _write_kubelet_config(state, folder)
        return
    ctx.progress.say(f"[dryrun] Would back up kubelet config file to {ctx.host.location(folder)}/config.yaml")
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


def _write_kubelet_config(state: UpgradeRun, folder: str) -> None:
    """Keep the old file, write the new one; an instance configuration that is there is the operator's as well."""
    from slipway.node.cluster import marking
    from slipway.node.kubelet import files

    ctx = state.ctx
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


def _cri_socket(state: UpgradeRun) -> str:
    """The socket that the kubelet of this node uses: by its instance configuration, its flags, or the default."""
    from slipway.api.kubeadm import defaults
    from slipway.api.machinery import goyaml
    from slipway.node.kubelet import files
    from slipway.workload import arguments

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
    if not state.ctx.host.dry_run:
        from slipway.workload import clusterinfo, roles

        state.ctx.progress.say("[upgrade/bootstrap-token] Configuring bootstrap token and cluster-info RBAC rules")
        rules = []
        for words, manifests in roles.for_joining_nodes(state.ctx.release):
            state.ctx.progress.say(f"[bootstrap-token] Configured RBAC rules to {words}")
            rules += manifests
        state.cluster.apply_all([*rules, *clusterinfo.access()])
        return
    state.ctx.progress.say("[dryrun] Would configure bootstrap token and cluster-info RBAC rules")


def addon(name: str, state: UpgradeRun) -> None:
    from slipway.api.machinery import goyaml
    from slipway.node import addons
    from slipway.node.upgrade import policy

    ctx, cluster = state.ctx, state.ctx.config.cluster
    disabled = cluster.dns.disabled if name == "coredns" else cluster.proxy.disabled
    if not state.is_control_plane or disabled:
        reason = "The addon is disabled." if state.is_control_plane else "Not a control plane node."
        ctx.progress.say(f"[upgrade/addon] Skipping the addon/{name} phase. {reason}")
        return
    if state.is_live and (waits_for := policy.addons_wait_for(state.cluster, ctx.config.node_registration.name)):
        ctx.progress.say(policy.addons_wait_message(waits_for))
        return
    if not ctx.host.dry_run:
        addons.install(name, ctx, state.cluster)
        return
    if not state.is_live:
        state.cluster.list("v1", "Pod", "kube-system", {"component": "kube-apiserver"})
    for manifest in addons.manifests(name, ctx):
        ctx.progress.show(f"---\n{goyaml.dump(manifest)}")


def post_upgrade(state: UpgradeRun) -> None:
    from slipway.node.kubelet import files

    dropped = state.ctx.release.kubelet_flags_dropped_by_upgrade
    if dropped and not state.ctx.host.dry_run:
        files.drop_flags(state.ctx, dropped)
    elif dropped:
        state.ctx.progress.say(f"[dryrun] Would remove unwanted kubelet flags [{' '.join(dropped)}] from kubeadm-flags.env")
