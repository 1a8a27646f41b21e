"""The plan that resets a host whose inventory is deleted, as elemental-operator has it.

A host that Elemental's toolkit installed starts its recovery system, which reads ``/oem``: a stage there starts elemental-register-reset,
which registers the host anew, formats what ``config.elemental.reset`` of its registration says, and boots.  A host that was installed
otherwise (``no-toolkit``) has no recovery system: it only gets a marker, and whoever installed it resets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.elemental import names
from slipway.api.elemental.plan import Instruction, Plan, PlanFile
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FAILURES = 3
_STAGE = {
    "name": "Elemental Reset",
    "stages": {
        "network.after": [
            {
                "name": "Reset the host",
                # In the recovery system alone: the first is the marker of toolkits before 2.0.
                "if": "[ -f /run/cos/recovery_mode ] || [ -f /run/elemental/recovery_mode ]",
                "commands": ["systemctl start elemental-register-reset"],
            }
        ]
    },
}
_MANAGED = Plan(
    files=(PlanFile("/oem/reset-cloud-config.yaml", goyaml.dump(_STAGE).encode()),),
    instructions=(
        Instruction("boot-recovery", "grub2-editenv", ("/oem/grubenv", "set", "next_entry=recovery")),
        # In a minute, so that the outcome is stored first.
        Instruction("reboot", "shutdown", ("-r", "+1")),
    ),
)
_UNMANAGED = Plan(files=(PlanFile("/var/lib/elemental/.unmanaged_reset", b"the MachineInventory of this host is deleted\n"),))


def reset_plan(annotations: Mapping[str, str]) -> Plan:
    """The plan of a host by the annotations of its inventory: always the same one, known by its checksum after a restart of the manager."""
    return _UNMANAGED if annotations.get(names.OS_UNMANAGED_ANNOTATION) == "true" else _MANAGED
