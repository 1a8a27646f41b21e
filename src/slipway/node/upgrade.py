"""The story of ``upgrade``: ``apply`` moves the cluster to another version, ``node`` brings one more node along.

``APPLY_PHASES`` and ``NODE_PHASES`` are the stories; what a phase does is in upgradesteps.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths, phases
from slipway.node import upgradesteps as steps
from slipway.node.phases import Phase
from slipway.node.upgradesteps import UpgradeOptions, UpgradeRun

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import InitConfiguration
    from slipway.api.releases import Release
    from slipway.node.cluster import Cluster, Manifest
    from slipway.node.host import Host
    from slipway.node.progress import Progress

__all__ = ["APPLY_PHASES", "NODE_PHASES", "UpgradeOptions", "UpgradeRun", "apply", "node", "prepare_apply", "prepare_node"]

# The flags of the phases' own sub-commands.
_FLAGS = ("config", "kubeconfig", "dry-run")
_CONTROL_PLANE = (*_FLAGS, "certificate-renewal", "etcd-upgrade", "patches")
_PREFLIGHT = (*_FLAGS, "force", "ignore-preflight-errors", "allow-experimental-upgrades", "allow-release-candidate-upgrades", "yes")

# fmt: off
_KUBECONFIG: Phase[UpgradeRun] = Phase(
    name="kubeconfig", short="Let kubelet.conf point at the local API server", run=steps.kubeconfig, flags=_FLAGS, hidden=True)
_KUBELET_CONFIG: Phase[UpgradeRun] = Phase(
    name="kubelet-config", short="Write the kubelet's configuration of the new version", run=steps.kubelet_config,
    flags=(*_FLAGS, "patches"))
_ADDON: Phase[UpgradeRun] = Phase(name="addon", short="Upgrade the add-ons", flags=(*_FLAGS, "patches"), phases=(
    Phase(name="coredns", short="Upgrade CoreDNS", run=partial(steps.addon, "coredns"), flags=(*_FLAGS, "patches")),
    Phase(name="kube-proxy", short="Upgrade kube-proxy", run=partial(steps.addon, "kube-proxy"), flags=_FLAGS),
))
_POST_UPGRADE: Phase[UpgradeRun] = Phase(name="post-upgrade", short="Tidy up after the upgrade", run=steps.post_upgrade, flags=_FLAGS)

APPLY_PHASES: tuple[Phase[UpgradeRun], ...] = (
    Phase(name="preflight", short="Check that the cluster can be upgraded", run=steps.preflight_apply, flags=_PREFLIGHT),
    Phase(name="control-plane", short="Upgrade the control plane of this node", run=steps.control_plane_apply, flags=_CONTROL_PLANE),
    Phase(name="upload-config", short="Keep the configuration of the new version in the cluster", aliases=("uploadconfig",),
          flags=_FLAGS, phases=(
        Phase(name="kubeadm", short="Keep the ClusterConfiguration in the ConfigMap kubeadm-config", run=steps.upload_kubeadm_config,
              flags=_FLAGS),
        Phase(name="kubelet", short="Keep the kubelet's configuration in the ConfigMap kubelet-config", run=steps.upload_kubelet_config,
              flags=_FLAGS),
    )),
    _KUBECONFIG,
    _KUBELET_CONFIG,
    Phase(name="bootstrap-token", short="Renew what joining nodes are allowed to do", run=steps.bootstrap_token, flags=_FLAGS),
    _ADDON,
    _POST_UPGRADE,
)

NODE_PHASES: tuple[Phase[UpgradeRun], ...] = (
    Phase(name="preflight", short="Check that this node can be upgraded", run=steps.preflight_node,
          flags=("config", "ignore-preflight-errors")),
    Phase(name="control-plane", short="Upgrade the control plane of this node, if it has one", run=steps.control_plane_node,
          flags=_CONTROL_PLANE),
    _KUBECONFIG,
    _KUBELET_CONFIG,
    _ADDON,
    _POST_UPGRADE,
)
# fmt: on


def prepare_apply(options: UpgradeOptions, host: Host, progress: Progress) -> UpgradeRun:
    """Read the configuration of the upgrade and of the cluster."""
    from slipway.node import configuration, kubeversion

    config, _ = configuration.load_upgrade(host, options.text, options.overrides, progress, source=options.source)
    wanted = config.apply
    if not wanted.kubernetes_version:
        raise OperatorError("missing one or more required arguments. Required arguments: [version]")
    # The kubeadm of a version upgrades to it.
    release = kubeversion.acting_release(host.environment, wanted.kubernetes_version)
    state = _prepare(options, host, progress, release, "apply", dry_run=bool(wanted.dry_run), is_control_plane=True)
    state.config, state.ctx.config.patches = config, wanted.patches
    state.ctx.config.cluster.kubernetes_version = _normalized(wanted.kubernetes_version)
    state.ignored = frozenset(name.lower() for name in wanted.ignore_preflight_errors)
    return state


def prepare_node(options: UpgradeOptions, host: Host, progress: Progress) -> UpgradeRun:
    """Read the configuration of the upgrade and of the cluster; a node has a control plane if it has an API server."""
    from slipway.node import configuration

    config, release = configuration.load_upgrade(host, options.text, options.overrides, progress, source=options.source)
    has_api_server = host.exists(f"{paths.MANIFESTS_DIR}/kube-apiserver.yaml")
    state = _prepare(options, host, progress, release, "node", dry_run=bool(config.node.dry_run), is_control_plane=has_api_server)
    state.config, state.ctx.config.patches = config, config.node.patches
    state.ignored = frozenset(name.lower() for name in config.node.ignore_preflight_errors)
    return state


def apply(state: UpgradeRun) -> None:
    """Run the phases of ``upgrade apply``."""
    _execute(APPLY_PHASES, state, tuple(state.config.apply.skip_phases))


def node(state: UpgradeRun) -> None:
    """Run the phases of ``upgrade node``."""
    _execute(NODE_PHASES, state, tuple(state.config.node.skip_phases))


def _execute(tree: tuple[Phase[UpgradeRun], ...], state: UpgradeRun, skip: tuple[str, ...]) -> None:
    phases.execute(tree, state, state.ctx.progress, only=state.options.only, skip=skip)
    if not state.options.only:
        state.ctx.progress.say("[upgrade/successful] Finished dryrunning successfully!")


def _prepare(
    options: UpgradeOptions, host: Host, progress: Progress, release: Release, command: str, *, dry_run: bool, is_control_plane: bool
) -> UpgradeRun:
    from slipway.api.kubeadm.internal import UpgradeConfiguration
    from slipway.node import clusterconfig, dryrun, imagined
    from slipway.node.cluster import DryRunCluster
    from slipway.node.context import NodeContext

    if not dry_run:
        raise OperatorError(f"upgrade {command} needs a live cluster, which this version cannot talk to yet: add --dry-run")
    here = dryrun.host_for(host, dryrun.UPGRADE_VARIABLE, f"kubeadm-upgrade-{command}-dryrun", progress)
    progress.say("[dryrun] Dryrunning without a real client")
    name = host.hostname().strip().lower()
    objects = [*imagined.objects(release, ""), imagined.corefile()]
    cluster = DryRunCluster(progress, release, imagined=objects, lists=imagined.lists(release, name))
    config = clusterconfig.read(cluster, release, progress, "upgrade")
    _fill_in_node(config, cluster, name, host, progress, is_control_plane=is_control_plane)
    clusterconfig.complete(config, release, host, progress)
    ctx = NodeContext(config=config, release=release, host=here, progress=progress)
    return UpgradeRun(
        ctx=ctx, config=UpgradeConfiguration(), options=options, machine=host, cluster=cluster, is_control_plane=is_control_plane
    )


def _fill_in_node(
    config: InitConfiguration, cluster: Cluster, name: str, host: Host, progress: Progress, *, is_control_plane: bool
) -> None:
    """What the cluster knows about this node: its runtime's socket, and where its API server listens."""
    from slipway.api.kubeadm.addresses import parse_host_port
    from slipway.node import machinedefaults, markcontrolplane, staticpods

    found = cluster.get("v1", "Node", name) or {}
    annotations = found.get("metadata", {}).get("annotations", {})
    registration = config.node_registration
    registration.name, registration.taints = name, []
    socket = annotations.get(markcontrolplane.CRI_SOCKET_ANNOTATION, "")
    registration.cri_socket = machinedefaults.cri_socket(socket, host, progress.warn, skip_detection=False)
    if is_control_plane:
        pods: list[Manifest] = list(cluster.list("v1", "Pod", "kube-system", {"component": "kube-apiserver", "tier": "control-plane"}))
        own = next((pod for pod in pods if pod["spec"].get("nodeName") == name), None)
        if own is None:
            raise OperatorError(f'cannot find the Pod of kube-apiserver on the node "{name}"')
        address, port = parse_host_port(own["metadata"]["annotations"][staticpods.ADVERTISE_ADDRESS_ANNOTATION])
        config.local_api_endpoint.advertise_address, config.local_api_endpoint.bind_port = address, int(port)
        machinedefaults.fill_endpoint(config.local_api_endpoint, host, progress.warn)


def _normalized(version: str) -> str:
    from slipway.node import kubeversion

    return kubeversion.normalized(version) or version
