"""Bootstrap data in cloud-config format, byte by byte as Cluster API v1.14 writes it.

The three documents differ in the kubeadm configuration that they carry and in the command that they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.fleet.bootstrap.data import cloudinitparts as parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# cloud-init renders Jinja in a document whose first line says so, before it reads it.
_HEADER = "## template: jinja\n#cloud-config\n"
# Infrastructure providers look for this file to see that a host was bootstrapped.
_SENTINEL = "echo success > /run/cluster-api/bootstrap-success.complete"
_PLACEHOLDER = (
    "This placeholder file is used to create the /run/cluster-api sub directory in a way that is compatible with both Linux and Windows"
    " (mkdir -p /run/cluster-api does not work with Windows)"
)
_INIT_CONFIGURATION = "/run/kubeadm/kubeadm.yaml"
_JOIN_CONFIGURATION = "/run/kubeadm/kubeadm-join-config.yaml"


class HostSetup(NamedTuple):
    """What a host gets beside kubeadm; dicts have the JSON form of a KubeadmConfig's spec."""

    files: Sequence[Mapping[str, Any]] = ()
    boot_commands: Sequence[str] = ()
    pre_kubeadm_commands: Sequence[str] = ()
    post_kubeadm_commands: Sequence[str] = ()
    users: Sequence[Mapping[str, Any]] = ()
    ntp: Mapping[str, Any] | None = None
    disk_setup: Mapping[str, Any] | None = None
    mounts: Sequence[Sequence[str]] = ()
    verbosity: str = ""
    """kubeadm's flag, such as ``--v 5``, or nothing."""


def init_control_plane(setup: HostSetup, cluster_configuration: str, init_configuration: str) -> bytes:
    """For the first control-plane node."""
    content = "\n".join(["      ---", parts.indented(cluster_configuration, 6), "      ---", parts.indented(init_configuration, 6)])
    return _document(setup, _INIT_CONFIGURATION, content, f"'kubeadm init --config {_INIT_CONFIGURATION} {setup.verbosity} && {_SENTINEL}'")


def join_control_plane(setup: HostSetup, join_configuration: str) -> bytes:
    """For every other control-plane node."""
    return _document(setup, _JOIN_CONFIGURATION, parts.indented(join_configuration, 6), _join_command(setup))


def join_worker(setup: HostSetup, join_configuration: str) -> bytes:
    return _document(setup, _JOIN_CONFIGURATION, f"      ---\n{parts.indented(join_configuration, 6)}", _join_command(setup))


def _join_command(setup: HostSetup) -> str:
    return f"kubeadm join --config {_JOIN_CONFIGURATION} {setup.verbosity} && {_SENTINEL}"


def _document(setup: HostSetup, path: str, content: str, command: str) -> bytes:
    text = "".join(
        [
            f"{_HEADER}\n{parts.write_files(setup.files)}",
            f"\n-   path: {path}\n    owner: root:root\n    permissions: '0640'\n    content: |\n{content}",
            "\n-   path: /run/cluster-api/placeholder\n    owner: root:root\n    permissions: '0640'",
            f'\n    content: "{_PLACEHOLDER}"',
            parts.boot_commands(setup.boot_commands),
            "\nruncmd:",
            parts.run_commands(setup.pre_kubeadm_commands),
            f"\n  - {command}",
            parts.run_commands(setup.post_kubeadm_commands),
            parts.ntp(setup.ntp),
            parts.users(setup.users),
            parts.disk_setup(setup.disk_setup),
            parts.fs_setup(setup.disk_setup),
            parts.mounts(setup.mounts),
            "\n",
        ]
    )
    return text.encode()
