"""How a join gets to know its cluster: discovery, the release that the cluster runs, its configuration, and clients of it.

Everything is found once and kept in the run.  A dry run imagines the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.kubeadm.internal import Discovery
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.kube.client import Client
    from slipway.kube.kubeconfig import Document
    from slipway.node.cluster.interface import Cluster
    from slipway.node.cluster.live import LiveCluster
    from slipway.node.context import NodeContext
    from slipway.node.join.steps import JoinRun


_ANSWER = 2.0
_PATIENCE_FOR_RELEASE = 1.0
"""Seconds for which the checks of the machine wait to be told the release of the cluster, before they go by the newest."""


class EarlyLook:
    """A first try to find the cluster by a token, on a thread of its own, so that checks of the machine know its release.

    It does not wait for anything: where it fails, the discovery itself says why, and tries again where that helps.
    """

    def __init__(self, wanted: Discovery, host: Host) -> None:
        from threading import Thread

        self.bootstrap: Document | None = None
        self.client: Client | None = None
        self.version = ""
        self._thread = Thread(target=self._look, args=(wanted, host), name="discovery", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _look(self, wanted: Discovery, host: Host) -> None:
        from slipway.node.cluster.live import LiveCluster
        from slipway.node.config import cluster as clusterconfig
        from slipway.node.discovery import token as tokendiscovery
        from slipway.node.discovery import trust as discovery

        assert wanted.bootstrap_token is not None
        try:
            self.bootstrap = discovery.with_credentials(wanted, tokendiscovery.look(wanted.bootstrap_token, host))
            self.client = _client(self.bootstrap, host)
            self.version = clusterconfig.kubernetes_version(LiveCluster(self.client, patience=0))
        except OperatorError:
            return  # The discovery meets the same problem, and tells of it.


def look_early(state: JoinRun) -> None:
    """Start to look for the cluster, if a token is to find it."""
    wanted = state.config.discovery
    if not state.host.dry_run and wanted.bootstrap_token is not None and wanted.file is None:
        state.early = EarlyLook(wanted, state.machine)


def expected_release(state: JoinRun) -> Release:
    """The release of the cluster if it can be told at once, or else the one that is acted as so far."""
    from slipway.node.config import version as kubeversion

    if state.early is not None and not kubeversion.acts_as_one_release(state.machine.environment):
        state.early.wait(_PATIENCE_FOR_RELEASE)
        if state.early.version:
            return kubeversion.acting_release(state.machine.environment, state.early.version)
    return state.release


def context(state: JoinRun) -> NodeContext:
    """The configuration of the cluster and of this node together, and the release of the cluster to act as."""
    from slipway.node.config import cluster as clusterconfig
    from slipway.node.config import dynamicdefaults
    from slipway.node.context import NodeContext

    if state.ctx is None:
        cluster, config = client(state), state.config
        bootstrap(state)
        state.release = _release(state, cluster)
        fetched = clusterconfig.read(cluster, state.release, state.progress, "preflight")
        fetched.node_registration = config.node_registration
        if config.control_plane is not None:
            fetched.local_api_endpoint = config.control_plane.local_api_endpoint
        elif not state.host.dry_run:
            # Defaults of components depend on the family of the address, which a worker advertises to nobody.
            dynamicdefaults.fill_endpoint(fetched.local_api_endpoint, state.machine, state.progress.warn)
        clusterconfig.complete(fetched, state.release, state.machine, state.progress)
        fetched.timeouts, fetched.patches = config.timeouts, config.patches
        state.ctx = NodeContext(config=fetched, release=state.release, host=state.host, progress=state.progress)
    return state.ctx


def bootstrap(state: JoinRun) -> Document:
    """The kubeconfig that discovery found; a phase of a control plane that has an admin.conf already needs none."""
    from slipway.host import waiting
    from slipway.kube import kubeconfig
    from slipway.node.discovery import trust as discovery

    if state.bootstrap is None:
        # A whole join that is run again after it was killed finds the admin.conf of the first try, and discovers all the same.
        alone = state.host.dry_run or state.options.only
        if alone and state.config.control_plane is not None and state.machine.exists(paths.ADMIN_CONF):
            state.bootstrap = kubeconfig.load(state.machine.read(paths.ADMIN_CONF), paths.ADMIN_CONF)
        elif state.host.dry_run:
            state.bootstrap = discovery.imagine(state.config.discovery, client(state), state.machine, check_pins=False)
        else:
            if state.early is not None:
                state.early.wait()
                state.bootstrap = state.early.bootstrap
            if state.bootstrap is None:
                timeout = waiting.seconds(state.config.timeouts.discovery, 300)
                state.bootstrap = discovery.find(state.config.discovery, state.machine, state.progress, timeout)
    return state.bootstrap


def client(state: JoinRun) -> Cluster:
    """The cluster as the credentials of the TLS bootstrap may see it."""
    if state.cluster is None:
        state.cluster = _imagined(state) if state.host.dry_run else _connected(state)
    return state.cluster


def administrator(state: JoinRun) -> Cluster:
    """The cluster as the administrator of a control plane sees it, by the admin.conf that an earlier phase wrote."""
    from slipway.node.cluster.live import connect

    if state.host.dry_run:
        return client(state)
    if state.admin is None:
        state.admin = connect(state.host, paths.ADMIN_CONF, patience=_patience(state), waiting=_tell(state))
    return state.admin


def node_client(state: JoinRun) -> Cluster:
    """The cluster as the kubelet of this node sees it."""
    from slipway.node.cluster.live import connect

    if state.host.dry_run:
        return client(state)
    return connect(state.host, paths.KUBELET_CONF, patience=_patience(state), waiting=_tell(state))


def local_api_ready(state: JoinRun) -> Callable[[], bool]:
    """A question to the API server of this node: whether it is ready to let a kubelet in."""
    from slipway.node.cluster.live import connect
    from slipway.workload import endpoints

    url = endpoints.local_api_url(context(state).config.local_api_endpoint)
    local = connect(state.host, paths.ADMIN_CONF, server=url).client

    def ready() -> bool:
        try:
            local.raw("/readyz", timeout=_ANSWER)
        except OperatorError:
            return False
        return True

    return ready


def server(state: JoinRun) -> str:
    """Where the cluster is, once it was found."""
    from slipway.node.discovery import trust as discovery

    return discovery.only_cluster(state.bootstrap)[0] if state.bootstrap is not None else ""


def _connected(state: JoinRun) -> LiveCluster:
    from slipway.node.cluster.live import LiveCluster

    found = bootstrap(state)
    known = state.early.client if state.early is not None else None
    return LiveCluster(known or _client(found, state.machine), patience=_patience(state), waiting=_tell(state))


def _client(found: Document, host: Host) -> Client:
    from slipway.kube.client import Client
    from slipway.kube.connection import from_kubeconfig

    return Client(from_kubeconfig(found, host.read, source="of the discovery"), environment=host.environment)


def _imagined(state: JoinRun) -> Cluster:
    from slipway.node.cluster import imagined
    from slipway.node.cluster.dryrun import DryRunCluster

    token = state.config.discovery.bootstrap_token.token if state.config.discovery.bootstrap_token is not None else ""
    return DryRunCluster(state.progress, state.release, imagined=imagined.objects(state.release, token), expects_cluster=True)


def _release(state: JoinRun, cluster: Cluster) -> Release:
    """The release that made or upgraded the cluster last, unless the environment says which one to be."""
    from slipway.node.config import cluster as clusterconfig
    from slipway.node.config import version as kubeversion

    if state.host.dry_run:
        return state.release
    try:
        version = (state.early.version if state.early is not None else "") or clusterconfig.kubernetes_version(cluster)
    except OperatorError as error:
        raise _explained(error, state) from error
    if kubeversion.acts_as_one_release(state.machine.environment):
        return state.release
    release = kubeversion.acting_release(state.machine.environment, version)
    acted_as = "that release" if f"v{release.version}" == version else f"v{release.version}"
    state.progress.say(f"[preflight] The cluster runs {version}: acting as {acted_as}")
    return release


def _explained(error: OperatorError, state: JoinRun) -> OperatorError:
    """Why the first request with the credentials of the TLS bootstrap failed."""
    from slipway.kube.errors import UnauthorizedError, UntrustedError
    from slipway.node.discovery import distrust
    from slipway.node.discovery import trust as discovery

    address, ca = discovery.only_cluster(bootstrap(state))
    if isinstance(error, UntrustedError):
        return distrust.distrust(error.message, address, ca, state.machine.now())
    if isinstance(error, UnauthorizedError):
        token_id = state.config.discovery.tls_bootstrap_token.partition(".")[0]
        whose = f'the token with the id "{token_id}"' if token_id else "the credentials of the discovery file"
        return OperatorError(
            f"{address} does not accept {whose} for authentication: it has expired, was deleted, or lacks that usage. "
            'Use "kubeadm token create" on the control-plane node to create a new valid token'
        )
    return OperatorError(f"unable to fetch the kubeadm-config ConfigMap: {error.message}")


def _patience(state: JoinRun) -> float:
    from slipway.host import waiting

    return waiting.seconds(state.config.timeouts.kubernetes_api_call, 60)


def _tell(state: JoinRun) -> Callable[[str], None]:
    return lambda text: state.progress.say(f"[join] Waiting: {text}")
