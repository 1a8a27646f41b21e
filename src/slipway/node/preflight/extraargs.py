"""Checks of the extra arguments of components: with an unknown flag, or without a file that it needs, one would not start.

Neither is among the checks of today's kubeadm; early ones (1.10.13) had both, and these have their names.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from slipway.api.machinery.version import Version
from slipway.node.preflight import machine
from slipway.node.preflight.check import Check, Findings
from slipway.workload import images

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.kubeadm.internal import APIServer, Arg, ClusterConfiguration, HostPathMount
    from slipway.api.releases import Release
    from slipway.host.interface import Host

# The flag that names the file of a mode, and where kubeadm expected it as long as it wrote that flag itself.
_FILES_OF_MODES = {
    "ABAC": ("authorization-policy-file", "/etc/kubernetes/abac_policy.json"),
    "Webhook": ("authorization-webhook-config-file", "/etc/kubernetes/webhook_authz.conf"),
}


def authorization_files(api_server: APIServer) -> list[Check]:
    """The files of the authorization modes ABAC and Webhook."""
    modes = {mode.strip() for arg in api_server.extra_args if _normalised(arg) == "authorization-mode" for mode in arg.value.split(",")}
    return [_authorization_file(mode, api_server) for mode in _FILES_OF_MODES if mode in modes]


def control_plane_flags(cluster: ClusterConfiguration, release: Release) -> list[Check]:
    """That the components of a control plane know the flags which they are given; nothing where none are."""
    minor = Version.parse(cluster.kubernetes_version).minor
    given = [
        ("kube-apiserver", minor, cluster.api_server.extra_args),
        ("kube-controller-manager", minor, cluster.controller_manager.extra_args),
        ("kube-scheduler", minor, cluster.scheduler.extra_args),
    ]
    if cluster.etcd.local is not None and cluster.etcd.local.extra_args:
        # A tag of the user's own making may not tell a version.
        with suppress(ValueError):
            given.append(("etcd", Version.parse(images.etcd_tag(cluster, release)).minor, cluster.etcd.local.extra_args))
    if not any(args for _, _, args in given):
        return []
    return [Check("ExtraArgs", lambda _: Findings(warnings=tuple(text for each in given for text in _unknown(*each))))]


def kubelet_flags(args: Sequence[Arg], kubelet: machine.InstalledKubelet, release: Release) -> list[Check]:
    """That the kubelet of this machine knows the flags which it is given."""

    def find(host: Host) -> Findings:
        try:
            minor = kubelet.version(host).minor
        except ValueError:
            minor = release.minor
        return Findings(warnings=tuple(_unknown("kubelet", minor, args)))

    return [Check("ExtraArgs", find, waits=True)] if args else []


def _unknown(component: str, minor: int, args: Iterable[Arg]) -> list[str]:
    from slipway.api.components import flags

    return [text for name in dict.fromkeys(arg.name for arg in args) if (text := flags.problem(component, minor, name))]


def _authorization_file(mode: str, api_server: APIServer) -> Check:
    flag, default = _FILES_OF_MODES[mode]
    path = next((arg.value for arg in reversed(api_server.extra_args) if _normalised(arg) == flag), "")
    if path:
        return machine.file_existing(_on_host(path, api_server.extra_volumes))
    missing = f"authorization mode {mode} needs a file, and apiServer.extraArgs has no {flag}: add it, or leave out the mode"
    return Check(machine.file_existing(default).name, lambda _: Findings(errors=(missing,)))


def _on_host(path: str, volumes: Iterable[HostPathMount]) -> str:
    """Where a file of the API server's container is on the machine."""
    mounted = [volume for volume in volumes if f"{path}/".startswith(f"{volume.mount_path.rstrip('/')}/")]
    if not mounted:
        return path
    innermost = max(mounted, key=lambda volume: len(volume.mount_path))
    return innermost.host_path.rstrip("/") + path.removeprefix(innermost.mount_path.rstrip("/"))


def _normalised(arg: Arg) -> str:
    return arg.name.replace("_", "-")
