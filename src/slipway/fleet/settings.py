"""What a manager is told before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.inventory.options import InventoryOptions
from slipway.fleet.machines.options import MachinesOptions
from slipway.fleet.snapshots.options import SnapshotOptions
from slipway.runtime.leader import LeaseTimes

if TYPE_CHECKING:
    from slipway.fleet.bootstrap.options import BootstrapOptions


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What ``manager run`` was told.  Times are seconds; an address is ``0`` where there is to be none."""

    controllers: tuple[str, ...]
    namespace: str
    watch_filter: str
    concurrency: int
    leader_elect: bool
    shards: int = 1
    """Into how many parts the clusters are divided, each worked on by one of several managers."""
    own_namespace: str
    metrics_address: str
    health_address: str
    webhook_port: int
    webhook_cert_dir: str
    sync_period: float
    bootstrap: BootstrapOptions
    inventory: InventoryOptions = InventoryOptions()
    baremetal: BaremetalOptions = BaremetalOptions()
    machines: MachinesOptions = MachinesOptions()
    snapshots: SnapshotOptions = SnapshotOptions()
    lease: LeaseTimes = LeaseTimes()
    """How long Leases last."""
    pace: float = 1.0
    """How long a second of waiting takes: less where hosts are simulated."""
    log_format: str
    verbosity: int
