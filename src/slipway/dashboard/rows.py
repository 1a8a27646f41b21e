"""What the page draws, as JSON: a row for each cluster, machine, pool and host; the picture of a rollout; the explanation of a thing.

A row is sent anew when a byte of it differs, so nothing is in it that follows from the time of day alone: the page counts seconds itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.fleet.overview.explanation import explain
from slipway.fleet.overview.model import overview
from slipway.fleet.overview.timeline import last_story, timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from slipway.fleet.overview.model import ClusterView, GroupView, HostView, MachineView, PoolView
    from slipway.fleet.overview.objects import Objects
    from slipway.fleet.overview.problems import Ref

CLUSTER, MACHINE, POOL, HOST = "cluster", "machine", "pool", "host"
_encode = msgspec.json.Encoder(order="deterministic").encode
# Hosts have many labels, and nobody looks at ten thousand times all of them.
_UNSHOWN_OF_HOST = ("labels",)


def rows(objects: Objects, now: datetime) -> dict[str, bytes]:
    """By their keys, which are the same as long as the object is the same."""
    view = overview(objects, now)
    made = {
        (str(each["metadata"].get("namespace") or ""), str(each["metadata"]["name"])): each["metadata"].get("creationTimestamp")
        for each in objects.machines
    }
    found: list[dict[str, Any]] = []
    for cluster in view.clusters:
        found.append(_cluster(cluster))
        found += _machines(cluster, made)
    found += map(_pool, view.pools)
    found += map(_host, view.hosts)
    return {row["key"]: _encode(row) for row in found}


def pictured(objects: Objects, now: datetime) -> bytes:
    """The lives of the hosts that are a cluster's or were, for its picture."""
    lives = timeline(objects, now)
    return _encode({"begin": last_story(lives, now), "rows": lives})


def explained(objects: Objects, ref: Ref, now: datetime) -> bytes:
    """What a thing waits for, and what to do."""
    return _encode(explain(objects, ref, now))


def _cluster(view: ClusterView) -> dict[str, Any]:
    """Without its machines, which are rows of their own: one of a thousand changes, and the others need not be sent."""
    row = _row(CLUSTER, view.namespace, view.name, view, unshown=("controlPlane", "workers"))
    row["groups"] = [_group(each, control_plane=each is view.control_plane) for each in view.groups]
    return row


def _group(view: GroupView, *, control_plane: bool) -> dict[str, Any]:
    return {**_shown(view, ("machines",)), "controlPlane": control_plane}


def _machines(cluster: ClusterView, made: Mapping[tuple[str, str], object]) -> Iterable[dict[str, Any]]:
    for group in cluster.groups:
        for machine in group.machines:
            row = _row(MACHINE, cluster.namespace, machine.name, machine, unshown=("ageSeconds",))
            row |= {"cluster": cluster.name, "group": group.name, "controlPlane": group is cluster.control_plane}
            yield {**row, "made": made.get((cluster.namespace, machine.name))}


def _pool(view: PoolView) -> dict[str, Any]:
    return _row(POOL, view.namespace, view.name, view)


def _host(view: HostView) -> dict[str, Any]:
    return _row(HOST, view.namespace, view.name, view, unshown=_UNSHOWN_OF_HOST)


def _row(
    type_: str, namespace: str, name: str, view: ClusterView | MachineView | PoolView | HostView, *, unshown: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {"key": f"{type_}/{namespace}/{name}", "type": type_, "namespace": namespace, **_shown(view, unshown)}


def _shown(view: msgspec.Struct, unshown: tuple[str, ...]) -> dict[str, Any]:
    """What there is to tell: of ten thousand hosts, what is empty is not sent."""
    plain: dict[str, Any] = msgspec.to_builtins(view)
    return {key: value for key, value in plain.items() if key not in unshown and not _is_empty(value)}


def _is_empty(value: object) -> bool:
    """Nothing, no, or none of it; a count of nought is a count."""
    return value is None or value is False or (isinstance(value, str | list | tuple | dict) and not value)
