"""The life of every host as a row of spans, from what its objects remember: conditions, times and the record of a host's cycles."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads it
from typing import TYPE_CHECKING

import msgspec

from slipway.fleet.overview.model import overview
from slipway.fleet.overview.stages import MEANINGS

if TYPE_CHECKING:
    from slipway.fleet.overview.objects import Objects


class Span(msgspec.Struct, frozen=True, rename="camel"):
    """A host in one stage."""

    stage: str
    begin: datetime
    end: datetime
    version: str = ""
    text: str = ""


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """A host, or a machine that has none."""

    namespace: str
    name: str
    cluster: str
    spans: tuple[Span, ...]


def timeline(objects: Objects, now: datetime) -> tuple[Row, ...]:
    """A row a host, in the order of their names; then a row a machine without one."""
    found = overview(objects, now)
    rows = [Row(host.namespace, host.name, host.cluster, _now(host.stage, host.since, host.version, now)) for host in found.hosts]
    rows += [
        Row(cluster.namespace, machine.name, cluster.name, _now(machine.stage, machine.since, machine.version, now))
        for cluster in found.clusters
        for group in cluster.groups
        for machine in group.machines
        if not machine.host
    ]
    return tuple(rows)


def _now(stage: str, since: datetime | None, version: str, now: datetime) -> tuple[Span, ...]:
    return (Span(stage, since or now, now, version, MEANINGS[stage]),)
