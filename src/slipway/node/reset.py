"""The story of ``reset``: what ``init`` and ``join`` did to a machine is undone, as far as that can be.

``PHASES`` at the end is the story; every phase is a short function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths, phases
from slipway.node.phases import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.internal import ResetConfiguration
    from slipway.api.releases import Release
    from slipway.node.host import Host
    from slipway.node.progress import Progress

_FILES = (
    paths.ADMIN_CONF,
    paths.SUPER_ADMIN_CONF,
    paths.KUBELET_CONF,
    paths.BOOTSTRAP_KUBELET_CONF,
    paths.CONTROLLER_MANAGER_CONF,
    paths.SCHEDULER_CONF,
)
_FAREWELL = """
The reset process does not perform cleanup of CNI plugin configuration,
network filtering rules and kubeconfig files.

For information on how to perform this cleanup manually, please see:
    https://k8s.io/docs/reference/setup-tools/kubeadm/kubeadm-reset/

"""


class ResetOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags say about the configuration, by the names of its fields."""
    only: str = ""
    """The phase to run alone; empty for all."""
    detect_cri: bool = True


class ResetRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``reset`` share."""

    config: ResetConfiguration
    options: ResetOptions
    release: Release
    host: Host
    progress: Progress

    @property
    def certificates_dir(self) -> str:
        return self.config.certificates_dir or paths.PKI_DIR


def run(options: ResetOptions, host: Host, progress: Progress) -> None:
    """The whole command."""
    perform(prepare(options, host, progress))


def prepare(options: ResetOptions, host: Host, progress: Progress) -> ResetRun:
    """Read the configuration; nothing is changed yet."""
    from slipway.node import configuration

    config, release = configuration.load_reset(
        host, options.text, options.overrides, progress, source=options.source, skip_cri_detection=not options.detect_cri
    )
    return ResetRun(config=config, options=options, release=release, host=host, progress=progress)


def perform(state: ResetRun) -> None:
    """Run the phases, and say what is left to do by hand."""
    if not state.config.dry_run:
        raise OperatorError("reset needs etcd and the container runtime, which this version cannot talk to yet: add --dry-run")
    phases.execute(PHASES, state, state.progress, only=state.options.only, skip=state.config.skip_phases)
    if not state.options.only:
        state.progress.show(_FAREWELL)


def _preflight(state: ResetRun) -> None:
    from slipway.node.preflight import check, machine

    state.progress.say("[preflight] Running pre-flight checks")
    ignored = {name.lower() for name in state.config.ignore_preflight_errors}
    check.run([machine.privileged_user()], state.host, state.progress, ignored)


def _remove_etcd_member(state: ResetRun) -> None:
    """Without the cluster's configuration, which a dry run does not have, only the local manifest tells about etcd."""
    state.progress.warn("[reset] No kubeadm config, using etcd pod spec to get data directory")
    if etcd_data_dir(state.host) is None:
        state.progress.say("[reset] No etcd config found. Assuming external etcd")
        state.progress.say("[reset] Please, manually reset etcd to prevent further issues")


def _cleanup_node(state: ResetRun) -> None:
    say, warn = state.progress.say, state.progress.warn
    if state.host.which("systemctl") is None:
        warn("[reset] The kubelet service could not be stopped by kubeadm. Unable to detect a supported init system!")
        warn("[reset] Please ensure kubelet is stopped manually")
    else:
        say("[dryrun] Would stop the kubelet service")
    say(f'[dryrun] Would unmount mounted directories in "{paths.KUBELET_DIR}"')
    say("[dryrun] Would remove Kubernetes-managed containers")
    if state.certificates_dir != paths.PKI_DIR:
        warn(f'[reset] WARNING: Cleaning a non-default certificates directory: "{state.certificates_dir}"')
    folders = [paths.MANIFESTS_DIR, state.certificates_dir, *([paths.TMP_DIR] if state.config.cleanup_tmp_dir else [])]
    say(f"[dryrun] Would delete contents of directories: [{' '.join(folders)}]")
    say(f"[dryrun] Would delete files: [{' '.join(_FILES)}]")


def etcd_data_dir(host: Host) -> str | None:
    """The data folder of the local etcd by its manifest, the default one without a manifest; None where it has none."""
    from slipway.api.machinery import goyaml

    path = f"{paths.MANIFESTS_DIR}/etcd.yaml"
    if not host.exists(path):
        return paths.ETCD_DATA_DIR
    documents = goyaml.load(host.read(path).decode(), path)
    pod = documents[0].value if documents else None
    volumes = (pod.get("spec") or {}).get("volumes") or [] if isinstance(pod, dict) else []
    found = [volume["hostPath"]["path"] for volume in volumes if volume.get("name") == "etcd-data" and volume.get("hostPath")]
    return str(found[0]) if found else None


PHASES: tuple[Phase[ResetRun], ...] = (
    Phase(
        name="preflight",
        short="Ask for consent and check the privileges",
        run=_preflight,
        aliases=("pre-flight",),
        flags=("ignore-preflight-errors", "force", "dry-run"),
    ),
    Phase(
        name="remove-etcd-member",
        short="Take this node's member out of etcd and empty its data folder",
        run=_remove_etcd_member,
        flags=("kubeconfig", "dry-run"),
    ),
    Phase(
        name="cleanup-node",
        short="Stop the kubelet, remove the containers and delete the files",
        run=_cleanup_node,
        aliases=("cleanupnode",),
        flags=("cert-dir", "cri-socket", "cleanup-tmp-dir", "dry-run"),
    ),
)
