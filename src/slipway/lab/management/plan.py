"""What a management plane consists of: the control plane that kubeadm would make, as three processes of this machine.

A configuration file for ``init`` says in what it differs from kubeadm's: it stays on the loopback address, or on the bridge of a lab
whose hosts are to reach it, on ports of its own, under a folder of its own.  Flags, certificates and kubeconfigs follow from
that file as they do on a node.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from slipway.api.kubeadm import addresses
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.machinery.yaml import goyaml
from slipway.api.releases import NEWEST, release_for
from slipway.host.real import RealHost
from slipway.kube import kubeconfig
from slipway.lab.management import state
from slipway.lab.management.ports import LOOPBACK
from slipway.node import kubeconfigs, paths
from slipway.node.config import load as configuration
from slipway.node.context import NodeContext
from slipway.node.etcd import pod as etcd
from slipway.node.pki import store
from slipway.node.staticpods import components
from slipway.workload import arguments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slipway.host.progress import Progress

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
# kubeadm's, but for one: no kubelet is here, so Nodes that somebody makes are as they were made.
_CONTROLLERS = "*,bootstrapsigner,tokencleaner,-node-lifecycle-controller"
"""In the order in which they depend on each other."""
PEER_PORT = "etcd-peer"
PORTS = (*PROGRAMS, PEER_PORT)
"""What ports are for; a program's main one has its name."""

KUBECONFIG, DATA, LOGS = "/kubeconfig", "/etcd", "/logs"
ETCD_DATA = "etcd/member"
"""What is in the folder when etcd has run once."""
FILES = ("etcd", "etc", "kubeconfig", "logs", state.FILE_NAME)
"""What a plane has in its folder, the record last."""
CLUSTER = "management"
_ETCD_CERTIFICATES = ("etcd-ca", "etcd-server", "etcd-peer", "etcd-healthcheck-client")
_OTHER_CERTIFICATES = ("apiserver-etcd-client", "ca", "apiserver", "apiserver-kubelet-client", "front-proxy-ca", "front-proxy-client")
_API_VERSION = "kubeadm.k8s.io/v1beta4"
# Reserved for documentation (RFC 5737); see context().
_STAND_IN_ADDRESS = "192.0.2.1"


def parse_version(text: str) -> Version:
    """A version that can be run; everything else is refused with a sentence."""
    try:
        version = Version.parse(text)
    except ValueError:
        raise OperatorError(f'"{text}" is not a Kubernetes version: give one such as v{NEWEST}') from None
    release_for(version)
    return version


def owner(port: str) -> str:
    """The program that listens on a port."""
    return "etcd" if port == PEER_PORT else port


def server(ports: Mapping[str, int], address: str = LOOPBACK) -> str:
    """The URL of the API server."""
    return f"https://{address}:{ports['kube-apiserver']}"


def kubeconfig_path(folder: Path) -> Path:
    return folder / KUBECONFIG.lstrip("/")


def log_path(folder: Path, name: str) -> Path:
    return folder / LOGS.lstrip("/") / f"{name}.log"


