"""The files of an OS image that are Slipway's own: units, configuration and the ``elemental`` command.

They lie under ``root`` as they lie in the image; this module fills in what depends on the release, and knows
which units start at boot and which have no place in a container.  Values only: :mod:`slipway.lab.osimage.image` writes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from slipway.agent import paths
from slipway.agent import unit as agentunit
from slipway.agent.staging import registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.releases import Release

_SOURCE = Path(__file__).parent / "root"
_PROGRAMS = Path(__file__).parent / "programs"
_ELEMENTAL = "usr/lib/slipway-lab/elemental"
_UNITS = "etc/systemd/system"

IMAGE_FILE = "etc/slipway-lab-image"
"""Says which image a host runs."""
ARCHIVES = "usr/share/slipway/images"
"""Container images that a host loads into containerd at its first boot."""

# Units of our own and of Debian that start at boot, with the target that wants them.
ENABLED = {
    "containerd.service": "multi-user.target",
    "kubelet.service": "multi-user.target",
    "slipway-lab-images.service": "multi-user.target",
    "slipway-lab-prepare.service": "multi-user.target",
    "systemd-networkd.service": "multi-user.target",
    "systemd-networkd.socket": "sockets.target",
    "systemd-networkd-wait-online.service": "network-online.target",
}

# A container has no console, no disks, no kernel of its own and nothing to update.
MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "cloud-init-hotplugd.socket",
    "console-getty.service",
    "container-getty@.service",
    "dev-hugepages.mount",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty.target",
    "getty@.service",
    "keepalived.service",
    "modprobe@.service",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-binfmt.service",
    "systemd-modules-load.service",
    "systemd-pstore.service",
    "systemd-timesyncd.service",
    "systemd-udev-settle.service",
    "systemd-udev-trigger.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-udevd.service",
)

# cloud-init's four stages start Python each; a host without user data has no use for them.
_CLOUD_INIT_STAGES = ("cloud-init-local", "cloud-init", "cloud-config", "cloud-final")
_SEEDED_ONLY = "[Unit]\nConditionPathExists=/var/lib/cloud/seed/nocloud/meta-data\n"
_NETWORK_FIRST = "\n[Service]\nExecStartPre=/usr/lib/slipway-lab/cloud-network\n"


class File(msgspec.Struct, frozen=True):
    """A file's content and mode."""

    content: str
    mode: int = 0o644


class Link(msgspec.Struct, frozen=True):
    """A symbolic link."""

    target: str


Tree = dict[str, File | Link]
"""What lies where, by the path from the root, without the leading slash."""


def tree(release: Release) -> Tree:
    """All files of our own for images of ``release``, but for programs and archives."""
    fill = {"@PAUSE_IMAGE@": f"registry.k8s.io/pause:{release.pause_version}"}
    found: Tree = {}
    for path in sorted(_SOURCE.rglob("*")):
        if path.is_file():
            content = _filled(path.read_text(), fill)
            found[path.relative_to(_SOURCE).as_posix()] = File(content, 0o755 if content.startswith("#!") else 0o644)
    for path in (_PROGRAMS / "elemental.py", Path(registry.__file__)):
        found[f"{_ELEMENTAL}/{path.name}"] = File(path.read_text())
    for stage in _CLOUD_INIT_STAGES:
        before = _NETWORK_FIRST if stage == "cloud-init-local" else ""
        found[f"usr/lib/systemd/system/{stage}.service.d/10-slipway-lab.conf"] = File(_SEEDED_ONLY + before)
    # Written at boot, as it depends on the cgroups of the machine that the host runs on.
    found["etc/containerd/config.toml"] = Link("/run/slipway-lab/containerd.toml")
    found["etc/systemd/system/default.target"] = Link("/lib/systemd/system/multi-user.target")
    for unit in MASKED:
        found[f"{_UNITS}/{unit}"] = Link("/dev/null")
    for unit, target in ENABLED.items():
        found[f"{_UNITS}/{target}.wants/{unit}"] = Link(f"/lib/systemd/system/{unit}")
    return found


def agent(program: str) -> Tree:
    """The unit of the agent, which rests until a host has a registration."""
    unit = Path(paths.UNIT).name
    return {
        f"usr/lib/systemd/system/{unit}": File(agentunit.text(program)),
        f"{_UNITS}/multi-user.target.wants/{unit}": Link(f"/lib/systemd/system/{unit}"),
    }


def image_file(name: str, digest: str, version: str, node_tool: str) -> File:
    """What a host can read about the image that it runs: shell can source it."""
    return File(f"NAME={name}\nDIGEST={digest}\nKUBERNETES_VERSION={version}\nNODE_TOOL={node_tool}\n")


def _filled(text: str, values: Mapping[str, str]) -> str:
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text
