"""What the phases of ``reset`` do to the machine; etcd is in resetetcd.

Each step finds by itself what there is to undo, so that a reset which was killed can be run again.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths
from slipway.node.reset.etcd import empty_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.host.cri.client import ContainerRuntime, Sandbox
    from slipway.node.reset.phases import ResetRun

_FILES = (
    paths.ADMIN_CONF,
    paths.SUPER_ADMIN_CONF,
    paths.KUBELET_CONF,
    paths.BOOTSTRAP_KUBELET_CONF,
    paths.CONTROLLER_MANAGER_CONF,
    paths.SCHEDULER_CONF,
)
_QUESTION = "[reset] Are you sure you want to proceed? [y/N]: "
# A cluster that is there answers at once; one that is gone should not hold up a reset.
_PATIENCE = 3.0
_REMOVAL_TRIES = 5
_AT_ONCE = 8
_CNI_DIR = "/etc/cni/net.d"


def ask_cluster(state: ResetRun) -> None:
    """The cluster's configuration, where this node may read it; a reset goes on without."""
    from slipway.node.cluster import live
    from slipway.node.config import cluster as clusterconfig

    host, progress = state.host, state.progress
    if host.exists(paths.KUBELET_CONF):
        try:
            state.node_name = clusterconfig.node_name(host)
        except (OperatorError, OSError) as error:
            progress.warn(f"[reset] The name of this node is not known: {error}")
    if not host.exists(state.options.kubeconfig):
        return
    try:
        cluster = live.connect(host, state.options.kubeconfig, patience=_PATIENCE)
        state.cluster_config = clusterconfig.read(cluster, state.release, progress, "reset").cluster
        state.cluster = cluster
    except OperatorError as error:
        progress.warn(f"[reset] Unable to fetch the kubeadm-config ConfigMap from cluster: {error.message}")


def preflight(state: ResetRun) -> None:
    from slipway.node.preflight import check, machine

    if not state.config.force and not state.config.dry_run:
        state.progress.warn("[reset] WARNING: Changes made to this host by 'kubeadm init' or 'kubeadm join' will be reverted.")
        state.progress.show(_QUESTION)
        if state.options.answer().rstrip("\n").lower() not in ("y", "yes"):
            raise OperatorError("won't proceed; the user didn't answer (Y|y) in order to continue")
    state.progress.say("[preflight] Running pre-flight checks")
    ignored = {name.lower() for name in state.config.ignore_preflight_errors}
    check.run([machine.privileged_user()], state.host, state.progress, ignored)


def cleanup_node(state: ResetRun) -> None:
    dry_run, say = state.config.dry_run, state.progress.say
    _stop_kubelet(state)
    kubelet_dir = []
    if dry_run:
        say(f'[dryrun] Would unmount mounted directories in "{paths.KUBELET_DIR}"')
        say("[dryrun] Would remove Kubernetes-managed containers")
    else:
        # Before the mounts go: what a container still has open cannot be unmounted.
        _remove_containers(state)
        if state.host.exists(paths.KUBELET_DIR):
            _unmount(state)
            kubelet_dir = [paths.KUBELET_DIR]
        else:
            state.progress.warn(f'[reset] Skipping unmount of directories in "{paths.KUBELET_DIR}": no such file or directory')
    if state.certificates_dir != paths.PKI_DIR:
        state.progress.warn(f'[reset] WARNING: Cleaning a non-default certificates directory: "{state.certificates_dir}"')
    tmp_dir = [paths.TMP_DIR] if state.config.cleanup_tmp_dir else []
    _delete(state, [paths.MANIFESTS_DIR, *kubelet_dir, state.certificates_dir, *tmp_dir])
    _remove_accounts(state)


def left_alone(state: ResetRun) -> Iterator[str]:
    """What is still there and was made by, or for, the cluster."""
    host = state.host
    for folder in (_CNI_DIR, paths.KUBERNETES_DIR):
        emptied = (paths.MANIFESTS_DIR, paths.PKI_DIR, *([paths.TMP_DIR] if state.config.cleanup_tmp_dir else []))
        names = [name for name in host.list_dir(folder) if f"{folder}/{name}" not in emptied]
        if names:
            yield f"{folder} ({', '.join(names)})"
    home = host.environment.get("HOME", "")
    if home and host.exists(f"{home}/.kube/config"):
        yield f"{home}/.kube/config"
    if state.etcd_data_dir and host.list_dir(state.etcd_data_dir):
        yield f"{state.etcd_data_dir} ({', '.join(host.list_dir(state.etcd_data_dir))})"
    if state.node_name:
        yield f'the Node "{state.node_name}" in the cluster: `kubectl delete node {state.node_name}` where the cluster goes on'


