"""Elemental's kinds as CustomResourceDefinitions are made from them."""

from __future__ import annotations

from slipway.api.cluster.definition import MOVE, MOVE_HIERARCHY, Column, Definition, Version, age, condition
from slipway.api.cluster.kinds import MACHINE_INVENTORY, MACHINE_REGISTRATION, SEED_IMAGE
from slipway.api.elemental.inventory import MachineInventory
from slipway.api.elemental.registration import MachineRegistration
from slipway.api.elemental.seedimage import SeedImage

DEFINITIONS = (
    Definition(
        MACHINE_INVENTORY,
        (
            Version(
                MACHINE_INVENTORY.version,
                MachineInventory,
                (
                    Column("Pool", r".metadata.annotations['baremetal\.alauda\.io/pool']", "The pool that the host is of"),
                    Column("Allocation", r".metadata.annotations['baremetal\.alauda\.io/allocation-state']", "Whether the host is in use"),
                    Column("Plan", ".status.plan.state", "What became of the last plan"),
                    condition("Ready", "Whether the host has done what it was told last"),
                    age(MACHINE_INVENTORY),
                ),
                storage=True,
            ),
        ),
        status=True,
        categories=(),
        contracts={},
        # Its plan Secret, and the account with which the host reads that, belong to it.
        moved=MOVE_HIERARCHY,
    ),
    Definition(
        MACHINE_REGISTRATION,
        (
            Version(
                MACHINE_REGISTRATION.version,
                MachineRegistration,
                (
                    condition("Ready", "Whether hosts can register"),
                    Column("URL", ".status.registrationURL", "Where hosts register", priority=10),
                    age(MACHINE_REGISTRATION),
                ),
                storage=True,
            ),
        ),
        status=True,
        categories=(),
        contracts={},
        moved=MOVE_HIERARCHY,
    ),
    Definition(
        SEED_IMAGE,
        (
            Version(
                SEED_IMAGE.version,
                SeedImage,
                (
                    Column("State", ".status.state", "How far the image is"),
                    condition("SeedImageReady", "Whether the image can be downloaded", name="Ready"),
                    Column("Download", ".status.downloadURL", "Where the image is", priority=10),
                    age(SEED_IMAGE),
                ),
                storage=True,
            ),
        ),
        status=True,
        categories=(),
        contracts={},
        moved=MOVE,
    ),
)
