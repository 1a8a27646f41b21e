"""Bootstrap data in cloud-config format, byte by byte as Cluster API v1.14 writes it.

The three documents differ in the kubeadm configuration that they carry and in the command that they run.  Values stand as the user wrote
them, unquoted where Cluster API leaves them so: a cloud-config may hold Jinja that only cloud-init can read.  Every section begins with a
line end and has none at its end; one that has nothing to say is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.fieldpath import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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


# cloud-init wants the type of a partition as sgdisk or sfdisk write it.
_PARTITION_TYPES = {
    "Linux": "83",
    "LinuxSwap": "82",
    "LinuxRAID": "fd",
    "LVM": "8e",
    "Fat32": "0c",
    "NTFS": "07",
    "LinuxExtended": "85",
}

# What cloud-init calls the fields of a user, in the order of the document.
_USER_FIELDS = {
    "passwd": "passwd",
    "gecos": "gecos",
    "groups": "groups",
    "homeDir": "homedir",
    "inactive": "inactive",
    "lockPassword": "lock_passwd",
    "shell": "shell",
    "primaryGroup": "primary_group",
    "sudo": "sudo",
}


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
    content = "\n".join(["      ---", _indented(cluster_configuration, 6), "      ---", _indented(init_configuration, 6)])
    return _document(setup, _INIT_CONFIGURATION, content, f"'kubeadm init --config {_INIT_CONFIGURATION} {setup.verbosity} && {_SENTINEL}'")


def join_control_plane(setup: HostSetup, join_configuration: str) -> bytes:
    """For every other control-plane node."""
    return _document(setup, _JOIN_CONFIGURATION, _indented(join_configuration, 6), _join_command(setup))


def join_worker(setup: HostSetup, join_configuration: str) -> bytes:
    return _document(setup, _JOIN_CONFIGURATION, f"      ---\n{_indented(join_configuration, 6)}", _join_command(setup))


def _join_command(setup: HostSetup) -> str:
    return f"kubeadm join --config {_JOIN_CONFIGURATION} {setup.verbosity} && {_SENTINEL}"


def _document(setup: HostSetup, path: str, content: str, command: str) -> bytes:
    text = "".join(
        [
            f"{_HEADER}\n{_write_files(setup.files)}",
            f"\n-   path: {path}\n    owner: root:root\n    permissions: '0640'\n    content: |\n{content}",
            "\n-   path: /run/cluster-api/placeholder\n    owner: root:root\n    permissions: '0640'",
            f'\n    content: "{_PLACEHOLDER}"',
            _boot_commands(setup.boot_commands),
            "\nruncmd:",
            _run_commands(setup.pre_kubeadm_commands),
            f"\n  - {command}",
            _run_commands(setup.post_kubeadm_commands),
            _ntp(setup.ntp),
            _users(setup.users),
            _disk_setup(setup.disk_setup),
            _fs_setup(setup.disk_setup),
            _mounts(setup.mounts),
            "\n",
        ]
    )
    return text.encode()


def _indented(text: str, by: int) -> str:
    """The lines of a literal block; a line end at the end of the text leaves a line of spaces."""
    margin = " " * by
    return margin + text.replace("\n", f"\n{margin}")


def _write_files(files: Iterable[Mapping[str, Any]]) -> str:
    """The files, up to but without those that every document ends its list with."""
    return "write_files:" + "".join(map(_file, files))


def _file(file: Mapping[str, Any]) -> str:
    lines = [f"\n-   path: {file.get('path', '')}"]
    if file.get("encoding"):
        lines.append(f'encoding: "{file["encoding"]}"')
    if file.get("owner"):
        lines.append(f"owner: {file['owner']}")
    if file.get("permissions"):
        lines.append(f"permissions: '{file['permissions']}'")
    if _is_set(file.get("append")):
        lines.append(f"append: {shown(file['append'])}")
    lines.append("content: |")
    return "\n    ".join(lines) + "\n" + _indented(file.get("content", ""), 6)


def _boot_commands(commands: Sequence[str]) -> str:
    return "\nbootcmd:" + _run_commands(commands) if commands else ""


def _run_commands(commands: Iterable[str]) -> str:
    """Items of a list of commands."""
    return "".join(f"\n  - {quoted(command)}" for command in commands)


def _ntp(settings: Mapping[str, Any] | None) -> str:
    if settings is None:
        return ""
    enabled = f"enabled: {shown(settings['enabled'])}\n  " if _is_set(settings.get("enabled")) else ""
    return f"\nntp:\n  {enabled}servers:" + "".join(f"\n    - {server}" for server in settings.get("servers") or ())


def _users(accounts: Sequence[Mapping[str, Any]]) -> str:
    return "\nusers:" + "".join(map(_user, accounts)) if accounts else ""


def _user(user: Mapping[str, Any]) -> str:
    lines = [f"\n  - name: {user.get('name', '')}"]
    lines += [f"{word}: {shown(user[field])}" for field, word in _USER_FIELDS.items() if _is_set(user.get(field))]
    if user.get("sshAuthorizedKeys"):
        lines.append("ssh_authorized_keys:" + "".join(f"\n      - {key}" for key in user["sshAuthorizedKeys"]))
    return "\n    ".join(lines)


def _disk_setup(setup: Mapping[str, Any] | None) -> str:
    return "" if setup is None else "\ndisk_setup:" + "".join(map(_partition, setup.get("partitions") or ()))


def _partition(disk: Mapping[str, Any]) -> str:
    lines = [f"\n  {disk.get('device', '')}:"]
    if disk.get("tableType"):
        lines.append(f"table_type: {disk['tableType']}")
    if disk.get("diskLayout"):
        lines.append("layout:" + "".join(map(_layout, disk["diskLayout"])))
    else:
        lines.append(f"layout: {shown(disk.get('layout'))}")
    if _is_set(disk.get("overwrite")):
        lines.append(f"overwrite: {shown(disk['overwrite'])}")
    return "\n    ".join(lines)


def _layout(part: Mapping[str, Any]) -> str:
    percentage, kind = part.get("percentage", 0), part.get("partitionType")
    return f"\n      - [{percentage}, {_PARTITION_TYPES.get(kind, kind)}]" if kind else f"\n      - {percentage}"


def _fs_setup(setup: Mapping[str, Any] | None) -> str:
    return "" if setup is None else "\nfs_setup:" + "".join(map(_filesystem, setup.get("filesystems") or ()))


def _filesystem(filesystem: Mapping[str, Any]) -> str:
    lines = [f"\n  - label: {filesystem.get('label', '')}"]
    lines.append(f"filesystem: {filesystem.get('filesystem', '')}")
    lines.append(f"device: {filesystem.get('device', '')}")
    for field, word in (("partition", "partition"), ("overwrite", "overwrite"), ("replaceFS", "replace_fs")):
        if _is_set(filesystem.get(field)):
            lines.append(f"{word}: {shown(filesystem[field])}")
    if filesystem.get("extraOpts"):
        lines.append("extra_opts:" + "".join(f"\n      - {option}" for option in filesystem["extraOpts"]))
    return "\n    ".join(lines)


def _mounts(points: Sequence[Sequence[str]]) -> str:
    if not points:
        return ""
    return "\nmounts:" + "".join("\n  - " + "".join(f"- {value}\n    " for value in point) for point in points)


def shown(value: object) -> str:
    """A value as Go's templates print it; what is a pointer in Go prints ``<nil>`` where nothing is set."""
    if value is None:
        return "<nil>"
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _is_set(value: object) -> bool:
    """Whether Go's ``if`` takes the branch: a pointer to false is set, an empty text is not."""
    return value is not None and value != ""
