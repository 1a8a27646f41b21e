"""The Container Linux Config that a host is described with before it becomes an Ignition config.

The text is Cluster API's, line for line: what a user's value does to the YAML around it, it does here too, and messages about the
document name the same lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import ConfigurationError
from slipway.fleet.bootstrap.data.cloudinit import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.fleet.bootstrap.data.cloudinit import HostSetup

_KUBEADM_UNIT = """
    - name: kubeadm.service
      enabled: true
      contents: |
        [Unit]
        Description=kubeadm
        # Run only once. After successful run, this file is moved to /tmp/.
        ConditionPathExists=/etc/kubeadm.yml
        After=network.target
        [Service]
        # To not restart the unit when it exits, as it is expected.
        Type=oneshot
        ExecStart=/bin/bash /etc/kubeadm.sh
        [Install]
        WantedBy=multi-user.target"""

_MOUNT_UNIT = """
    - name: {unit}.mount
      enabled: true
      contents: |
        [Unit]
        Description = Mount {label}

        [Mount]
        What={device}
        Where={mountpoint}
        Options={options}

        [Install]
        WantedBy=multi-user.target"""

_SSHD = """
    - path: /etc/ssh/sshd_config
      mode: 0600
      contents:
        inline: |
          # Use most defaults for sshd configuration.
          Subsystem sftp internal-sftp
          ClientAliveInterval 180
          UseDNS no
          UsePAM yes
          PrintLastLog no # handled by PAM
          PrintMotd no # handled by PAM

          Match User {users}
            PasswordAuthentication yes"""

_KUBEADM_SCRIPT = """
    - path: /etc/kubeadm.sh
      mode: 0700
      contents:
        inline: |
          #!/bin/bash
          set -e
          {before}

          {command}
          mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete
          mv /etc/kubeadm.yml /tmp/
          {after}"""

_KUBEADM_CONFIGURATION = """
    - path: /etc/kubeadm.yml
      mode: 0600
      contents:
        inline: |
          ---
          {configuration}"""

_NTP = """
    - path: /etc/ntp.conf
      mode: 0644
      contents:
        inline: |
          # Common pool{servers}

          # Warning: Using default NTP settings will leave your NTP
          # server accessible to all hosts on the Internet.

          # If you want to deny all machines (including your own)
          # from accessing the NTP server, uncomment:
          #restrict default ignore

          # Default configuration:
          # - Allow only time queries, at a limited rate, sending KoD when in excess.
          # - Allow all local queries (IPv4, IPv6)
          restrict default nomodify nopeer noquery notrap limited kod
          restrict 127.0.0.1
          restrict [::1]"""

_BLOCK = "\n" + " " * 10


def render(setup: HostSetup, kubeadm_command: str, kubeadm_configuration: str) -> str:
    """The whole document."""
    return "".join(
        [
            "---",
            _users(setup.users),
            "\nsystemd:\n  units:",
            _KUBEADM_UNIT,
            _ntp_unit(setup.ntp),
            _mount_units(setup),
            "\nstorage:",
            _disks(setup.disk_setup or {}),
            _filesystems(setup.disk_setup or {}),
            "\n  files:",
            *map(_sudoers, setup.users),
            _sshd(setup.users),
            *map(_file, setup.files),
            _KUBEADM_SCRIPT.format(
                before=_commands(setup.pre_kubeadm_commands), command=kubeadm_command, after=_commands(setup.post_kubeadm_commands)
            ),
            _KUBEADM_CONFIGURATION.format(configuration=_indented(kubeadm_configuration)),
            _ntp_file(setup.ntp),
            "\n",
        ]
    )


def _indented(text: str) -> str:
    """The lines after the first moved into a literal block of a file."""
    return text.replace("\n", _BLOCK)


def _commands(commands: Sequence[str]) -> str:
    return "".join(_BLOCK + _indented(command) for command in commands)


def _users(users: Sequence[Mapping[str, Any]]) -> str:
    return "\npasswd:\n  users:" + "".join(map(_user, users)) if users else ""


def _user(user: Mapping[str, Any]) -> str:
    lines = [f"\n    - name: {user.get('name', '')}"]
    if user.get("gecos"):
        lines.append(f"gecos: {user['gecos']}")
    if user.get("groups"):
        lines.append("groups:" + _items(user["groups"].split(", "), 8))
    for field, word in (("homeDir", "home_dir"), ("shell", "shell"), ("passwd", "password_hash"), ("primaryGroup", "primary_group")):
        if user.get(field):
            lines.append(f"{word}: {user[field]}")
    if user.get("sshAuthorizedKeys"):
        lines.append("ssh_authorized_keys:" + _items(user["sshAuthorizedKeys"], 8))
    return "\n      ".join(lines)


def _items(values: Sequence[str], indent: int) -> str:
    return "".join(f"\n{' ' * indent}- {value}" for value in values)


def _ntp_unit(ntp: Mapping[str, Any] | None) -> str:
    # In the template this is a question whether anything is said, so that false counts as true.
    return "\n    - name: ntpd.service\n      enabled: true" if ntp is not None and ntp.get("enabled") is not None else ""


def _ntp_file(ntp: Mapping[str, Any] | None) -> str:
    if ntp is None or ntp.get("enabled") is None or not ntp.get("servers"):
        return ""
    return _NTP.format(servers="".join(f"{_BLOCK}server {server}" for server in ntp["servers"]))


def _mount_units(setup: HostSetup) -> str:
    filesystems = (setup.disk_setup or {}).get("filesystems") or ()
    devices = {filesystem.get("label", ""): filesystem.get("device", "") for filesystem in filesystems}
    return "".join(_mount_unit(mount, devices) for mount in setup.mounts)


def _mount_unit(mount: Sequence[str], devices: Mapping[str, str]) -> str:
    if len(mount) < 2:
        # The template asks for one after the other.
        missing, position = ("index . 0", "57:18") if not mount else ("index . 1", "58:23")
        raise ConfigurationError(
            f'rendering CLC configuration: failed to render template: template: template:{position}: executing "template" at <{missing}>:'
            f" error calling index: reflect: slice index out of range"
        )
    label, mountpoint, *options = mount
    return _MOUNT_UNIT.format(
        unit=mountpoint.replace("/", "-").removeprefix("-"),
        label=label,
        device=devices.get(label, ""),
        mountpoint=mountpoint,
        options=",".join(options),
    )


def _disks(setup: Mapping[str, Any]) -> str:
    return "\n  disks:" + "".join(map(_disk, setup["partitions"])) if setup.get("partitions") else ""


def _disk(disk: Mapping[str, Any]) -> str:
    text = f"\n    - device: {disk.get('device', '')}"
    if disk.get("overwrite") is not None:
        text += f"\n      wipe_table: {shown(disk['overwrite'])}"
    if disk.get("layout") is not None:
        text += "\n      partitions:\n      - {}"
    return text


def _filesystems(setup: Mapping[str, Any]) -> str:
    return "\n  filesystems:" + "".join(map(_filesystem, setup["filesystems"])) if setup.get("filesystems") else ""


def _filesystem(filesystem: Mapping[str, Any]) -> str:
    label = filesystem.get("label", "")
    lines = [
        f"\n    - name: {label}\n      mount:",
        f"device: {filesystem.get('device', '')}",
        f"format: {filesystem.get('filesystem', '')}",
        f"wipe_filesystem: {shown(filesystem.get('overwrite'))}",
        f"label: {label}",
    ]
    if filesystem.get("extraOpts"):
        lines.append("options:" + _items(filesystem["extraOpts"], 10))
    return "\n        ".join(lines)


def _sudoers(user: Mapping[str, Any]) -> str:
    if not user.get("sudo"):
        return ""
    name = user.get("name", "")
    return f"\n    - path: /etc/sudoers.d/{name}\n      mode: 0600\n      contents:\n        inline: |{_BLOCK}{name} {user['sudo']}"


def _sshd(users: Sequence[Mapping[str, Any]]) -> str:
    names = ",".join(user.get("name", "") for user in users if user.get("lockPassword") is False)
    return _SSHD.format(users=names) if names else ""


def _file(file: Mapping[str, Any]) -> str:
    user, group = _owner(file.get("owner", ""))
    mode = f"mode: {file['permissions']}\n      " if file.get("permissions") else ""
    binary = "!!binary " if file.get("encoding") == "base64" else ""
    return "\n      ".join(
        [
            f"\n    - path: {file.get('path', '')}",
            "" if user is None else f"user:\n        name: {user}",
            "" if group is None else f"group:\n        name: {group}",
            "# Owner",
            f"{mode}contents:\n        inline: {binary}|{_BLOCK}{_indented(file.get('content', ''))}",
        ]
    )


def _owner(owner: str) -> tuple[str | None, str | None]:
    """``user``, ``user:group`` or ``:group``; anything after a second colon does not count."""
    user, group = ([*owner.split(":"), ""])[:2]
    return user.strip() if user else None, group.strip() if group else None
