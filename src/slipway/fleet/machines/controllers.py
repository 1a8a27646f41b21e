"""What ``--controllers=machines`` runs: upstream's core manager, but for ClusterClasses and MachinePools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.machines.cluster import reconciler as cluster
from slipway.fleet.machines.deployment import reconciler as deployment
from slipway.fleet.machines.healthcheck import reconciler as healthcheck
from slipway.fleet.machines.machine import reconciler as machine
from slipway.fleet.machines.machineset import reconciler as machineset

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.machines.options import MachinesOptions
    from slipway.runtime.controller import Reconciler, Watch
    from slipway.runtime.manager import Manager
    from slipway.runtime.objects import Request

RULES = (*cluster.RULES, *machine.RULES, *machineset.RULES, *deployment.RULES, *healthcheck.RULES)


def controllers(manager: Manager, options: MachinesOptions, workload: WorkloadClusters) -> list[Reconciler]:
    client, cache, events = manager.client, manager.cache, manager.events

    def watch(name: str) -> Callable[[Watch], None]:
        return lambda wanted: manager.watch(name, wanted)

    def enqueue(name: str) -> Callable[[Request], None]:
        return lambda request: manager.enqueue(name, request)

    return [
        cluster.ClusterReconciler(
            client, cache, workload=workload, events=events, watch=watch(cluster.NAME), enqueue=enqueue(cluster.NAME)
        ),
        machine.MachineReconciler(
            client, cache, workload=workload, events=events, watch=watch(machine.NAME), enqueue=enqueue(machine.NAME), options=options
        ),
        machineset.MachineSetReconciler(client, cache, workload=workload, events=events, watch=watch(machineset.NAME)),
        deployment.MachineDeploymentReconciler(client, cache, events=events, watch=watch(deployment.NAME)),
        healthcheck.MachineHealthCheckReconciler(
            client, cache, workload=workload, events=events, watch=watch(healthcheck.NAME), enqueue=enqueue(healthcheck.NAME)
        ),
    ]
