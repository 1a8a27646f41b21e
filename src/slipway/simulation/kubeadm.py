"""kubeadm of a simulated host: ``init`` and ``join`` with the node tool's own configuration, discovery and manifests.

The configuration is read, defaulted and validated as on a real host, the cluster is found and believed by its token and its pins, and the
files are those that the kubelet really reads.  Certificates that nobody in a simulation looks at are not made.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.credentials import keys, tokens, x509
from slipway.credentials.profile import CLIENT_AUTH, DEFAULT_VALIDITY, Profile
from slipway.host import waiting
from slipway.host.progress import WarningsOnly
from slipway.kube import kubeconfig
from slipway.kube.client import Client
from slipway.kube.connection import from_kubeconfig
from slipway.node import addons, paths
from slipway.node.cluster import marking
from slipway.node.cluster.live import LiveCluster, connect
from slipway.node.config import cluster as clusterconfig
from slipway.node.config import dynamicdefaults, load
from slipway.node.config import version as kubeversion
from slipway.node.context import NodeContext
from slipway.node.discovery import trust
from slipway.node.etcd import pod as etcdpod
from slipway.node.join import tlsbootstrap
from slipway.node.kubelet import files as kubelet
from slipway.node.staticpods import components
from slipway.simulation.host.view import SimulatedHost
from slipway.simulation.workload.etcd import RefusedError
from slipway.workload import clusterinfo, configmaps, roles

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.host.machine import Machine
    from slipway.simulation.shell.process import Process
    from slipway.simulation.workload.cluster import WorkloadCluster

_PATIENCE = 60.0
_ADMIN = Profile(common_name="kubernetes-admin", organizations=(roles.CLUSTER_ADMINS,), usages=(CLIENT_AUTH,))
_SUPER_ADMIN = Profile(common_name="kubernetes-super-admin", organizations=("system:masters",), usages=(CLIENT_AUTH,))


class Surroundings(Protocol):
    """What is around a host, for who works in a thread."""

    def initialised(
        self, machine: Machine, node: str, endpoint: str, authority: x509.Authority, etcd: x509.Authority, version: str
    ) -> WorkloadCluster:
        """A new cluster, whose first control plane the machine is."""

    def joined(self, machine: Machine, node: str, ca: bytes) -> WorkloadCluster | None:
        """The machine is a control plane of a cluster from now on; None where there is no such cluster."""

    def within(self, action: Callable[[], object]) -> object:
        """What comes of something that is done where everything else of the simulation is done."""


def run(surroundings: Surroundings, machine: Machine, process: Process) -> int:
    """``kubeadm init`` and ``kubeadm join`` with a file, as bootstrap data runs them."""
    words = process.arguments
    if words[:1] == ["version"]:
        process.say(machine.installed.kubernetes)
        return 0
    if len(words) < 3 or words[0] not in ("init", "join") or words[1] != "--config":
        return process.fail(f"{' '.join(words)}: this is not simulated", 2)
    # It is the kubeadm of the image that runs, with that one's rules of skew.
    host = SimulatedHost(machine, {kubeversion.ACT_AS: machine.installed.kubernetes})
    try:
        text = host.read(process.path(words[2])).decode()
        if words[0] == "init":
            _init(surroundings, machine, host, text)
        else:
            _join(surroundings, machine, host, text)
    except (OperatorError, OSError) as error:
        return process.fail(f"error: {error}")
    return 0


def _init(surroundings: Surroundings, machine: Machine, host: SimulatedHost, text: str) -> None:
    config, release = load.load_init(host, text, {}, WarningsOnly(), source="the configuration", look_up=False)
    if host.exists(f"{paths.MANIFESTS_DIR}/kube-apiserver.yaml"):
        raise OperatorError(f"[preflight] {paths.MANIFESTS_DIR}/kube-apiserver.yaml already exists")
    ctx = NodeContext(config=config, release=release, host=host, progress=WarningsOnly())
    authority, etcd_authority = _authority(ctx, "ca"), _authority(ctx, "etcd/ca")
    endpoint = config.cluster.control_plane_endpoint or f"{config.local_api_endpoint.advertise_address}:6443"
    _kubeconfig(ctx, authority, paths.ADMIN_CONF, _ADMIN, endpoint)
    node = Profile(common_name=f"system:node:{config.node_registration.name}", organizations=("system:nodes",), usages=(CLIENT_AUTH,))
    _kubeconfig(ctx, authority, paths.KUBELET_CONF, node, endpoint)
    _kubeconfig(ctx, authority, paths.SUPER_ADMIN_CONF, _SUPER_ADMIN, endpoint)
    _static_pods(ctx)
    kubelet.write_files(ctx)
    name = config.node_registration.name
    surroundings.initialised(machine, name, endpoint, authority, etcd_authority, config.cluster.kubernetes_version)
    _start_kubelet(host)
    _wait_for_api(host, paths.SUPER_ADMIN_CONF)
    connect(host, paths.SUPER_ADMIN_CONF).apply(roles.cluster_admins())
    cluster = connect(host, paths.ADMIN_CONF)
    publish(ctx, cluster, endpoint, authority)
    marking.mark(ctx, cluster)


def publish(ctx: NodeContext, cluster: LiveCluster, endpoint: str, authority: x509.Authority) -> None:
    """What a cluster has inside from its first init on."""
    config, release = ctx.config, ctx.release
    cluster.apply_all([*configmaps.kubeadm_config(config.cluster, release), *configmaps.kubelet_config(config.cluster, release)])
    for token in config.bootstrap_tokens:
        cluster.apply(tokens.secret(token, ctx.host.now()))
    for _, made in roles.for_joining_nodes(release):
        cluster.apply_all(made)
    info = clusterinfo.kubeconfig(f"https://{endpoint}", kubeconfig.encoded(x509.pem(authority.certificate)), release)
    cluster.apply_all([clusterinfo.config_map(info), *clusterinfo.access()])
    for addon in ("coredns", "kube-proxy"):
        if not (config.cluster.dns if addon == "coredns" else config.cluster.proxy).disabled:
            addons.install(addon, ctx, cluster)


def restore(machine: Machine, text: str, authority: x509.Authority, members: list[etcdpod.Member], *, control_plane: bool) -> NodeContext:
    """The files of a machine that became a node before, as kubeadm would have left them; it is to have power."""
    host = SimulatedHost(machine, {kubeversion.ACT_AS: machine.installed.kubernetes})
    config, release = load.load_init(host, text, {}, WarningsOnly(), source="the configuration", look_up=False)
    ctx = NodeContext(config=config, release=release, host=host, progress=WarningsOnly())
    node = Profile(common_name=f"system:node:{config.node_registration.name}", organizations=("system:nodes",), usages=(CLIENT_AUTH,))
    _kubeconfig(ctx, authority, paths.KUBELET_CONF, node, config.cluster.control_plane_endpoint)
    kubelet.write_files(ctx)
    if control_plane:
        _static_pods(ctx, members)
    return ctx


def _join(surroundings: Surroundings, machine: Machine, host: SimulatedHost, text: str) -> None:
    progress = WarningsOnly()
    wanted, release = load.load_join(host, text, {}, progress, source="the configuration")
    timeout = waiting.seconds(wanted.timeouts.discovery, 300)
    bootstrap = trust.find(wanted.discovery, host, progress, min(timeout, _PATIENCE))
    client = Client(from_kubeconfig(bootstrap, host.read, source="of the discovery"), environment=host.environment)
    cluster = LiveCluster(client, patience=_PATIENCE)
    _check_skew(clusterconfig.kubernetes_version(cluster), machine.installed.kubernetes)
    config = clusterconfig.read(cluster, release, progress, "preflight")
    config.node_registration = wanted.node_registration
    if wanted.control_plane is not None:
        config.local_api_endpoint = wanted.control_plane.local_api_endpoint
    else:
        dynamicdefaults.fill_endpoint(config.local_api_endpoint, host, progress.warn)
    clusterconfig.complete(config, release, host, progress)
    config.timeouts, config.patches = wanted.timeouts, wanted.patches
    ctx = NodeContext(config=config, release=release, host=host, progress=progress)
    ca = trust.certificate_authority(bootstrap)
    if wanted.control_plane is None:
        tlsbootstrap.write_authority(ctx, bootstrap, f"{config.cluster.certificates_dir}/ca.crt")
        tlsbootstrap.write_credentials(ctx, bootstrap)
        kubelet.write_joined_files(ctx, worker=True)
        _start_kubelet(host)
        _wait_for_kubelet(host)
        return
    _join_control_plane(surroundings, machine, ctx, bootstrap, ca)


def _join_control_plane(surroundings: Surroundings, machine: Machine, ctx: NodeContext, bootstrap: kubeconfig.Document, ca: bytes) -> None:
    host, config = ctx.host, ctx.config
    assert isinstance(host, SimulatedHost)
    authority = _authority(ctx, "ca")
    if x509.public_key_pins(x509.pem(authority.certificate)) != x509.public_key_pins(ca):
        raise OperatorError("the certificate authority on this host is not the cluster's")
    server, _ = trust.only_cluster(bootstrap)
    _kubeconfig(ctx, authority, paths.ADMIN_CONF, _ADMIN, server.removeprefix("https://"))
    name = config.node_registration.name
    cluster = surroundings.joined(machine, name, ca)
    if cluster is None:
        raise OperatorError("there is no such cluster in the simulation")
    peer = etcdpod.peer_url(config.local_api_endpoint)

    def add() -> list[etcdpod.Member]:
        try:
            cluster.etcd.add(peer, learner=True)
        except RefusedError as error:
            raise OperatorError(f"[etcd] {error.message}") from None
        return [etcdpod.Member(member.name or name, member.peer_url) for member in cluster.etcd.members.values()]

    members = _tried(lambda: surroundings.within(add))
    assert isinstance(members, list)
    _static_pods(ctx, members)
    kubelet.write_joined_files(ctx, worker=False)
    tlsbootstrap.write_credentials(ctx, bootstrap)
    _start_kubelet(host)
    _wait_for_kubelet(host)

    def promote() -> None:
        number = next((member.id for member in cluster.etcd.members.values() if member.peer_url == peer), 0)
        try:
            cluster.etcd.promote(number)
        except RefusedError as error:
            raise OperatorError(f"[etcd] {error.message}") from None

    _tried(lambda: surroundings.within(promote))
    marking.mark(ctx, connect(host, paths.ADMIN_CONF))


def _check_skew(cluster: str, kubeadm: str) -> None:
    """kubeadm joins a control plane of its own minor, and a kubelet is never newer: the kubelet is of the same image."""
    have, mine = Version.tolerant(cluster), Version.tolerant(kubeadm)
    if mine.minor != have.minor and not have.minor - 3 <= mine.minor <= have.minor + 1:
        raise OperatorError(f"this version of kubeadm ({kubeadm}) cannot join a cluster of {cluster}")


def _static_pods(ctx: NodeContext, members: list[etcdpod.Member] | None = None) -> None:
    for component in components.COMPONENTS:
        components.write_manifest(ctx, component, components.manifest(component, ctx))
    if ctx.config.cluster.etcd.local is not None:
        ctx.host.make_dir(ctx.config.cluster.etcd.local.data_dir, 0o700)
        components.write_manifest(ctx, "etcd", etcdpod.manifest(ctx, members or ()))


def _authority(ctx: NodeContext, name: str) -> x509.Authority:
    """The CA that user-data brought, or a new one as kubeadm makes it where none is there."""
    folder, host = ctx.config.cluster.certificates_dir, ctx.host
    if not host.exists(f"{folder}/{name}.crt"):
        key = keys.generate("ECDSA-P256")
        made = x509.self_signed(Profile(common_name="kubernetes"), key, x509.period(host.now(), DEFAULT_VALIDITY), sha256_key_id=True)
        host.write(f"{folder}/{name}.crt", x509.pem(made), 0o644)
        host.write(f"{folder}/{name}.key", keys.private_pem(key))
    return x509.Authority(x509.parse(host.read(f"{folder}/{name}.crt"))[0], keys.parse_private(host.read(f"{folder}/{name}.key")))


def _kubeconfig(ctx: NodeContext, authority: x509.Authority, path: str, profile: Profile, endpoint: str) -> None:
    key = keys.generate("ECDSA-P256")
    certificate = x509.signed(profile, key.public_key(), authority, x509.period(ctx.host.now(), DEFAULT_VALIDITY))
    credentials = {
        "client-certificate-data": kubeconfig.encoded(x509.pem(certificate)),
        "client-key-data": kubeconfig.encoded(keys.private_pem(key)),
    }
    document = kubeconfig.document(
        server=f"https://{endpoint}",
        cluster=ctx.config.cluster.cluster_name,
        user=profile.common_name,
        ca=x509.pem(authority.certificate),
        credentials=credentials,
    )
    ctx.host.write(path, kubeconfig.text(document, ctx.release).encode())


def _start_kubelet(host: SimulatedHost) -> None:
    done = host.run("systemctl", "restart", "kubelet")
    if done.code:
        raise OperatorError(f"[kubelet-start] {done.stderr.strip()}")


def _wait_for_kubelet(host: SimulatedHost) -> None:
    """Until the TLS bootstrap is done."""
    waiting.until(
        lambda: "" if host.exists(paths.KUBELET_CONF) else "the kubelet has not performed the TLS Bootstrap",
        timeout=_PATIENCE,
        interval=0.02,
    )


def _wait_for_api(host: SimulatedHost, path: str) -> None:
    def probe() -> str:
        host.machine.check_power(host.machine.boots)
        try:
            connect(host, path, patience=0).client.raw("/readyz", timeout=2.0)
        except OperatorError as error:
            return error.message
        return ""

    waiting.until(probe, timeout=_PATIENCE, interval=0.02)


def _tried(action: Callable[[], object]) -> object:
    """What etcd turns away while it settles is asked again, as kubeadm does."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return action()
        except OperatorError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
