"""What the inventory consists of, for a manager."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slipway.fleet.inventory import reconciler
from slipway.fleet.inventory.reconciler import MachineInventoryReconciler
from slipway.fleet.inventory.registration import reconciler as registration
from slipway.fleet.inventory.registration.certificate import Given
from slipway.fleet.inventory.registration.reconciler import MachineRegistrationReconciler
from slipway.fleet.inventory.seed import reconciler as seed
from slipway.fleet.inventory.seed.reconciler import SeedImageReconciler

if TYPE_CHECKING:
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.inventory.options import InventoryOptions
    from slipway.runtime.controller import Reconciler
    from slipway.runtime.manager import Manager

NAME = "inventory"
WATCHES = (*reconciler.WATCHES, *registration.WATCHES, *seed.WATCHES)
RULES = (*reconciler.RULES, *registration.RULES, *seed.RULES)


def controllers(manager: Manager, options: InventoryOptions, workload: WorkloadClusters) -> list[Reconciler]:
    """The registration's own server is not among them: every replica has it, and these work under a lease."""
    del workload
    given = Given(Path(options.cert_dir)) if options.cert_dir else None
    return [
        MachineInventoryReconciler(manager.client, manager.cache),
        MachineRegistrationReconciler(manager.client, manager.cache, options.url),
        SeedImageReconciler(manager.client, manager.cache, options.url, options.home, given=given),
    ]
