"""The kinds of the bare-metal provider as CustomResourceDefinitions are made from them.

One version, v1beta1, satisfies both contracts of Cluster API: its status has what either asks for.
"""

from __future__ import annotations

from slipway.api.cluster.definition import MOVE, Column, Definition, Version, age, count
from slipway.api.cluster.infrastructure.cluster import BaremetalCluster
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.infrastructure.template import BaremetalMachineTemplate
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, BAREMETAL_MACHINE, BAREMETAL_MACHINE_TEMPLATE, MACHINE_INVENTORY_POOL

CONTRACTS = {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta1"}
_READY = Column("Ready", ".status.ready", "Whether the object is ready", "boolean")

DEFINITIONS = (
    Definition(
        BAREMETAL_CLUSTER,
        (
            Version(
                BAREMETAL_CLUSTER.version,
                BaremetalCluster,
                (
                    Column("Endpoint", ".spec.controlPlaneEndpoint.host", "The address of the API server"),
                    _READY,
                    age(BAREMETAL_CLUSTER),
                ),
                storage=True,
            ),
        ),
        status=True,
        short_names=("bmc",),
        contracts=CONTRACTS,
    ),
    Definition(
        BAREMETAL_MACHINE,
        (
            Version(
                BAREMETAL_MACHINE.version,
                BaremetalMachine,
                (
                    Column("Pool", ".spec.machineInventoryPoolRef.name", "The pool that the host is of"),
                    Column("Phase", ".status.phase", "Where the object is in its life"),
                    Column("Inventory", ".status.machineInventoryRef.name", "The host"),
                    _READY,
                    age(BAREMETAL_MACHINE),
                ),
                storage=True,
            ),
        ),
        status=True,
        short_names=("bmm",),
        contracts=CONTRACTS,
    ),
    Definition(
        BAREMETAL_MACHINE_TEMPLATE,
        (
            Version(
                BAREMETAL_MACHINE_TEMPLATE.version,
                BaremetalMachineTemplate,
                (
                    Column("Pool", ".spec.template.spec.machineInventoryPoolRef.name", "The pool that hosts are taken from"),
                    age(BAREMETAL_MACHINE_TEMPLATE),
                ),
                storage=True,
            ),
        ),
        short_names=("bmmt",),
        contracts=CONTRACTS,
    ),
    Definition(
        MACHINE_INVENTORY_POOL,
        (
            Version(
                MACHINE_INVENTORY_POOL.version,
                MachineInventoryPool,
                (
                    Column("Cluster", ".spec.clusterName", "Cluster"),
                    count("Total", ".status.total", "Hosts of the pool"),
                    count("Available", ".status.available", "Hosts that wait for a machine"),
                    count("Allocated", ".status.allocated", "Hosts that are a machine's"),
                    age(MACHINE_INVENTORY_POOL),
                ),
                storage=True,
            ),
        ),
        status=True,
        short_names=("mip",),
        contracts=CONTRACTS,
        moved=MOVE,
    ),
)