def configuration_text(version: Version, ports: Mapping[str, int], address: str = LOOPBACK) -> str:
    """The configuration file for ``init``, of an API server at ``address``; the other programs stay on loopback."""
    client, peer = f"https://{LOOPBACK}:{ports['etcd']}", f"https://{LOOPBACK}:{ports[PEER_PORT]}"
    init = {
        "apiVersion": _API_VERSION,
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": _STAND_IN_ADDRESS, "bindPort": ports["kube-apiserver"]},
        "nodeRegistration": {"name": CLUSTER},
    }
    cluster = {
        "apiVersion": _API_VERSION,
        "kind": "ClusterConfiguration",
        "clusterName": CLUSTER,
        "kubernetesVersion": f"v{version}",
        "encryptionAlgorithm": "ECDSA-P256",  # made in no time
        "apiServer": {
            "certSANs": ["localhost", *([] if address == LOOPBACK else [LOOPBACK])],
            "extraArgs": _args(
                {
                    "bind-address": address,
                    # The Service `kubernetes` cannot have a loopback address as its endpoint, and no Pod is there to ask for it.
                    "endpoint-reconciler-type": "none",
                }
            ),
        },
        "controllerManager": {
            "extraArgs": _args(
                {
                    "controllers": _CONTROLLERS,
                    "leader-elect": "false",
                    "secure-port": str(ports["kube-controller-manager"]),
                }
            )
        },
        "etcd": {
            "local": {
                "dataDir": DATA,
                "extraArgs": _args(
                    {
                        "advertise-client-urls": client,
                        # A member without others has nobody to wait for: it elects itself in 0.1 s instead of in 1 s.
                        "election-timeout": "100",
                        "heartbeat-interval": "20",
                        "initial-advertise-peer-urls": peer,
                        "initial-cluster": f"{CLUSTER}={peer}",
                        "listen-client-urls": client,
                        "listen-metrics-urls": "",  # they are at the client URL, too
                        "listen-peer-urls": peer,
                    }
                ),
            }
        },
    }
    return f"{goyaml.dump(init)}---\n{goyaml.dump(cluster)}"


def context(folder: Path, version: Version, ports: Mapping[str, int], progress: Progress, address: str = LOOPBACK) -> NodeContext:
    """The plane as a node whose root is ``folder``."""
    host = RealHost(root=str(folder), environment={})
    config, release = configuration.load_init(host, configuration_text(version, ports, address), {}, progress, skip_cri_detection=True)
    # kubeadm has no control plane that is for its own machine only, and takes a loopback address for "find one".
    config.local_api_endpoint.advertise_address = address
    return NodeContext(config=config, release=release, host=host, progress=progress)


def command(ctx: NodeContext, name: str, program: Path) -> list[str]:
    """The command line of a program: that of its static Pod, with the paths in it below the plane's folder."""
    pod = etcd.manifest(ctx) if name == "etcd" else components.manifest(name, ctx)
    flags, _ = arguments.from_command(pod["spec"]["containers"][0]["command"])
    return [str(program), *(f"--{flag.name}={ctx.host.location(flag.value)}" for flag in flags)]


def make_etcd_credentials(ctx: NodeContext) -> None:
    """What etcd needs to start."""
    with _told_with_folder(ctx):
        for name in _ETCD_CERTIFICATES:
            store.ensure_certificate(ctx, name)
    ctx.host.make_dir(DATA, 0o700)


def make_other_credentials(ctx: NodeContext) -> None:
    """What the other programs and the administrator need."""
    with _told_with_folder(ctx):
        for name in _OTHER_CERTIFICATES:
            store.ensure_certificate(ctx, name)
        store.ensure_service_account_key(ctx)
        _make_kubeconfig(ctx, paths.CONTROLLER_MANAGER_CONF, "system:kube-controller-manager")
        # Members of this group are cluster-admin without a binding that somebody would have to make first.
        _make_kubeconfig(ctx, KUBECONFIG, "kubernetes-admin", "system:masters")


def _make_kubeconfig(ctx: NodeContext, path: str, user: str, *groups: str) -> None:
    """A kubeconfig that leads to the API server's port; an old one is replaced where the port is another now."""
    if ctx.host.exists(path):
        cluster = kubeconfig.named(kubeconfig.load(ctx.host.read(path), ctx.host.location(path)), "cluster", CLUSTER) or {}
        if cluster.get("server") == addresses.control_plane_url(ctx.config):
            return
    ctx.host.write(path, kubeconfigs.user(ctx, client_name=user, organizations=groups).encode(), 0o600)


@contextmanager
def _told_with_folder(ctx: NodeContext) -> Iterator[None]:
    """The steps of a node name files as a node has them; here they are below the folder."""
    try:
        yield
    except OperatorError as error:
        raise OperatorError(f"the certificates below {ctx.host.location('/')} cannot be used: {error.message}") from error


def _args(flags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in flags.items()]
