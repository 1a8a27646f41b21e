"""What of the host is mounted into the Pods of the control plane."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.node import paths
from slipway.workload import arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.kubeadm.internal import ClusterConfiguration, ExternalEtcd, HostPathMount
    from slipway.api.releases import Release
    from slipway.host.interface import Host

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
