"""The Pod around a component of the control plane: its probes, and what of the host is mounted into it.

What the API server, its two companions and etcd have in common.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.duration import Duration
from slipway.node import paths
from slipway.workload import arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.kubeadm.internal import Arg, ClusterConfiguration, EnvVar, ExternalEtcd, HostPathMount, LocalEtcd, Timeouts
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.node.context import NodeContext


PORT_NAME = "probe-port"
ETCD_METRICS_PORT = 2381
HEALTH_CHECK_TIMEOUT = Duration.of(minutes=4)
_PERIOD = Duration.of(seconds=10)
# Scheme, bracketed address, other host, port; urllib would fold the host's case and refuse what Go reads.
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//(?:[^/?#]*@)?(?:\[([^\]/?#]*)\]|([^:/?#\[\]]*))(?::([0-9]*))?(?:[/?#]|$)")
_CA_CERTS = "/etc/ssl/certs"
# Files in /etc/ssl/certs may be links into these, where a distribution has them.
_CA_CERT_SOURCES = (
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
)
_FLEXVOLUMES = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec"
_FOLDER, _FILE = "DirectoryOrCreate", "FileOrCreate"
_SYSTEM_NODE_CRITICAL = 2000001000


def manifest(container: Mapping[str, Any], mounts: Sequence[Mount], annotations: Mapping[str, str], release: Release) -> Manifest:
    """A static Pod of one container; its volumes are sorted by name."""
    name = container["name"]
    metadata: dict[str, Any] = {"name": name, "namespace": "kube-system", "labels": {"component": name, "tier": "control-plane"}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    if release.null_creation_timestamp:
        metadata["creationTimestamp"] = None
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [{**container, "imagePullPolicy": "IfNotPresent"}],
            "hostNetwork": True,
            "priority": _SYSTEM_NODE_CRITICAL,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [mount.volume() for mount in sorted(mounts)],
        },
        "status": {},
    }


def without_root(ctx: NodeContext) -> bool:
    """Whether the control plane is not to run as root: kubeadm's feature gate RootlessControlPlane."""
    return ctx.release.gate(ctx.config.cluster.feature_gates, "RootlessControlPlane")


def env(*groups: Sequence[EnvVar]) -> dict[str, Any]:
    """The field ``env`` of a container; where there is no variable there is none."""
    made = arguments.env(*groups)
    return {"env": made} if made else {}


class Endpoint(NamedTuple):
    """Where a component answers probes; an empty host is the Pod's own address."""

    host: str
    port: int
    scheme: str = "HTTPS"


class Paths(NamedTuple):
    """What is asked for; a component without readiness has an empty path there."""

    live: str
    ready: str
    startup: str


