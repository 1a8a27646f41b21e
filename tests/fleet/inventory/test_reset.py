"""The plan that resets a host, held against that of elemental-operator (controllers/machineinventory_controller.go)."""

from __future__ import annotations

from slipway.api.machinery.yaml import goyaml
from slipway.fleet.inventory.reset import reset_plan


def test_a_host_of_elementals_toolkit_boots_its_recovery_system_which_resets_it() -> None:
    plan = reset_plan({})
    (file,) = plan.files
    assert (file.path, file.permissions) == ("/oem/reset-cloud-config.yaml", "0600")
    (stage,) = goyaml.load(file.content.decode())[0].value["stages"]["network.after"]
    assert stage["commands"] == ["systemctl start elemental-register-reset"]
    assert "/run/elemental/recovery_mode" in stage["if"]
    assert [(each.command, *each.args) for each in plan.instructions] == [
        ("grub2-editenv", "/oem/grubenv", "set", "next_entry=recovery"),
        ("shutdown", "-r", "+1"),
    ]


def test_a_host_that_was_installed_otherwise_only_gets_a_marker() -> None:
    plan = reset_plan({"elemental.cattle.io/os.unmanaged": "true"})
    assert ([file.path for file in plan.files], plan.instructions) == (["/var/lib/elemental/.unmanaged_reset"], ())
