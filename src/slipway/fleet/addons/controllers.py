"""What the addons consist of, for a manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.addons import bindings, reconciler
from slipway.fleet.addons.bindings import ClusterResourceSetBindingReconciler
from slipway.fleet.addons.reconciler import ClusterResourceSetReconciler

if TYPE_CHECKING:
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.runtime.controller import Reconciler
    from slipway.runtime.manager import Manager

RULES = (*reconciler.RULES, *bindings.RULES)


def controllers(manager: Manager, workload: WorkloadClusters) -> list[Reconciler]:
    """``workload`` is the manager's own, shared by all its controllers."""
    return [
        ClusterResourceSetReconciler(manager.client, manager.cache, workload=workload),
        ClusterResourceSetBindingReconciler(manager.client, manager.cache),
    ]
