"""What is not well: from the conditions of objects, by tables of conditions and reasons; what to do about it is in :mod:`.waiting.advice`.

A problem is *lasting* where it stays until somebody does something; else it is what something waits for, and may well end by itself.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster import names as core
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY_POOL,
    MACHINE_SET,
)
from slipway.fleet.baremetal.reasons import HOST_SILENT
from slipway.fleet.contract.conditions import moment
from slipway.fleet.overview.stages import conditions
from slipway.fleet.overview.waiting.advice import REFERENCE, advice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest

LASTING = frozenset(
    (
        names.IMAGE_CATALOG_MISS_REASON,
        names.IMAGE_CATALOG_INVALID_REASON,
        names.IMAGE_REGISTRY_MISSING_REASON,
        names.PLAN_FAILED_REASON,
        HOST_SILENT,
        names.JOIN_DEADLINE_EXCEEDED_REASON,
        names.NODE_VERSION_DIFFERS_REASON,
        names.CLEAN_FAILED_REASON,
        names.CLEAN_DEADLINE_EXCEEDED_REASON,
        names.INVENTORY_LOST_REASON,
        names.POOL_EXHAUSTED_REASON,
        names.POOL_MISSING_REASON,
        names.POOL_INVALID_REASON,
    )
)
"""Reasons of BaremetalMachines that last until somebody does something; every other one is on its way."""
# What is not well for longer than a node takes to come back by itself.
_PATIENCE = timedelta(minutes=15)
# What pools and BaremetalClusters say for a moment, while hosts come and go, is nobody's business.
_SETTLED = timedelta(minutes=1)
_OURS = frozenset((BAREMETAL_MACHINE.kind, BAREMETAL_CLUSTER.kind, MACHINE_INVENTORY_POOL.kind))
# What the conditions of a KubeadmControlPlane and of MachineSets say in these words is held up; without them they merely work.
_BLOCKED = "blocked because"


class Ref(msgspec.Struct, frozen=True, rename="camel"):
    """An object of the management cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    object: Ref
    condition: str
    reason: str
    message: str
    since: datetime | None = None
    to_do: str = ""
    lasting: bool = False
    """Whether it stays until somebody does something; else it is what the object waits for."""


class _Bad(NamedTuple):
    """When a condition of Cluster API is a problem."""

    statuses: tuple[str, ...] = ("False",)
    says: str = ""
    """What its message has to have in it."""


_HELD_UP = _Bad(("True", "False"), _BLOCKED)
PROBLEMS = {
    (CLUSTER.kind, core.INFRASTRUCTURE_READY_CONDITION): _Bad(),
    (CLUSTER.kind, core.REMOTE_CONNECTION_PROBE_CONDITION): _Bad(),
    (CLUSTER.kind, core.TOPOLOGY_RECONCILED_CONDITION): _Bad(),
    (CLUSTER.kind, core.PAUSED_CONDITION): _Bad(("True",)),
    (KUBEADM_CONTROL_PLANE.kind, core.CERTIFICATES_AVAILABLE_CONDITION): _Bad(),
    (KUBEADM_CONTROL_PLANE.kind, core.ETCD_CLUSTER_HEALTHY_CONDITION): _Bad(),
    (KUBEADM_CONTROL_PLANE.kind, core.CONTROL_PLANE_COMPONENTS_HEALTHY_CONDITION): _Bad(),
    (KUBEADM_CONTROL_PLANE.kind, core.SCALING_UP_CONDITION): _HELD_UP,
    (KUBEADM_CONTROL_PLANE.kind, core.SCALING_DOWN_CONDITION): _HELD_UP,
    (KUBEADM_CONTROL_PLANE.kind, core.SNAPSHOT_BEFORE_ROLLOUT_CONDITION): _Bad(),
    (MACHINE_SET.kind, core.SCALING_UP_CONDITION): _HELD_UP,
    (MACHINE.kind, core.BOOTSTRAP_CONFIG_READY_CONDITION): _Bad(),
    (MACHINE.kind, core.INFRASTRUCTURE_READY_CONDITION): _Bad(),
    (MACHINE.kind, core.NODE_HEALTHY_CONDITION): _Bad(("False", "Unknown")),
    (MACHINE.kind, core.HEALTH_CHECK_SUCCEEDED_CONDITION): _Bad(),
    (MACHINE.kind, core.OWNER_REMEDIATED_CONDITION): _Bad(),
    (MACHINE.kind, core.DELETING_CONDITION): _Bad(("True",)),
    (MACHINE_DEPLOYMENT.kind, core.AVAILABLE_CONDITION): _Bad(),
}
# What the words of a condition's first moments say of every machine that is made.
_ON_ITS_WAY = frozenset((core.NODE_HEALTHY_CONDITION, core.BOOTSTRAP_CONFIG_READY_CONDITION, core.INFRASTRUCTURE_READY_CONDITION))


def to_do(kind: str, condition_type: str, reason: str) -> str:
    """What the reference of conditions of the bare-metal provider says is to be done."""
    known = REFERENCE.get((kind, condition_type, reason))
    return known.to_do if known is not None else ""


def problems_of(kind: str, manifest: Manifest, now: datetime) -> list[Problem]:
    """What is not well of an object, as its conditions say."""
    metadata = manifest["metadata"]
    ref = Ref(kind, str(metadata.get("namespace") or ""), str(metadata["name"]))
    found = []
    for each in conditions(manifest):
        type_, reason, message = str(each.get("type") or ""), str(each.get("reason") or ""), str(each.get("message") or "")
        since = moment(each.get("lastTransitionTime"))
        if kind in _OURS:
            is_problem = each.get("status") != "True" and bool(to_do(kind, type_, reason))
            settled = each.get("status") == "False" and since is not None and now - since > _SETTLED
            lasting = reason in LASTING if kind == BAREMETAL_MACHINE.kind else settled
        else:
            is_problem = _is_problem(kind, type_, each, is_new=not _has_node(manifest))
            lasting = since is not None and now - since > _PATIENCE
        if is_problem:
            found.append(Problem(ref, type_, reason, message, since, advice(kind, type_, reason, message).to_do, lasting))
    return found


def worst_first(found: Iterable[Problem]) -> list[Problem]:
    """What lasts comes first, and of that what is oldest."""
    never = datetime.max.replace(tzinfo=UTC)
    return sorted(found, key=lambda each: (not each.lasting, each.since or never))


def _is_problem(kind: str, type_: str, condition: Manifest, *, is_new: bool) -> bool:
    bad = PROBLEMS.get((kind, type_))
    if bad is None or condition.get("status") not in bad.statuses or bad.says not in str(condition.get("message") or ""):
        return False
    return not (kind == MACHINE.kind and is_new and type_ in _ON_ITS_WAY and condition.get("status") == "Unknown")


def _has_node(manifest: Manifest) -> bool:
    return bool(((manifest.get("status") or {}).get("nodeRef") or {}).get("name"))
