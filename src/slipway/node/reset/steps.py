"""What the phases of ``reset`` do to the machine; ``would_…`` is a dry run's, and etcd is in etcd.py.

Each step finds by itself what there is to undo, so that a reset which was killed can be run again.
"""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths
from slipway.node.cluster import live
from slipway.node.config import cluster as clusterconfig
from slipway.node.config import load
from slipway.node.preflight import check, machine
from slipway.node.reset.etcd import empty_folder
from slipway.node.reset.options import ResetRun
from slipway.node.reset.result import ResetResult
from slipway.node.staticpods import rootless

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from slipway.host.cri.client import ContainerRuntime, Sandbox
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.reset.options import ResetOptions

FAREWELL = """
The reset process does not perform cleanup of CNI plugin configuration,
network filtering rules and kubeconfig files.

For information on how to perform this cleanup manually, please see:
    https://k8s.io/docs/reference/setup-tools/kubeadm/kubeadm-reset/

"""
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


def prepare(options: ResetOptions, host: Host, progress: Progress) -> ResetRun:
    config, release = load.load_reset(
        host, options.text, options.overrides, progress, source=options.source, skip_cri_detection=not options.detect_cri
    )
    state = ResetRun(config=config, options=options, release=release, host=host, progress=progress)
    if not config.dry_run:
        _ask_cluster(state)
    return state


def _ask_cluster(state: ResetRun) -> None:
    """The cluster's configuration, where this node may read it; a reset goes on without."""
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
    if not state.config.force:
        state.progress.warn("[reset] WARNING: Changes made to this host by 'kubeadm init' or 'kubeadm join' will be reverted.")
        state.progress.show(_QUESTION)
        if state.options.answer().rstrip("\n").lower() not in ("y", "yes"):
            raise OperatorError("won't proceed; the user didn't answer (Y|y) in order to continue")
    would_preflight(state)


def would_preflight(state: ResetRun) -> None:
    """Nobody is asked for consent to what is not done."""
    state.progress.say("[preflight] Running pre-flight checks")
    ignored = {name.lower() for name in state.config.ignore_preflight_errors}
    check.run([machine.privileged_user()], state.host, state.progress, ignored)


def cleanup_node(state: ResetRun) -> None:
    if _has_service(state):
        _stop_kubelet(state)
    kubelet_dir = []
    # Before the mounts go: what a container still has open cannot be unmounted.
    _remove_containers(state)
    if state.host.exists(paths.KUBELET_DIR):
        _unmount(state)
        kubelet_dir = [paths.KUBELET_DIR]
    else:
        state.progress.warn(f'[reset] Skipping unmount of directories in "{paths.KUBELET_DIR}": no such file or directory')
    _delete(state, _folders(state, kubelet_dir))
    _remove_accounts(state)


def would_cleanup_node(state: ResetRun) -> None:
    say = state.progress.say
    if _has_service(state):
        say("[dryrun] Would stop the kubelet service")
    say(f'[dryrun] Would unmount mounted directories in "{paths.KUBELET_DIR}"')
    say("[dryrun] Would remove Kubernetes-managed containers")
    say(f"[dryrun] Would delete contents of directories: [{' '.join(_folders(state, []))}]")
    say(f"[dryrun] Would delete files: [{' '.join(_FILES)}]")


def _folders(state: ResetRun, kubelet_dir: list[str]) -> list[str]:
    """What is to be emptied."""
    if state.certificates_dir != paths.PKI_DIR:
        state.progress.warn(f'[reset] WARNING: Cleaning a non-default certificates directory: "{state.certificates_dir}"')
    tmp_dir = [paths.TMP_DIR] if state.config.cleanup_tmp_dir else []
    return [paths.MANIFESTS_DIR, *kubelet_dir, state.certificates_dir, *tmp_dir]


def result(state: ResetRun, seconds: Mapping[str, float]) -> ResetResult:
    return ResetResult(
        node_name=state.node_name,
        emptied=tuple(state.emptied),
        removed=tuple(state.removed),
        left_alone=tuple(_left_alone(state)),
        seconds=dict(seconds),
    )


def _left_alone(state: ResetRun) -> Iterator[str]:
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


def _has_service(state: ResetRun) -> bool:
    if state.host.which("systemctl") is not None:
        return True
    state.progress.warn("[reset] The kubelet service could not be stopped by kubeadm. Unable to detect a supported init system!")
    state.progress.warn("[reset] Please ensure kubelet is stopped manually")
    return False


def _stop_kubelet(state: ResetRun) -> None:
    state.progress.say("[reset] Stopping the kubelet service")
    result = state.host.run("systemctl", "stop", "kubelet")
    if result.code != 0:
        reason = result.stderr.strip() or f"exit status {result.code}"
        state.progress.warn(f"[reset] The kubelet service could not be stopped by kubeadm: [{reason}]")
        state.progress.warn("[reset] Please ensure kubelet is stopped manually")


def _remove_containers(state: ResetRun) -> None:
    """All sandboxes at once: most of the time of each passes in the container runtime."""
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
    say(f"[reset] Deleting contents of directories: [{' '.join(folders)}]")
    for folder in folders:
        try:
            empty_folder(state.host, folder)
        except OSError as error:
            warn(f'[reset] Failed to delete contents of "{folder}" directory: {error}')
        else:
            state.emptied.append(folder)
    if state.etcd_data_dir:
        try:
            # etcd may have written once more before its container was removed.
            empty_folder(state.host, state.etcd_data_dir)
        except OSError as error:
            warn(f'[reset] Failed to delete contents of the etcd directory: "{state.etcd_data_dir}", error: {error}')
    say(f"[reset] Deleting files: [{' '.join(_FILES)}]")
    for path in _FILES:
        there = state.host.exists(path)
        try:
            state.host.remove(path)
        except OSError as error:
            warn(f'[reset] Failed to remove file: "{path}" [{error}]')
        else:
            state.removed += [path] if there else []


def _remove_accounts(state: ResetRun) -> None:
    configured = state.cluster_config
    if configured is None or not state.release.gate(configured.feature_gates, "RootlessControlPlane"):
        return
    try:
        rootless.remove_accounts(state.host)
    except OSError as error:
        state.progress.warn(f"[reset] Failed to remove users and groups: {error}")
