"""What ``--controllers=baremetal`` runs.  Beside these there is nothing to reconcile: a BaremetalMachineTemplate never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.baremetal.cluster import reconciler as cluster
from slipway.fleet.baremetal.hosts import reconciler as pools
from slipway.fleet.baremetal.machine import reconciler as machine
from slipway.fleet.baremetal.machine import watches
from slipway.fleet.baremetal.rollouts import reconciler as guarding
from slipway.fleet.baremetal.staging import reconciler as staging
from slipway.fleet.baremetal.vip import reconciler as alive

if TYPE_CHECKING:
    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.runtime.controller import Reconciler
    from slipway.runtime.manager import Manager

NAME = "baremetal"
WATCHES = (*cluster.WATCHES, *watches.WATCHES, *pools.WATCHES, *alive.WATCHES, *guarding.WATCHES, *staging.WATCHES)
RULES = (*cluster.RULES, *machine.RULES, *pools.RULES, *alive.RULES, *guarding.RULES, *staging.RULES)


def controllers(manager: Manager, options: BaremetalOptions, workload: WorkloadClusters) -> list[Reconciler]:
    """``workload`` is the manager's own, shared by all its controllers."""
    client, cache, events = manager.client, manager.cache, manager.events
    return [
        cluster.BaremetalClusterReconciler(client, cache, events=events),
        machine.BaremetalMachineReconciler(
            client,
            cache,
            options,
            workload=workload,
            events=events,
            enqueue=lambda request: manager.enqueue(machine.NAME, request),
        ),
        pools.MachineInventoryPoolReconciler(client, cache, options, workload=workload, events=events),
        alive.AliveReconciler(client, cache, workload),
        guarding.RolloutGuardReconciler(client, cache, options.catalog_namespace),
        staging.StagingReconciler(client, cache, options, enqueue=lambda request: manager.enqueue(staging.NAME, request)),
    ]