def _stop_kubelet(state: ResetRun) -> None:
    if state.host.which("systemctl") is None:
        state.progress.warn("[reset] The kubelet service could not be stopped by kubeadm. Unable to detect a supported init system!")
        state.progress.warn("[reset] Please ensure kubelet is stopped manually")
        return
    if state.config.dry_run:
        state.progress.say("[dryrun] Would stop the kubelet service")
        return
    state.progress.say("[reset] Stopping the kubelet service")
    result = state.host.run("systemctl", "stop", "kubelet")
    if result.code != 0:
        reason = result.stderr.strip() or f"exit status {result.code}"
        state.progress.warn(f"[reset] The kubelet service could not be stopped by kubeadm: [{reason}]")
        state.progress.warn("[reset] Please ensure kubelet is stopped manually")


def _remove_containers(state: ResetRun) -> None:
    """All sandboxes at once: most of the time of each passes in the container runtime."""
    from concurrent.futures import ThreadPoolExecutor

    try:
        with state.host.container_runtime(state.config.cri_socket) as runtime:
            sandboxes = runtime.sandboxes()
            with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
                problems = [problem for problem in pool.map(lambda sandbox: _remove_sandbox(runtime, sandbox), sandboxes) if problem]
    except OperatorError as error:
        problems = [error.message]
    if problems:
        state.progress.warn(f"[reset] Failed to remove containers: {'; '.join(problems)}")


def _remove_sandbox(runtime: ContainerRuntime, sandbox: Sandbox) -> str:
    """What went wrong in the last of several tries; empty where the sandbox is gone."""
    problem = ""
    for _ in range(_REMOVAL_TRIES):
        try:
            runtime.stop_sandbox(sandbox.id)
            runtime.remove_sandbox(sandbox.id)
        except OperatorError as error:
            problem = f"{sandbox.namespace}/{sandbox.name}: {error.message}"
        else:
            return ""
    return problem


def _unmount(state: ResetRun) -> None:
    from slipway.host.real import UNMOUNT_FLAGS

    state.progress.say(f'[reset] Unmounting mounted directories in "{paths.KUBELET_DIR}"')
    flags = sum({UNMOUNT_FLAGS[name] for name in state.config.unmount_flags})
    problems = []
    for path in state.host.mounts(paths.KUBELET_DIR):
        try:
            state.host.unmount(path, flags)
        except OSError as error:
            # What is mounted twice in a shared tree goes with its first unmount.
            if error.errno == errno.EINVAL:
                state.progress.warn(f'[reset] Ignoring EINVAL error while unmounting "{path}"')
            else:
                problems.append(f'failed to unmount "{path}": {error.strerror}')
    if problems:
        raise OperatorError(
            f'encountered the following errors while unmounting directories in "{paths.KUBELET_DIR}/": {"; ".join(problems)}. '
            "End what uses them, or set unmountFlags: [MNT_DETACH] in the ResetConfiguration, and reset again"
        )


def _delete(state: ResetRun, folders: list[str]) -> None:
    say, warn = state.progress.say, state.progress.warn
    if state.config.dry_run:
        say(f"[dryrun] Would delete contents of directories: [{' '.join(folders)}]")
        say(f"[dryrun] Would delete files: [{' '.join(_FILES)}]")
        return
    say(f"[reset] Deleting contents of directories: [{' '.join(folders)}]")
    for folder in folders:
        try:
            empty_folder(state.host, folder)
        except OSError as error:
            warn(f'[reset] Failed to delete contents of "{folder}" directory: {error}')
    if state.etcd_data_dir:
        try:
            # etcd may have written once more before its container was removed.
            empty_folder(state.host, state.etcd_data_dir)
        except OSError as error:
            warn(f'[reset] Failed to delete contents of the etcd directory: "{state.etcd_data_dir}", error: {error}')
    say(f"[reset] Deleting files: [{' '.join(_FILES)}]")
    for path in _FILES:
        try:
            state.host.remove(path)
        except OSError as error:
            warn(f'[reset] Failed to remove file: "{path}" [{error}]')


def _remove_accounts(state: ResetRun) -> None:
    from slipway.node.staticpods import rootless

    configured = state.cluster_config
    if configured is None or not state.release.gate(configured.feature_gates, "RootlessControlPlane"):
        return
    try:
        rootless.remove_accounts(state.host)
    except OSError as error:
        state.progress.warn(f"[reset] Failed to remove users and groups: {error}")
