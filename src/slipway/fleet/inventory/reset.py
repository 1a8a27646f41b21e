"""The plan that resets a host whose inventory is deleted: it starts its recovery system, which formats the disks and lets it register anew.

Elemental's hosts read ``/oem/reset-plan.yaml`` in the recovery system; the order and the names on the host are Elemental's.
"""

from __future__ import annotations

from slipway.api.elemental.plan import Instruction, Plan, PlanFile
from slipway.api.machinery.yaml import goyaml

MAX_FAILURES = 3
_CONFIG = "/oem/reset-plan.yaml"
_RESET = {"elemental": {"reset": {"enabled": True, "reset-persistent": True, "reset-oem": True, "reboot": True}}}


def reset_plan() -> Plan:
    """Always the same plan, so that it is known by its checksum after a restart of the manager."""
    return Plan(
        files=(PlanFile(_CONFIG, goyaml.dump(_RESET).encode()),),
        instructions=(
            Instruction("boot-recovery", "grub2-editenv", ("/oem/grubenv", "set", "next_entry=recovery")),
            # Delayed, so that the outcome is stored first.
            Instruction("reboot", "systemd-run", ("--on-active=5", "systemctl", "reboot")),
        ),
    )
