"""The story of a lab: from a Kubernetes version to an OS image, and from the image to hosts that run on a network of their own.

What ends it is in :mod:`slipway.lab.teardown`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.lab import requirements
from slipway.lab.hosts import hosts
from slipway.lab.images import alive, archives
from slipway.lab.network import bridge as network
from slipway.lab.osimage import base, image
from slipway.lab.programs import catalog, obtain
from slipway.lab.record import DEFAULT_ROOT, Lab, LabRecord, labs, locked, new_lab

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.host.progress import Progress
    from slipway.lab.hosts.hosts import HostInfo
    from slipway.lab.osimage.image import NodeTool, OSImage


def build_image(version: str, *, node_tool: NodeTool, folder: Path | None, progress: Progress) -> OSImage:
    """An OS image with everything that a node of this version needs, the control plane's images included."""
    image.check_node_tool(node_tool)  # first: programs can take minutes
    obtained = obtain.obtain(version, catalog.PROGRAMS, folder=folder, progress=progress)
    root = base.ensure(progress)
    images = archives.build(version, obtained, rootfs=root) | alive.build(root)
    return image.build(version, node_tool=node_tool, components=obtained, archives=images, progress=progress)


def up(
    name: str,
    progress: Progress,
    *,
    root: Path = DEFAULT_ROOT,
    bridge: str | None = None,
    hosts: str | None = None,
    pods: str | None = None,
) -> Lab:
    """The lab ``name`` under ``root`` with its network up, made unless it is there.

    ``bridge``, ``hosts`` (a /24) and ``pods`` (a /16) are chosen where they are not given.
    """
    lab = Lab(name, root / name)
    requirements.check_machine()
    if not lab.exists:
        requirements.check_space(root)
        root.mkdir(parents=True, exist_ok=True)
        with locked(root / ".lock"):  # two labs that are made at the same time must not choose the same range
            if not lab.exists:
                lab.save(_record(lab, root, bridge, hosts, pods))
    _check_same(lab.record, bridge=bridge, hosts=hosts, pods=pods)
    with lab.locked():
        network.up(lab)
    if not network.filters_bridges():
        progress.warn(
            "[lab] the kernel module br_netfilter is not loaded, and without it a Pod does not reach a Service "
            "whose endpoint is on its own host: run `modprobe br_netfilter`"
        )
    record = lab.record
    progress.say(f"[lab] {name}: bridge {record.bridge}, hosts in {record.hosts}, Pods in {record.pods}")
    return lab


def bring_up(
    name: str,
    os_image: OSImage,
    count: int,
    progress: Progress,
    *,
    bridge: str | None = None,
    host_range: str | None = None,
    pod_range: str | None = None,
    registration: str | None = None,
) -> tuple[Lab, list[HostInfo]]:
    """A lab with at least ``count`` hosts, all running; they boot at the same time."""
    lab = up(name, progress, bridge=bridge, hosts=host_range, pods=pod_range)
    names = [host.name for host in lab.hosts()]
    for number in range(1, count + 1):
        if f"host-{number}" not in names:
            hosts.create(lab, f"host-{number}", os_image, registration=registration)
    wanted = [host.name for host in lab.hosts()]
    for host in wanted:
        hosts.begin(lab, host)
    infos = []
    for host in wanted:
        infos.append(hosts.wait_running(lab, host))
        progress.say(f"[host] {host}: running at {infos[-1].address}, booted in {infos[-1].boot_seconds:.1f} s")
    return lab, infos


def _record(lab: Lab, root: Path, bridge: str | None, hosts: str | None, pods: str | None) -> LabRecord:
    others = [other.record for other in labs(root)]  # one that is not up has its ranges all the same
    networks = [*network.machine_networks(), *(other.host_network for other in others), *(other.pod_network for other in others)]
    links = {*network.machine_links(), *(other.bridge for other in others)}
    return new_lab(lab, links=links, networks=networks, now=datetime.now(UTC), bridge=bridge, hosts=hosts, pods=pods)


def _check_same(record: LabRecord, **wanted: str | None) -> None:
    for field, value in wanted.items():
        if value is not None and value != getattr(record, field):
            raise OperatorError(
                f'the lab "{record.name}" is there with {field} {getattr(record, field)}, not {value}: '
                f"take it down first with `slipway lab down`, or use another name"
            )
