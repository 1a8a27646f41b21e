"""The order in which a Cluster goes: first its workers, then its control plane, then its infrastructure.

What something else owns, as a MachineDeployment its MachineSets, goes with that, and is waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.api.cluster.kinds import MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from slipway.fleet.machines.cluster.observed import owned
from slipway.fleet.machines.cluster.status import INTERNAL_ERROR, UNSEEN, Deletion, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.cluster.observed import Descendants, Observed
    from slipway.runtime.objects import Metadata

WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlaneDeletion"
_SHOWN = 5


class Workers(NamedTuple):
    """What is still there of a Cluster beside its control plane and its infrastructure."""

    owned: list[tuple[Kind, Metadata]]
    """What it is the Cluster's to delete, in this order."""
    pending: int
    """How many objects there are at all."""
    named: list[str]
    """They, in words."""


class Step(NamedTuple):
    """What the deletion does next: delete these objects, and wait; ``done`` when there is nothing to wait for."""

    deletion: Deletion
    descendants: Sequence[tuple[Kind, Metadata]] = ()
    control_plane: bool = False
    infrastructure: bool = False
    done: bool = False


def next_step(observed: Observed) -> Step:
    if observed.descendants is None:
        return Step(Deletion(INTERNAL_ERROR, observed.unlisted or UNSEEN))
    left = workers(observed.cluster, observed.descendants)
    if left.pending:
        message = "\n".join(f"* {line}" for line in left.named)
        going = [(kind, metadata) for kind, metadata in left.owned if metadata.deletion_timestamp is None]
        return Step(Deletion(names.WAITING_FOR_WORKERS_DELETION_REASON, message), going)
    spec = observed.cluster.get("spec") or {}
    for field, external, reason in (
        ("controlPlaneRef", observed.control_plane, WAITING_FOR_CONTROL_PLANE),
        ("infrastructureRef", observed.infrastructure, names.WAITING_FOR_INFRASTRUCTURE_DELETION_REASON),
    ):
        reference = spec.get(field)
        if not reference or external.missing:
            continue
        if external.manifest is None:
            # Whether it is still there is not known: nothing behind it may go.
            return Step(Deletion(INTERNAL_ERROR, external.problem or UNSEEN))
        delete = not external.manifest["metadata"].get("deletionTimestamp")
        deletion = Deletion(reason, f"Waiting for {reference['kind']} to be deleted")
        return Step(deletion, control_plane=delete and field == "controlPlaneRef", infrastructure=delete and field == "infrastructureRef")
    return Step(Deletion(names.DELETION_COMPLETED_REASON, "Deletion completed"), done=True)


def workers(cluster: Manifest, descendants: Descendants) -> Workers:
    """Control-plane Machines are among them where no control plane is responsible for them."""
    name = cluster["metadata"]["name"]
    alone = not (cluster.get("spec") or {}).get("controlPlaneRef")
    pools: list[tuple[Kind, Metadata]] = [(MACHINE_POOL, one.metadata) for one in descendants.machine_pools]
    deployments: list[tuple[Kind, Metadata]] = [(MACHINE_DEPLOYMENT, one.metadata) for one in descendants.machine_deployments]
    sets: list[tuple[Kind, Metadata]] = [(MACHINE_SET, one.metadata) for one in descendants.machine_sets]
    machines: list[tuple[Kind, Metadata]] = [(MACHINE, one.metadata) for one in descendants.worker_machines]
    control_plane: list[tuple[Kind, Metadata]] = [(MACHINE, one.metadata) for one in descendants.control_plane_machines if alone]
    left = [*pools, *deployments, *sets, *machines, *control_plane]
    named = [
        ("Control plane Machines", control_plane),
        ("MachineDeployments", deployments),
        ("MachineSets", sets),
        ("MachinePools", pools),
        ("Worker Machines", machines),
    ]
    return Workers(
        [(kind, metadata) for kind, metadata in left if owned(metadata, name)],
        len(left),
        [f"{words}: {shortened(sorted(metadata.name for _, metadata in found), _SHOWN)}" for words, found in named if found],
    )
