"""Whether the Nodes of Machines are ready: all that yesterday's counters need of a workload cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.cluster.kinds import NODE
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.machineset.status import NodeState
from slipway.fleet.machines.times import seconds_since

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.fleet.machines.machineset.status import Seen
    from slipway.runtime.objects import Object


class _NodeStatus(msgspec.Struct):
    conditions: list[dict[str, Any]] = []


class _Node(msgspec.Struct):
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


async def node_states(workload: WorkloadClusters, cluster: ClusterFacts, seen: Seen, now: datetime) -> Callable[[str], NodeState]:
    """What is known of each Node; nothing of a cluster that cannot be reached, and that none of the Machines has joined is not asked."""
    wanted = {machine.status.node_ref.name for machine in seen.machines or () if machine.status.node_ref.name}
    known: dict[str, NodeState] = {}
    if wanted:
        try:
            cache = await workload.nodes(cluster.namespace, cluster.name)
            nodes = await cache.some(NODE, sorted(wanted))
        except OperatorError:
            # Told by the Cluster's own conditions; a count of 0 says the same here.
            nodes = []
        wait = seen.machine_set.spec.template.spec.min_ready_seconds or 0
        known = {node.name: _state(node, wait, now) for node in nodes}
    return lambda name: known.get(name, NodeState())


def _state(node: Object, wait: int, now: datetime) -> NodeState:
    is_ready, since = node.known(_ready)
    return NodeState(is_ready, is_ready and (wait == 0 or seconds_since(since, now) > wait))


def _ready(node: Object) -> tuple[bool, str | None]:
    """Whether it is, and since when."""
    for one in node.decode(_Node).status.conditions:
        if one.get("type") == "Ready":
            return one.get("status") == "True", one.get("lastTransitionTime")
    return False, None
