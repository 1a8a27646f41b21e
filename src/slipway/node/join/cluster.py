"""How a join gets to know its cluster: discovery, the release that the cluster runs, its configuration, and clients of it.

Everything is found once and kept.  A dry run imagines the cluster.
"""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Protocol

from slipway.api.kubeadm import addresses
from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.kube import kubeconfig
from slipway.kube.client import Client
from slipway.kube.connection import from_kubeconfig
from slipway.kube.errors import UnauthorizedError, UntrustedError
from slipway.node import paths
from slipway.node.cluster import imagined
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.cluster.live import LiveCluster, connect
from slipway.node.config import cluster as clusterconfig
from slipway.node.config import dynamicdefaults
from slipway.node.config import version as kubeversion
from slipway.node.context import NodeContext
from slipway.node.discovery import distrust
from slipway.node.discovery import token as tokendiscovery
from slipway.node.discovery import trust as discovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.kubeadm.internal import APIEndpoint, Discovery
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.kube.kubeconfig import Document
    from slipway.node.cluster.interface import Cluster
    from slipway.node.join.options import JoinRun


_ANSWER = 2.0
_PATIENCE_FOR_RELEASE = 1.0
"""Seconds for which the checks of the machine wait to be told the release of the cluster, before they go by the newest."""


class Way(Protocol):
    """The way to the cluster."""

    def look_ahead(self, state: JoinRun) -> None:
        """Start to look for the cluster, where that can be done beside the checks of the machine."""

    def expected_release(self, state: JoinRun) -> Release:
        """The release of the cluster if it can be told at once, or else the one that is acted as so far."""

    def release(self, state: JoinRun) -> Release:
        """The release that made or upgraded the cluster last, unless the environment says which one to be."""

    def bootstrap(self, state: JoinRun) -> Document:
        """The kubeconfig that discovery found; a phase of a control plane that has an admin.conf already needs none."""

    def server(self) -> str:
        """Where the cluster is, once it was found."""

    def client(self, state: JoinRun) -> Cluster:
        """The cluster as the credentials of the TLS bootstrap may see it."""

    def administrator(self, state: JoinRun) -> Cluster:
        """The cluster as the administrator of a control plane sees it, by the admin.conf that an earlier phase wrote."""

    def node_client(self, state: JoinRun) -> Cluster:
        """The cluster as the kubelet of this node sees it."""

    def fill_endpoint(self, state: JoinRun, endpoint: APIEndpoint) -> None:
        """The address of a worker, which it advertises to nobody: defaults of components depend on its family."""


def context(state: JoinRun) -> NodeContext:
    """The configuration of the cluster and of this node together, and the release of the cluster to act as."""
    if state.ctx is None:
        way, config = state.way, state.config
        cluster = way.client(state)
        way.bootstrap(state)
        state.release = way.release(state)
        fetched = clusterconfig.read(cluster, state.release, state.progress, "preflight")
        fetched.node_registration = config.node_registration
        if config.control_plane is not None:
            fetched.local_api_endpoint = config.control_plane.local_api_endpoint
        else:
            way.fill_endpoint(state, fetched.local_api_endpoint)
        clusterconfig.complete(fetched, state.release, state.machine, state.progress)
        fetched.timeouts, fetched.patches = config.timeouts, config.patches
        state.ctx = NodeContext(config=fetched, release=state.release, host=state.host, progress=state.progress)
    return state.ctx


def local_api_ready(state: JoinRun) -> Callable[[], bool]:
    """A question to the API server of this node: whether it is ready to let a kubelet in."""
    url = addresses.local_api_url(context(state).config.local_api_endpoint)
    local = connect(state.host, paths.ADMIN_CONF, server=url).client

    def ready() -> bool:
        try:
            local.raw("/readyz", timeout=_ANSWER)
        except OperatorError:
            return False
        return True

    return ready


