"""The life of every host as a row of spans, from what its objects remember.

A host's inventory has the record of its last machines; of the present one, conditions and times tell what the record does not have yet.
Machines of other infrastructure have no host that outlives them: their row is theirs alone.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster import names as core
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import MACHINE
from slipway.api.elemental import cycles
from slipway.fleet.contract.conditions import moment
from slipway.fleet.overview import stages
from slipway.fleet.overview.model import overview
from slipway.fleet.overview.stages import condition, machine_of, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.elemental.cycles import Cycle
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.model import ClusterView, HostView, MachineView
    from slipway.fleet.overview.objects import Objects

_STAGES = {
    "claimed": stages.ALLOCATED,
    "planned": stages.REPROVISIONING,
    "applied": stages.BOOTING,
    "joined": stages.MEMBER,
    "running": stages.MEMBER,
    "draining": stages.DRAINING,
    "drained": stages.CLEANING,
}
"""The stage that begins with each moment of a cycle."""
# Two things belong to one story where no more than this lies between them.
_PAUSE = timedelta(minutes=30)
_NODE_REF = "SuccessfulSetNodeRef"


class Span(msgspec.Struct, frozen=True, rename="camel"):
    """A host in one stage."""

    stage: str
    begin: datetime
    end: datetime
    version: str = ""
    text: str = ""
    machine: str = ""


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """A host, or a machine that has none."""

    namespace: str
    name: str
    cluster: str
    """The one that it is of, or was of last."""
    spans: tuple[Span, ...]


def timeline(objects: Objects, now: datetime) -> tuple[Row, ...]:
    """A row a host, in the order of their names; then a row a machine without one, in the order in which they were made."""
    view = overview(objects, now)
    present = {place(each): each for each in objects.machines}
    infrastructure = {(place(each)[0], machine_of(each)): each for each in objects.baremetal_machines}
    inventories = {place(each): each for each in objects.inventories}
    rows = [_host(host, inventories[host.namespace, host.name], present, infrastructure, now) for host in view.hosts]
    events = _node_refs(objects.events)
    for cluster in view.clusters:
        for group in cluster.groups:
            rows += [
                _machine(cluster, machine, present[cluster.namespace, machine.name], events, now)
                for machine in group.machines
                if not machine.host and (cluster.namespace, machine.name) not in infrastructure
            ]
    return tuple(rows)


def last_story(rows: Sequence[Row], now: datetime) -> datetime:
    """When what happened last began: from there on nothing was quiet for longer than half an hour."""
    moments = sorted((span.begin for row in rows for span in row.spans), reverse=True)
    if not moments:
        return now
    begin = moments[0]
    for each in moments:
        if begin - each > _PAUSE:
            break
        begin = each
    # So that one sees what it was before.
    return begin - max((now - begin) / 20, timedelta(seconds=1))


def since(rows: Sequence[Row], begin: datetime) -> tuple[Row, ...]:
    """The rows from a moment on; what began before it begins there."""
    return tuple(
        msgspec.structs.replace(
            row, spans=tuple(msgspec.structs.replace(span, begin=max(span.begin, begin)) for span in row.spans if span.end > begin)
        )
        for row in rows
    )


def spans_of(lives: Sequence[Cycle], registered: datetime | None, now: datetime) -> list[Span]:
    """The lives of a host one after the other, up to now; ``registered``: when the host came, where all of its lives are known."""
    begun: list[tuple[datetime, str, str, str]] = [] if registered is None else [(registered, stages.REGISTERED, "", "")]
    for life in lives:
        # One that was given up is cleaned after its release.
        ends = ("released", "cleaned") if _was_given_up(life) else ("cleaned", "released")
        for name in (*_STAGES, *ends):
            at: datetime | None = getattr(life, name)
            if at is not None:
                begun.append((at, _stage(life, name), life.version, life.machine))
    # The clocks of a manager before and after it was replaced may differ: what comes later in a life is not shown before what led to it.
    spans: list[Span] = []
    for at, stage, version, machine in begun:
        if stage in (stages.REGISTERED, stages.FREE, stages.UNAVAILABLE):
            version = machine = ""
        if spans and (spans[-1].stage, spans[-1].version, spans[-1].machine) == (stage, version, machine):
            continue
        begin = max(at, spans[-1].begin) if spans else at
        if spans:
            spans[-1] = msgspec.structs.replace(spans[-1], end=begin)
        spans.append(Span(stage, begin, max(begin, now), version, stages.MEANINGS[stage], machine))
    return [span for span in spans if span.end > span.begin or span is spans[-1]]


def _stage(life: Cycle, name: str) -> str:
    if name in _STAGES:
        return _STAGES[name]
    if name == "cleaned":
        return stages.FREE if _was_given_up(life) else stages.CLEANING
    return stages.UNAVAILABLE if _was_given_up(life) else stages.FREE


def _was_given_up(life: Cycle) -> bool:
    """Whether the host was let go without being clean, and cleaned later."""
    return life.cleaned is not None and life.released is not None and life.released < life.cleaned


def _host(
    host: HostView,
    inventory: Manifest,
    machines: Mapping[tuple[str, str], Manifest],
    infrastructure: Mapping[tuple[str, str], Manifest],
    now: datetime,
) -> Row:
    lives = list(cycles.read(inventory["metadata"].get("annotations") or {}))
    # Of a host with a full record older lives may be forgotten: what it was before them is not known.
    made = moment(inventory["metadata"].get("creationTimestamp")) if len(lives) < cycles.KEPT else None
    at = (host.namespace, host.machine)
    if host.machine and at in infrastructure:
        lives = _with(lives, _present(host, machines.get(at), infrastructure[at]))
    spans = spans_of(sorted(lives, key=_order), made, now)
    last = spans[-1] if spans else None
    if last is None or last.stage != host.stage:
        # The objects of this moment say what it is now.
        begin = max(host.since or now, last.begin if last is not None else host.since or now)
        if last is not None:
            spans[-1] = msgspec.structs.replace(last, end=begin)
        spans.append(
            Span(host.stage, begin, max(begin, now), host.version if host.machine else "", stages.MEANINGS[host.stage], host.machine)
        )
    return Row(host.namespace, host.name, host.cluster or (lives[-1].cluster if lives else ""), tuple(spans))


def _present(host: HostView, machine: Manifest | None, infrastructure: Manifest) -> Cycle:
    """What objects tell of the machine that a host is at present."""
    status = infrastructure.get("status") or {}

    def when(type_: str, *, holds: bool = True) -> datetime | None:
        found = condition(infrastructure, type_)
        return moment(found.get("lastTransitionTime")) if found and (found.get("status") == "True" or not holds) else None

    metadata = (machine or {}).get("metadata") or {}
    return cycles.Cycle(
        machine=host.machine,
        cluster=host.cluster,
        version=str(((machine or {}).get("spec") or {}).get("version") or ""),
        claimed=when(names.INVENTORY_ALLOCATED_CONDITION),
        planned=moment(status.get("planWrittenTime")),
        applied=moment(status.get("planAppliedTime")),
        joined=when(names.NODE_JOINED_CONDITION),
        draining=moment(metadata.get("deletionTimestamp")),
        drained=when(names.HOST_CLEANED_CONDITION, holds=False),
    )


def _with(lives: list[Cycle], seen: Cycle) -> list[Cycle]:
    """The record with the present life: what was written down first is nearer to when it happened."""
    if not lives or lives[-1].machine != seen.machine:
        return [*lives, seen]
    known = lives[-1]
    more = {name: getattr(seen, name) for name in cycles.MOMENTS if getattr(known, name) is None}
    # A Node that came back, or a plan that was written anew, is no new beginning of a life that had gone on.
    return [*lives[:-1], msgspec.structs.replace(known, **more, version=known.version or seen.version)]


def _order(life: Cycle) -> str:
    first: datetime | None = next((at for name in cycles.MOMENTS if (at := getattr(life, name)) is not None), None)
    return "" if first is None else first.isoformat()


def _machine(
    cluster: ClusterView, machine: MachineView, manifest: Manifest, events: Mapping[tuple[str, str], datetime], now: datetime
) -> Row:
    """A machine that is no host of ours: made, up, a Node, on its way out."""
    metadata = manifest["metadata"]
    made, deleted = moment(metadata.get("creationTimestamp")) or now, moment(metadata.get("deletionTimestamp"))
    up = condition(manifest, core.INFRASTRUCTURE_READY_CONDITION)
    begun = [(made, stages.PROVISIONING)]
    if up.get("status") == "True" and (at := moment(up.get("lastTransitionTime"))) is not None:
        begun.append((at, stages.BOOTING))
    joined = events.get((cluster.namespace, machine.name)) or machine.joined
    if joined is not None:
        begun = [each for each in begun if each[0] < joined]
        begun.append((joined, stages.MEMBER))
    if deleted is not None:
        begun.append((deleted, machine.stage))
    elif begun[-1][1] != machine.stage and machine.since is not None:
        begun.append((machine.since, machine.stage))
    ends = [*(at for at, _ in begun[1:]), max(now, begun[-1][0])]
    spans = [
        Span(stage, at, max(at, end), machine.version, stages.MEANINGS[stage], machine.name)
        for (at, stage), end in zip(begun, ends, strict=True)
    ]
    return Row(cluster.namespace, machine.name, cluster.name, tuple(spans))


def _node_refs(events: Iterable[Manifest]) -> dict[tuple[str, str], datetime]:
    """When Machines became Nodes, as Events tell it; a condition tells when its Node was last well again."""
    found: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    for event in events:
        about = event.get("involvedObject") or {}
        at = moment(event.get("firstTimestamp") or event.get("eventTime"))
        if about.get("kind") == MACHINE.kind and event.get("reason") == _NODE_REF and at is not None:
            found[str(about.get("namespace") or ""), str(about.get("name") or "")].append(at)
    return {at: min(moments) for at, moments in found.items()}
