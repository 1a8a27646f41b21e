"""What each phase of ``upgrade apply`` and ``upgrade node`` does; so far only dry runs, in a cluster that is imagined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.internal import UpgradeConfiguration
    from slipway.node.cluster import Cluster
    from slipway.node.context import NodeContext
    from slipway.node.host import Host


class UpgradeOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags and arguments say about the configuration, by the names of its fields: ``apply.kubernetesVersion``."""
    only: str = ""
    """The phase to run alone; empty for all."""


class UpgradeRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``upgrade apply`` or ``upgrade node`` share."""

    ctx: NodeContext
    config: UpgradeConfiguration
    options: UpgradeOptions
    machine: Host
    cluster: Cluster
    is_control_plane: bool
    ignored: frozenset[str] = frozenset()


def preflight_apply(state: UpgradeRun) -> None:
    from slipway.node.preflight import check, machine

    say, version = state.ctx.progress.say, state.ctx.config.cluster.kubernetes_version
    say("[upgrade/preflight] Running preflight checks")
    check.run([machine.privileged_user()], state.machine, state.ctx.progress, state.ignored)
    # The Corefile and the version of CoreDNS are asked for twice: can it be migrated, and must it be.
    for _ in range(2):
        state.cluster.get("v1", "ConfigMap", "coredns", "kube-system")
        state.cluster.list("apps/v1", "Deployment", "kube-system", {"k8s-app": "kube-dns"})
    say("[upgrade] Running cluster health checks")
    if not state.cluster.list("v1", "Node", "", {}):
        state.ctx.progress.warn('The preflight check "CreateJob" was skipped because there are no schedulable Nodes in the cluster.')
    state.cluster.list("v1", "Node", "", {})
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        say(f"[dryrun] would check if {paths.MANIFESTS_DIR}/{component}.yaml exists")
    say(f'[upgrade/preflight] You have chosen to upgrade the cluster version to "{version}"')
    say(f"[upgrade/versions] Cluster version: 1.{state.ctx.release.minor}.0")
    say(f"[upgrade/versions] kubeadm version: v{state.ctx.release.version}")
    state.cluster.list("v1", "Node", "", {})
    say("[dryrun] Would pull the required images (like 'kubeadm config images pull')")


def preflight_node(state: UpgradeRun) -> None:
    from slipway.node.preflight import check, machine

    state.ctx.progress.say("[upgrade/preflight] Running pre-flight checks")
    check.run([machine.privileged_user()], state.machine, state.ctx.progress, state.ignored)
    if state.is_control_plane:
        state.ctx.progress.say("[upgrade/preflight] Would pull the required images (like 'kubeadm config images pull')")
    else:
        state.ctx.progress.say("[upgrade/preflight] Skipping prepull. Not a control plane node.")


def control_plane_apply(state: UpgradeRun) -> None:
    from slipway.node import dryrun, staticpods

    ctx = state.ctx
    ctx.progress.say(f'[dryrun] Would upgrade your static Pod-hosted control plane to version "{ctx.config.cluster.kubernetes_version}"')
    for component in staticpods.COMPONENTS:
        staticpods.write_manifest(ctx, component, staticpods.manifest(component, ctx))
    for component in staticpods.COMPONENTS:
        dryrun.show_file(ctx, staticpods.path_of(component))


def control_plane_node(state: UpgradeRun) -> None:
    if not state.is_control_plane:
        state.ctx.progress.say("[upgrade/control-plane] Skipping phase. Not a control plane node.")
        return
    version = state.ctx.config.cluster.kubernetes_version
    state.ctx.progress.say(f'[upgrade/control-plane] Upgrading your Static Pod-hosted control plane instance to version "{version}"...')
    control_plane_apply(state)


def upload_kubeadm_config(state: UpgradeRun) -> None:
    state.ctx.progress.say("[dryrun] Would upload the kubeadm ClusterConfiguration to a ConfigMap")


def upload_kubelet_config(state: UpgradeRun) -> None:
    state.ctx.progress.say("[dryrun] Would upload the kubelet configuration to a ConfigMap")
    state.ctx.progress.say("[dryrun] Would write the CRISocket annotation for the control-plane node")


def kubeconfig(state: UpgradeRun) -> None:
    """The kubelet of a control plane is to talk to the API server beside it."""
    from slipway.node import endpoints, joincommand

    ctx = state.ctx
    if not state.is_control_plane:
        ctx.progress.say("[upgrade/kubeconfig] Skipping phase. Not a control plane node.")
        return
    if state.machine.exists(paths.KUBELET_CONF):
        server, _ = joincommand.cluster_of(ctx, paths.KUBELET_CONF)
        shared, local = endpoints.control_plane_url(ctx.config), endpoints.local_api_url(ctx.config.local_api_endpoint)
        if server == shared != local:
            ctx.progress.say(
                f'[dryrun] Would change the Server URL from "{server}" to "{local}" in {paths.KUBELET_CONF} and try to restart kubelet'
            )
    ctx.progress.say("[upgrade/kubeconfig] The kubeconfig files for this node were successfully upgraded!")


def kubelet_config(state: UpgradeRun) -> None:
    from slipway.node import dryrun, kubelet

    ctx = state.ctx
    folder = f"{paths.TMP_DIR}/kubeadm-kubelet-config-{ctx.host.now():%Y-%m-%d-%H-%M-%S}"
    ctx.progress.say(f"[dryrun] Would back up kubelet config file to {ctx.host.location(folder)}/config.yaml")
    node_local = ctx.release.gate(ctx.config.cluster.feature_gates, "NodeLocalCRISocket")
    if node_local:
        ctx.config.node_registration.cri_socket = _cri_socket(state)
    kubelet.write_configuration(ctx)
    for path in (*([paths.KUBELET_INSTANCE_CONFIG] if node_local else []), paths.KUBELET_CONFIG):
        dryrun.show_file(ctx, path)
    if node_local:
        # What the file has is no longer the annotation's business.
        state.cluster.amend_node(ctx.config.node_registration.name)
    ctx.progress.say("[upgrade/kubelet-config] The kubelet configuration for this node was successfully upgraded!")


def _cri_socket(state: UpgradeRun) -> str:
    """The socket that the kubelet of this node uses: by its instance configuration, its flags, or the default."""
    from slipway.api.kubeadm import defaults
    from slipway.api.machinery import goyaml
    from slipway.node import arguments, kubelet

    host = state.machine
    if host.exists(paths.KUBELET_INSTANCE_CONFIG):
        text = host.read(paths.KUBELET_INSTANCE_CONFIG).decode()
        return str(goyaml.load(text, paths.KUBELET_INSTANCE_CONFIG)[0].value.get("containerRuntimeEndpoint", ""))
    if host.exists(paths.KUBELET_FLAGS_ENV):
        flags, _ = arguments.from_command(kubelet.flags_of_environment_file(host.read(paths.KUBELET_FLAGS_ENV).decode()))
        return arguments.value_of(flags, "container-runtime-endpoint") or ""
    state.ctx.progress.say(
        '[dryrun] would read the flag --container-runtime-endpoint value from "kubeadm-flags.env", which is missing. '
        f'Using default socket "{defaults.CRI_SOCKET}" instead'
    )
    return defaults.CRI_SOCKET


def bootstrap_token(state: UpgradeRun) -> None:
    state.ctx.progress.say("[dryrun] Would configure bootstrap token and cluster-info RBAC rules")


def addon(name: str, state: UpgradeRun) -> None:
    from slipway.api.machinery import goyaml
    from slipway.node import coredns, kubeproxy

    ctx, cluster = state.ctx, state.ctx.config.cluster
    disabled = cluster.dns.disabled if name == "coredns" else cluster.proxy.disabled
    if not state.is_control_plane or disabled:
        reason = "The addon is disabled." if state.is_control_plane else "Not a control plane node."
        ctx.progress.say(f"[upgrade/addon] Skipping the addon/{name} phase. {reason}")
        return
    state.cluster.list("v1", "Pod", "kube-system", {"component": "kube-apiserver"})
    for manifest in coredns.manifests(ctx) if name == "coredns" else kubeproxy.manifests(ctx):
        ctx.progress.show(f"---\n{goyaml.dump(manifest)}")


def post_upgrade(state: UpgradeRun) -> None:
    dropped = state.ctx.release.kubelet_flags_dropped_by_upgrade
    if dropped:
        state.ctx.progress.say(f"[dryrun] Would remove unwanted kubelet flags [{' '.join(dropped)}] from kubeadm-flags.env")
