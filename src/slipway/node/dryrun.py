"""A dry run of a command: where its files go, and how they are shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slipway.api.kubeadm.addresses import join_host_port
from slipway.api.machinery.errors import OperatorError
from slipway.host.dryrun import DryRunHost
from slipway.node import paths

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import ComponentConfig
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.context import NodeContext

INIT_VARIABLE = "KUBEADM_INIT_DRYRUN_DIR"
JOIN_VARIABLE = "KUBEADM_JOIN_DRYRUN_DIR"
UPGRADE_VARIABLE = "KUBEADM_UPGRADE_DRYRUN_DIR"

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def host_for(host: Host, variable: str, name: str, progress: Progress, certificates_dir: str = "") -> DryRunHost:
    """A host whose files go into the folder that the variable names, or into a new one; all in one place, as kubeadm does it."""
    folders: tuple[str, ...] = (paths.KUBERNETES_DIR, paths.MANIFESTS_DIR, paths.PKI_DIR, paths.KUBELET_DIR)
    if certificates_dir:
        folders = (*folders, certificates_dir)
    return DryRunHost(host, _folder(host, variable, name, progress), folders)


def show_files(ctx: NodeContext, *, control_plane: bool) -> None:
    """Print what was written, but for certificates and kubeconfigs; a file that is missing fails the run."""
    folder = ctx.host.location(paths.MANIFESTS_DIR)
    what = "certificates, kubeconfig files and control plane manifests" if control_plane else "certificates and kubeconfig files"
    ctx.progress.say(f'[dryrun] Wrote {what} to the "{folder}" directory')
    ctx.progress.say("[dryrun] The certificates or kubeconfig files would not be printed due to their sensitive nature")
    ctx.progress.say(f'[dryrun] Please examine the "{folder}" directory for details about what would be written')
    manifests = [f"{paths.MANIFESTS_DIR}/{component}.yaml" for component in COMPONENTS] if control_plane else []
    missing = [path for path in (*manifests, paths.KUBELET_CONFIG, paths.KUBELET_FLAGS_ENV) if not show_file(ctx, path)]
    if missing:
        absent = ", ".join(ctx.host.location(path) for path in missing)
        raise OperatorError(f"error printing files on dryrun: no such file: {absent}; was the phase that writes it skipped?")


def show_etcd(ctx: NodeContext) -> None:
    """etcd's manifest is shown as soon as it is written."""
    show_file(ctx, f"{paths.MANIFESTS_DIR}/etcd.yaml")


def show_file(ctx: NodeContext, path: str) -> bool:
    """Print one file as it would be written; whether it is there."""
    try:
        content = ctx.host.read(path)
    except FileNotFoundError:
        return False
    ctx.progress.show(f'[dryrun] Would write file "{path}" with content:\n{content.decode()}')
    return True


def say_kubelet_wait(progress: Progress, kubelet: ComponentConfig) -> None:
    """Where a real run would wait for the kubelet."""
    address, port = kubelet.value["healthzBindAddress"], kubelet.value["healthzPort"]
    progress.say(f"[dryrun] Would make sure the kubelet returns 'ok' at http://{join_host_port(address, port)}/healthz")


def _folder(host: Host, variable: str, name: str, progress: Progress) -> str:
    named = host.environment.get(variable, "")
    if named:
        return named
    folder = f"{paths.TMP_DIR}/{name}{int.from_bytes(os.urandom(4), 'big')}"
    try:
        host.make_dir(folder)
    except OSError as error:
        raise OperatorError(
            f"could not create a temporary directory on dryrun: {error}; set {variable} to a folder that may be written to"
        ) from error
    location = host.location(folder)
    progress.warn(f"Using dry-run directory {location}. To override it, set the environment variable {variable}")
    return location
