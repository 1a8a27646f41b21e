"""The sections of a cloud-config, each as the text that stands in the document.

Values stand as the user wrote them, unquoted where Cluster API leaves them so: a cloud-config may hold Jinja that only cloud-init can
read.  Every section begins with a line end and has none at its end; one that has nothing to say is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.machinery.fieldpath import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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


def indented(text: str, by: int) -> str:
    """The lines of a literal block; a line end at the end of the text leaves a line of spaces."""
    margin = " " * by
    return margin + text.replace("\n", f"\n{margin}")


def write_files(files: Iterable[Mapping[str, Any]]) -> str:
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
    return "\n    ".join(lines) + "\n" + indented(file.get("content", ""), 6)


def boot_commands(commands: Sequence[str]) -> str:
    return "\nbootcmd:" + run_commands(commands) if commands else ""


def run_commands(commands: Iterable[str]) -> str:
    """Items of a list of commands."""
    return "".join(f"\n  - {quoted(command)}" for command in commands)


def ntp(settings: Mapping[str, Any] | None) -> str:
    if settings is None:
        return ""
    enabled = f"enabled: {shown(settings['enabled'])}\n  " if _is_set(settings.get("enabled")) else ""
    return f"\nntp:\n  {enabled}servers:" + "".join(f"\n    - {server}" for server in settings.get("servers") or ())


def users(accounts: Sequence[Mapping[str, Any]]) -> str:
    return "\nusers:" + "".join(map(_user, accounts)) if accounts else ""


def _user(user: Mapping[str, Any]) -> str:
    lines = [f"\n  - name: {user.get('name', '')}"]
    lines += [f"{word}: {shown(user[field])}" for field, word in _USER_FIELDS.items() if _is_set(user.get(field))]
    if user.get("sshAuthorizedKeys"):
        lines.append("ssh_authorized_keys:" + "".join(f"\n      - {key}" for key in user["sshAuthorizedKeys"]))
    return "\n    ".join(lines)


def disk_setup(setup: Mapping[str, Any] | None) -> str:
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


def fs_setup(setup: Mapping[str, Any] | None) -> str:
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


def mounts(points: Sequence[Sequence[str]]) -> str:
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
