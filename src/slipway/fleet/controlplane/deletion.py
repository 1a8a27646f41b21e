"""How a control plane goes: after all workers, and then all its Machines at once, without moving anything from one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.kinds import MACHINE, MACHINE_POOL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.references import members
from slipway.fleet.contract.status import Status
from slipway.fleet.controlplane.decisions.preflight import DELETION_RETRY
from slipway.fleet.controlplane.status import older
from slipway.fleet.controlplane.status.conditions import stale_machines
from slipway.runtime import finalizers
from slipway.runtime.objects import DONE, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.fleet.controlplane.operations import Operations
    from slipway.fleet.controlplane.work import Work
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder

_WAITING_FOR_MACHINES = "WaitingForMachineDeletion"
_SHOWN = 5


async def delete(work: Work, cache: Cache, operations: Operations, events: EventRecorder) -> Result:
    if not work.machines:
        work.deleting = (names.DELETION_COMPLETED_REASON, "Deletion completed")
        finalizers.remove(work.manifest, names.KUBEADM_CONTROL_PLANE_FINALIZER)
        return DONE
    machines = [machine.name for machine in await members(cache, MACHINE, work.namespace, work.cluster.name)]
    pools = [pool.name for pool in await members(cache, MACHINE_POOL, work.namespace, work.cluster.name)]
    workers = [name for name in machines if name not in work.machines]
    status = Status(work.manifest, work.now)
    if workers or pools:
        status.set_deprecated(older.false(older.RESIZED, "Deleting", "Info", "Waiting for worker nodes to be deleted first"))
        work.deleting = (names.WAITING_FOR_WORKERS_DELETION_REASON, still_there(workers, pools))
        return Result(DELETION_RETRY)
    await _delete_all(work, operations, events)
    status.set_deprecated(older.false(older.RESIZED, "Deleting", "Info"))
    work.deleting = (_WAITING_FOR_MACHINES, going(work))
    return Result(DELETION_RETRY)


def still_there(workers: Sequence[str], pools: Sequence[str]) -> str:
    lines = []
    if pools:
        lines.append(f"* MachinePools: {_listed(pools)}")
    if workers:
        lines.append(f"* Machines: {_listed(workers)}")
    return "\n".join(["KubeadmControlPlane deletion blocked because following objects still exist:", *lines])


def going(work: Work) -> str:
    count = len(work.machines)
    stale = stale_machines([owned.machine for owned in work.machines.values()], work.now)
    return f"Deleting {count} Machine{'' if count == 1 else 's'}{f' and {stale}' if stale else ''}"


async def _delete_all(work: Work, operations: Operations, events: EventRecorder) -> None:
    problems = []
    for name, owned in work.machines.items():
        try:
            # Nobody is left to take over what the hook would save.
            await operations.release(work, name)
            if not owned.deleting:
                await operations.delete(work, name)
        except OperatorError as error:
            problems.append(f"{name}: {error.message}")
    if problems:
        message = f"Failed to delete control plane Machines for cluster {work.namespace}/{work.cluster.name}: {'; '.join(problems)}"
        events.event(work.manifest, "Warning", "FailedDelete", message)
        work.deleting = (names.INTERNAL_ERROR_REASON, "Please check controller logs for errors")
        raise OperatorError(message)


def _listed(found: Sequence[str]) -> str:
    shown = sorted(found)
    return ", ".join([*shown[:_SHOWN], *([f"... ({len(shown) - _SHOWN} more)"] if len(shown) > _SHOWN else ())])