def fields(endpoint: Endpoint, paths: Paths, timeouts: Timeouts, release: Release) -> dict[str, Any]:
    """The probes of a container, and in releases that name their port, the port."""
    timeout = timeouts.control_plane_component_health_check
    attempts = -(-(HEALTH_CHECK_TIMEOUT if timeout is None else timeout) // _PERIOD)
    port: str | int = PORT_NAME if release.named_probe_ports else endpoint.port
    # A startup probe and a liveness probe skip their first period; readiness is of interest at once.
    made: dict[str, Any] = {
        "livenessProbe": _probe(endpoint, paths.live, port, delay=10, failures=8, period=10),
        "startupProbe": _probe(endpoint, paths.startup, port, delay=10, failures=attempts, period=10),
    }
    if paths.ready:
        made["readinessProbe"] = _probe(endpoint, paths.ready, port, delay=0, failures=3, period=1)
    if release.named_probe_ports:
        made["ports"] = [{"name": PORT_NAME, "containerPort": endpoint.port, "protocol": "TCP"}]
    return made


def bind_address(args: Sequence[Arg]) -> str:
    """Where a component listens by its ``bind-address``; all addresses cannot be asked, so that is the Pod's."""
    return reachable(value) if (value := arguments.value_of(args, "bind-address")) is not None else "127.0.0.1"


def reachable(address: str) -> str:
    return "" if address in ("0.0.0.0", "::") else address


def etcd_endpoint(local: LocalEtcd, loopback: str) -> Endpoint:
    """Where etcd serves its health: the first of the ``listen-metrics-urls``, else the loopback address."""
    urls = arguments.value_of(local.extra_args, "listen-metrics-urls")
    default = Endpoint(loopback, ETCD_METRICS_PORT, "HTTP")
    if urls is None:
        return default
    url = _URL.match(urls.split(",")[0])
    if url is None:
        return default
    scheme, address, name, port = (part or "" for part in url.groups())
    usable = port != "" and 1 <= int(port) <= 65535
    return Endpoint(
        address or name or loopback, int(port) if usable else ETCD_METRICS_PORT, "HTTPS" if scheme.lower() == "https" else "HTTP"
    )


def _probe(endpoint: Endpoint, path: str, port: str | int, *, delay: int, failures: int, period: int) -> dict[str, Any]:
    get = {"host": endpoint.host, "path": path, "port": port, "scheme": endpoint.scheme}
    probe = {"initialDelaySeconds": delay, "timeoutSeconds": 15, "failureThreshold": failures, "periodSeconds": period}
    return {
        "httpGet": {name: value for name, value in get.items() if value},
        # Go leaves zeros out.
        **{name: value for name, value in probe.items() if value},
    }


class Mount(NamedTuple):
    """A path of the host, and where a container sees it."""

    name: str
    host_path: str
    mount_path: str
    read_only: bool
    path_type: str

    def volume(self) -> dict[str, Any]:
        return {"name": self.name, "hostPath": {"path": self.host_path, "type": self.path_type}}

    def volume_mount(self) -> dict[str, Any]:
        mount: dict[str, Any] = {"name": self.name, "mountPath": self.mount_path}
        return {**mount, "readOnly": True} if self.read_only else mount


def folder(name: str, path: str, *, read_only: bool = True) -> Mount:
    """A folder that has the same path on both sides."""
    return Mount(name, path, path, read_only, _FOLDER)


def for_component(component: str, cluster: ClusterConfiguration, release: Release, host: Host) -> list[Mount]:
    """The mounts of a control plane component by name; a user's ``extraVolumes`` replace those of the same name."""
    match component:
        case "kube-apiserver":
            mounts = [*_certificates(cluster, host), *_external_etcd(cluster)]
            extra = cluster.api_server.extra_volumes
        case "kube-controller-manager":
            mounts = [*_certificates(cluster, host), _kubeconfig(paths.CONTROLLER_MANAGER_CONF), *_flexvolumes(cluster, release)]
            extra = cluster.controller_manager.extra_volumes
        case _:
            mounts = [_kubeconfig(paths.SCHEDULER_CONF)]
            extra = cluster.scheduler.extra_volumes
    named = {mount.name: mount for mount in [*mounts, *map(_extra, extra)]}
    return [named[name] for name in sorted(named)]


def external_etcd_folders(etcd: ExternalEtcd, certificates_dir: str) -> list[str]:
    """The folders to mount for the files of an external etcd: none twice, none that is mounted anyway."""
    mounted = (*_CA_CERT_SOURCES, _CA_CERTS, certificates_dir)
    needed: set[str] = set()
    for path in filter(None, (etcd.ca_file, etcd.cert_file, etcd.key_file)):
        directory = paths.clean(posixpath.dirname(path))
        # Prefixes of texts, not of paths, as kubeadm compares them.
        if directory == "." or directory.startswith(mounted):
            continue
        needed -= {other for other in needed if other.startswith(directory)}
        if not directory.startswith(tuple(needed)):
            needed.add(directory)
    return sorted(needed)


def _certificates(cluster: ClusterConfiguration, host: Host) -> Iterable[Mount]:
    yield folder("k8s-certs", cluster.certificates_dir)
    yield folder("ca-certs", _CA_CERTS)
    for path in _CA_CERT_SOURCES:
        if host.exists(path):
            yield folder(path[1:].replace("/", "-"), path)


def _external_etcd(cluster: ClusterConfiguration) -> Iterable[Mount]:
    if cluster.etcd.external is not None:
        for position, path in enumerate(external_etcd_folders(cluster.etcd.external, cluster.certificates_dir)):
            yield folder(f"etcd-certs-{position}", path)


def _flexvolumes(cluster: ClusterConfiguration, release: Release) -> Iterable[Mount]:
    """Plug-ins talk to their storage through sockets in this folder, so it is writable."""
    if release.flexvolume_mount:
        path = arguments.value_of(cluster.controller_manager.extra_args, "flex-volume-plugin-dir")
        yield folder("flexvolume-dir", _FLEXVOLUMES if path is None else path, read_only=False)


def _kubeconfig(path: str) -> Mount:
    return Mount("kubeconfig", path, path, True, _FILE)


def _extra(mount: HostPathMount) -> Mount:
    return Mount(mount.name, mount.host_path, mount.mount_path, mount.read_only, mount.path_type)
