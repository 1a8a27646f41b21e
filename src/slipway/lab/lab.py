"""Making a lab: its record, and its network on the machine.  What ends it is in :mod:`slipway.lab.teardown`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.lab import locks, requirements
from slipway.lab.network import bridge as network
from slipway.lab.record import DEFAULT_ROOT, Lab, LabRecord, labs, new_lab

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.host.progress import Progress


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
        with locks.locked(root / ".lock"):  # two labs that are made at the same time must not choose the same range
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
