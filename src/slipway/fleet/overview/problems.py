"""What is not well, and what to do about it: from the conditions of objects, by tables of conditions and reasons.

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
from slipway.fleet.baremetal.reasons import HOST_SILENT, REASONS
from slipway.fleet.contract.conditions import moment
from slipway.fleet.overview.stages import conditions

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
_TO_DO = {(row.kind, row.condition, row.reason): row.to_do for row in REASONS}
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


class _Advice(NamedTuple):
    """Of a condition of Cluster API: when it is a problem, and what to do."""

    to_do: str
    bad: tuple[str, ...] = ("False",)
    says: str = ""
    """What its message has to have in it."""


_ADVICE = {
    (CLUSTER.kind, core.INFRASTRUCTURE_READY_CONDITION): _Advice("Look at the conditions of the Cluster's infrastructure."),
    (CLUSTER.kind, core.REMOTE_CONNECTION_PROBE_CONDITION): _Advice(
        "Look whether the control plane's endpoint is reachable from the manager, and whether a control plane runs."
    ),
    (CLUSTER.kind, core.TOPOLOGY_RECONCILED_CONDITION): _Advice("Look at the ClusterClass and the variables that the message names."),
    (CLUSTER.kind, core.PAUSED_CONDITION): _Advice("Nothing is done until spec.paused, or the annotation, is taken away.", ("True",)),
    (KUBEADM_CONTROL_PLANE.kind, core.CERTIFICATES_AVAILABLE_CONDITION): _Advice("Look at the Secrets of the cluster's certificates."),
    (KUBEADM_CONTROL_PLANE.kind, core.ETCD_CLUSTER_HEALTHY_CONDITION): _Advice(
        "Look at the etcd Pod of the machine that the message names; no machine is replaced while etcd would lose its quorum."
    ),
    (KUBEADM_CONTROL_PLANE.kind, core.CONTROL_PLANE_COMPONENTS_HEALTHY_CONDITION): _Advice(
        "Look at the Pods of the control plane on the machine that the message names."
    ),
    (KUBEADM_CONTROL_PLANE.kind, core.SCALING_UP_CONDITION): _Advice("Mend what the message names.", ("True", "False"), _BLOCKED),
    (KUBEADM_CONTROL_PLANE.kind, core.SCALING_DOWN_CONDITION): _Advice("Mend what the message names.", ("True", "False"), _BLOCKED),
    (KUBEADM_CONTROL_PLANE.kind, core.SNAPSHOT_BEFORE_ROLLOUT_CONDITION): _Advice(
        "Mend what the message names, or take the annotation slipway.io/snapshot-before-rollout away to roll without a snapshot."
    ),
    (MACHINE_SET.kind, core.SCALING_UP_CONDITION): _Advice("Mend what the message names.", ("True", "False"), _BLOCKED),
    (MACHINE.kind, core.BOOTSTRAP_CONFIG_READY_CONDITION): _Advice("Look at the KubeadmConfig of the Machine."),
    (MACHINE.kind, core.INFRASTRUCTURE_READY_CONDITION): _Advice("Look at the conditions of the Machine's infrastructure."),
    (MACHINE.kind, core.NODE_HEALTHY_CONDITION): _Advice(
        "Look at the Node and its kubelet; where it does not come back, delete the Machine.", ("False", "Unknown")
    ),
    (MACHINE.kind, core.HEALTH_CHECK_SUCCEEDED_CONDITION): _Advice("The Machine is to be replaced: look at OwnerRemediated."),
    (MACHINE.kind, core.OWNER_REMEDIATED_CONDITION): _Advice("The message says what its replacement waits for."),
    (MACHINE.kind, core.DELETING_CONDITION): _Advice(
        "The message says what holds it up: Pods that may not be evicted, volumes, a hook.", ("True",)
    ),
    (MACHINE_DEPLOYMENT.kind, core.AVAILABLE_CONDITION): _Advice("Look at its Machines."),
}
# What the words of a condition's first moments say of every machine that is made.
_ON_ITS_WAY = frozenset((core.NODE_HEALTHY_CONDITION, core.BOOTSTRAP_CONFIG_READY_CONDITION, core.INFRASTRUCTURE_READY_CONDITION))


def to_do(kind: str, condition_type: str, reason: str) -> str:
    """What the reference of conditions of the bare-metal provider says is to be done."""
    return _TO_DO.get((kind, condition_type, reason), "")


def problems_of(kind: str, manifest: Manifest, now: datetime) -> list[Problem]:
    """What is not well of an object, as its conditions say."""
    metadata = manifest["metadata"]
    ref = Ref(kind, str(metadata.get("namespace") or ""), str(metadata["name"]))
    found = []
    for each in conditions(manifest):
        type_, reason, message = str(each.get("type") or ""), str(each.get("reason") or ""), str(each.get("message") or "")
        since = moment(each.get("lastTransitionTime"))
        if kind in _OURS:
            way = to_do(kind, type_, reason) if each.get("status") != "True" else ""
            is_bad = each.get("status") == "False" and since is not None and now - since > _SETTLED
            lasting = reason in LASTING if kind == BAREMETAL_MACHINE.kind else is_bad
        else:
            way = _advised(kind, type_, each, is_new=not _has_node(manifest))
            lasting = since is not None and now - since > _PATIENCE
        if way:
            found.append(Problem(ref, type_, reason, message, since, way, lasting))
    return found


def worst_first(found: Iterable[Problem]) -> list[Problem]:
    """What lasts comes first, and of that what is oldest."""
    never = datetime.max.replace(tzinfo=UTC)
    return sorted(found, key=lambda each: (not each.lasting, each.since or never))


def _advised(kind: str, type_: str, condition: Manifest, *, is_new: bool) -> str:
    advice = _ADVICE.get((kind, type_))
    if advice is None or condition.get("status") not in advice.bad or advice.says not in str(condition.get("message") or ""):
        return ""
    return "" if kind == MACHINE.kind and is_new and type_ in _ON_ITS_WAY and condition.get("status") == "Unknown" else advice.to_do


def _has_node(manifest: Manifest) -> bool:
    return bool(((manifest.get("status") or {}).get("nodeRef") or {}).get("name"))
