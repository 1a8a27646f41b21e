"""The order in which a Machine goes, as one function of what is there.

The steps and what leaves them out are Cluster API's, but for two things.  A Machine whose host was cleaned for long still gets its Node
deleted: ``nodeDeletionTimeoutSeconds`` counts from the first try to delete the Node, not from the deletion of the Machine.  And a host
that its provider reports as powered off is drained without asking anybody (:data:`slipway.fleet.machines.machine.words.HOST_POWERED_OFF`).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.machines.machine import words
from slipway.fleet.machines.machine.values import moment

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from slipway.api.cluster.core.machine import Machine
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.machine.values import External


class Step(Enum):
    """What is to be done or waited for next; the value says it in a log line."""

    PRE_DRAIN_HOOKS = "waiting for pre-drain hooks"
    DRAIN = "draining the Node"
    VOLUMES = "waiting for volumes to be detached"
    PRE_TERMINATE_HOOKS = "waiting for pre-terminate hooks"
    INFRASTRUCTURE = "deleting the infrastructure machine"
    BOOTSTRAP = "deleting the bootstrap config"
    NODE = "deleting the Node"
    FINISHED = "deletion completed"


class Keep(Enum):
    """Why the Node of a Machine that goes is left alone; the value is Cluster API's word for it."""

    CLUSTER_DELETED = "cluster is being deleted"
    NO_NODE = "noderef is nil"
    CONTROL_PLANE_DELETED = "control plane is being deleted"
    NO_CONTROL_PLANE = "no control plane members"


class ControlPlane(NamedTuple):
    """What a Cluster's controlPlaneRef leads to."""

    deleting: bool = False
    external: bool = False
    """There are no Machines for it."""


def keep_node(
    *, cluster_deleting: bool, node_name: str, control_plane: ControlPlane | None, active_control_plane_machines: int
) -> Keep | None:
    """Why the Node is neither drained nor deleted; None where it is.

    ``control_plane`` is None where the Cluster has none, or one that is missing.
    """
    if cluster_deleting:
        return Keep.CLUSTER_DELETED
    if not node_name:
        return Keep.NO_NODE
    if control_plane is not None and control_plane.deleting:
        return Keep.CONTROL_PLANE_DELETED
    if control_plane is not None and control_plane.external:
        return None
    return None if active_control_plane_machines else Keep.NO_CONTROL_PLANE


def next_step(
    machine: Machine, *, keep: Keep | None, infrastructure: External, config: External, done: Collection[Step], now: datetime
) -> Step:
    """The first step that is left.  ``done`` are those that a look has shown to be finished in this reconcile."""
    deletes_node = keep is None
    if deletes_node and hooks(machine, names.PRE_DRAIN_HOOK_PREFIX):
        return Step.PRE_DRAIN_HOOKS
    if infrastructure.is_unread:
        # Upstream goes on without a drain, which then never comes where a hook waits before the termination.
        return Step.INFRASTRUCTURE
    if deletes_node and Step.DRAIN not in done and may_drain(machine, infrastructure, now):
        return Step.DRAIN
    if deletes_node and Step.VOLUMES not in done and may_wait_for_volumes(machine, infrastructure, now):
        return Step.VOLUMES
    if hooks(machine, names.PRE_TERMINATE_HOOK_PREFIX):
        return Step.PRE_TERMINATE_HOOKS
    if not infrastructure.missing:
        return Step.INFRASTRUCTURE
    if machine.spec.bootstrap.config_ref.name and not config.missing:
        return Step.BOOTSTRAP
    if deletes_node and Step.NODE not in done:
        return Step.NODE
    return Step.FINISHED


def hooks(machine: Machine, prefix: str) -> list[str]:
    """Those whom the deletion waits for; their owners take the annotations away."""
    return sorted(key for key in machine.metadata.get("annotations") or () if key.startswith(prefix))


def may_drain(machine: Machine, infrastructure: External, now: datetime) -> bool:
    deletion, limit = machine.status.deletion, machine.spec.deletion.node_drain_timeout_seconds
    began = deletion.node_drain_start_time if deletion is not None else ""
    return _may_wait(machine, infrastructure, names.EXCLUDE_NODE_DRAINING_ANNOTATION) and not _is_over(began, limit, now)


def may_wait_for_volumes(machine: Machine, infrastructure: External, now: datetime) -> bool:
    deletion, limit = machine.status.deletion, machine.spec.deletion.node_volume_detach_timeout_seconds
    began = deletion.wait_for_node_volume_detach_start_time if deletion is not None else ""
    return _may_wait(machine, infrastructure, names.EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH_ANNOTATION) and not _is_over(began, limit, now)


def gives_up_node(machine: Machine, now: datetime) -> bool:
    """Whether the Node that could not be deleted is left behind: its time is over, counted from the first try."""
    limit = machine.spec.deletion.node_deletion_timeout_seconds
    started = (machine.metadata.get("annotations") or {}).get(words.NODE_DELETION_STARTED)
    return _is_over(started, limit, now)


def is_powered_off(infrastructure: Manifest | None) -> bool:
    """Whether the provider vouches that the host is off."""
    listed = ((infrastructure or {}).get("status") or {}).get("conditions")
    return isinstance(listed, list) and any(
        isinstance(condition, dict) and condition.get("type") == words.HOST_POWERED_OFF and condition.get("status") == "True"
        for condition in listed
    )


def is_unreachable(node: Manifest) -> bool:
    """Whether nothing is heard of the kubelet."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "Unknown")
    return False


def _may_wait(machine: Machine, infrastructure: External, exclusion: str) -> bool:
    if exclusion in (machine.metadata.get("annotations") or {}):
        return False
    deletion = machine.status.deletion
    # From here on the hooks' owners count on an empty Node; and a host that goes cannot be emptied.
    return not (deletion is not None and deletion.wait_for_pre_terminate_hook_start_time) and infrastructure.is_there


def _is_over(began: str | None, limit: int | None, now: datetime) -> bool:
    """Whether ``limit`` seconds are over; none and 0 are no limit."""
    since = moment(began)
    return bool(limit and limit > 0) and since is not None and (now - since).total_seconds() >= (limit or 0)