class Found:
    """A cluster that is there."""

    def __init__(self) -> None:
        self._early: EarlyLook | None = None
        self._bootstrap: Document | None = None
        self._client: Cluster | None = None
        self._admin: Cluster | None = None

    def look_ahead(self, state: JoinRun) -> None:
        wanted = state.config.discovery
        if wanted.bootstrap_token is not None and wanted.file is None:
            self._early = EarlyLook(wanted, state.machine)

    def expected_release(self, state: JoinRun) -> Release:
        if self._early is not None and not kubeversion.acts_as_one_release(state.machine.environment):
            self._early.wait(_PATIENCE_FOR_RELEASE)
            if self._early.version:
                return kubeversion.acting_release(state.machine.environment, self._early.version)
        return state.release

    def release(self, state: JoinRun) -> Release:
        try:
            version = (self._early.version if self._early is not None else "") or clusterconfig.kubernetes_version(self.client(state))
        except OperatorError as error:
            raise _explained(error, state) from error
        if kubeversion.acts_as_one_release(state.machine.environment):
            return state.release
        release = kubeversion.acting_release(state.machine.environment, version)
        acted_as = "that release" if f"v{release.version}" == version else f"v{release.version}"
        state.progress.say(f"[preflight] The cluster runs {version}: acting as {acted_as}")
        return release

    def bootstrap(self, state: JoinRun) -> Document:
        if self._bootstrap is None and state.options.only:
            # A whole join that is run again after it was killed finds the admin.conf of the first try, and discovers all the same.
            self._bootstrap = _of_administrator(state)
        if self._bootstrap is None and self._early is not None:
            self._early.wait()
            self._bootstrap = self._early.bootstrap
        if self._bootstrap is None:
            timeout = waiting.seconds(state.config.timeouts.discovery, 300)
            self._bootstrap = discovery.find(state.config.discovery, state.machine, state.progress, timeout)
        return self._bootstrap

    def server(self) -> str:
        return discovery.only_cluster(self._bootstrap)[0] if self._bootstrap is not None else ""

    def client(self, state: JoinRun) -> Cluster:
        if self._client is None:
            found = self.bootstrap(state)
            known = self._early.client if self._early is not None else None
            self._client = LiveCluster(known or _client(found, state.machine), patience=_patience(state), waiting=_tell(state))
        return self._client

    def administrator(self, state: JoinRun) -> Cluster:
        if self._admin is None:
            self._admin = connect(state.host, paths.ADMIN_CONF, patience=_patience(state), waiting=_tell(state))
        return self._admin

    def node_client(self, state: JoinRun) -> Cluster:
        return connect(state.host, paths.KUBELET_CONF, patience=_patience(state), waiting=_tell(state))

    def fill_endpoint(self, state: JoinRun, endpoint: APIEndpoint) -> None:
        dynamicdefaults.fill_endpoint(endpoint, state.machine, state.progress.warn)


class Imagined:
    """The cluster of a dry run: nobody is asked, and everybody sees the same."""

    def __init__(self) -> None:
        self._bootstrap: Document | None = None
        self._cluster: Cluster | None = None

    def look_ahead(self, state: JoinRun) -> None:
        """There is nothing to look for."""

    def expected_release(self, state: JoinRun) -> Release:
        return state.release

    def release(self, state: JoinRun) -> Release:
        return state.release

    def bootstrap(self, state: JoinRun) -> Document:
        if self._bootstrap is None:
            self._bootstrap = _of_administrator(state)
        if self._bootstrap is None:
            self._bootstrap = discovery.imagine(state.config.discovery, self.client(state), state.machine, check_pins=False)
        return self._bootstrap

    def server(self) -> str:
        return discovery.only_cluster(self._bootstrap)[0] if self._bootstrap is not None else ""

    def client(self, state: JoinRun) -> Cluster:
        if self._cluster is None:
            wanted = state.config.discovery.bootstrap_token
            objects = imagined.objects(state.release, wanted.token if wanted is not None else "")
            self._cluster = DryRunCluster(state.progress, state.release, imagined=objects, expects_cluster=True)
        return self._cluster

    def administrator(self, state: JoinRun) -> Cluster:
        return self.client(state)

    def node_client(self, state: JoinRun) -> Cluster:
        return self.client(state)

    def fill_endpoint(self, state: JoinRun, endpoint: APIEndpoint) -> None:
        """The imagined cluster's own stays."""


class EarlyLook:
    """A first try to find the cluster by a token, on a thread of its own, so that checks of the machine know its release.

    It does not wait for anything: where it fails, the discovery itself says why, and tries again where that helps.
    """

    def __init__(self, wanted: Discovery, host: Host) -> None:
        self.bootstrap: Document | None = None
        self.client: Client | None = None
        self.version = ""
        self._thread = Thread(target=self._look, args=(wanted, host), name="discovery", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _look(self, wanted: Discovery, host: Host) -> None:
        assert wanted.bootstrap_token is not None
        try:
            self.bootstrap = discovery.with_credentials(wanted, tokendiscovery.look(wanted.bootstrap_token, host))
            self.client = _client(self.bootstrap, host)
            self.version = clusterconfig.kubernetes_version(LiveCluster(self.client, patience=0))
        except OperatorError:
            return  # The discovery meets the same problem, and tells of it.


def _of_administrator(state: JoinRun) -> Document | None:
    """The admin.conf of a control plane, where this machine has one already."""
    if state.is_control_plane and state.machine.exists(paths.ADMIN_CONF):
        return kubeconfig.load(state.machine.read(paths.ADMIN_CONF), paths.ADMIN_CONF)
    return None


def _client(found: Document, host: Host) -> Client:
    return Client(from_kubeconfig(found, host.read, source="of the discovery"), environment=host.environment)


def _explained(error: OperatorError, state: JoinRun) -> OperatorError:
    """Why the first request with the credentials of the TLS bootstrap failed."""
    address, ca = discovery.only_cluster(state.way.bootstrap(state))
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
    return waiting.seconds(state.config.timeouts.kubernetes_api_call, 60)


def _tell(state: JoinRun) -> Callable[[str], None]:
    return lambda text: state.progress.say(f"[join] Waiting: {text}")
