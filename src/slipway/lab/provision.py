"""From a Kubernetes version to running hosts: what the parts of a lab do together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.lab import lab as setup
from slipway.lab.hosts import hosts
from slipway.lab.images import archives
from slipway.lab.osimage import base as osbase
from slipway.lab.osimage import image as osimage
from slipway.lab.programs import catalog, obtain

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.host.progress import Progress
    from slipway.lab.hosts.hosts import HostInfo
    from slipway.lab.osimage.image import NodeTool, OSImage
    from slipway.lab.record import Lab


def build_image(version: str, *, node_tool: NodeTool, folder: Path | None, progress: Progress) -> OSImage:
    """An OS image with everything that a node of this version needs, the control plane's images included."""
    osimage.check_node_tool(node_tool)  # first: programs can take minutes
    obtained = obtain.obtain(version, catalog.PROGRAMS, folder=folder, progress=progress)
    base = osbase.ensure(progress)
    images = archives.build(version, obtained, rootfs=base)
    return osimage.build(version, node_tool=node_tool, components=obtained, archives=images, progress=progress)


def bring_up(
    name: str,
    image: OSImage,
    count: int,
    progress: Progress,
    *,
    bridge: str | None = None,
    host_range: str | None = None,
    pod_range: str | None = None,
) -> tuple[Lab, list[HostInfo]]:
    """A lab with at least ``count`` hosts, all running; they boot at the same time."""
    lab = setup.up(name, progress, bridge=bridge, hosts=host_range, pods=pod_range)
    names = [host.name for host in lab.hosts()]
    for number in range(1, count + 1):
        if f"host-{number}" not in names:
            hosts.create(lab, f"host-{number}", image)
    wanted = [host.name for host in lab.hosts()]
    for host in wanted:
        hosts.begin(lab, host)
    infos = []
    for host in wanted:
        infos.append(hosts.wait_running(lab, host))
        progress.say(f"[host] {host}: running at {infos[-1].address}, booted in {infos[-1].boot_seconds:.1f} s")
    return lab, infos
