"""Watch events of objects as events of a timeline."""

from __future__ import annotations

from typing import Any

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY
from slipway.demo import events
from slipway.demo.events import changes
from slipway.fleet.overview import stages

Manifest = dict[str, Any]


def inventory(state: str = "", plan: Manifest | None = None) -> Manifest:
    annotations = {"baremetal.alauda.io/allocation-state": state, "baremetal.alauda.io/pool": "pool"} if state else {}
    interface = {"name": "eth0", "addresses": ["10.0.0.7/24"]}
    return {
        "metadata": {"name": "host-1", "annotations": annotations},
        "spec": {"observedNetwork": {"interfaces": [interface]}},
        "status": {"plan": plan or {}},
    }


def machine(phase: str, *conditions: Manifest) -> Manifest:
    return {
        "metadata": {"name": "bmm", "ownerReferences": [{"kind": "Machine", "name": "m"}]},
        "status": {"phase": phase, "machineInventoryRef": {"name": "host-1"}, "image": "r/os:1", "conditions": list(conditions)},
    }


def told(kind: Any, before: Manifest | None, after: Manifest | None) -> list[tuple[str, str, str]]:
    return [(each.event, each.host, each.stage or each.text) for each in changes(kind, before, after, lambda name: f"v of {name}")]


def test_a_host_that_appears_has_registered() -> None:
    assert told(MACHINE_INVENTORY, None, inventory()) == [("host", "host-1", "registered")]


def test_a_host_that_is_available_is_free() -> None:
    assert told(MACHINE_INVENTORY, inventory(), inventory("Available")) == [("host", "host-1", "free")]
    assert told(MACHINE_INVENTORY, inventory("Available"), inventory("Available")) == []


def test_a_plan_is_told_with_its_state_and_an_empty_one_is_not() -> None:
    plan = {"type": "reprovision", "state": "Applied"}
    assert told(MACHINE_INVENTORY, inventory(), inventory(plan=plan)) == [("plan", "host-1", "reprovision: Applied")]
    assert told(MACHINE_INVENTORY, inventory(), inventory(plan={"type": "empty", "state": "Applied"})) == []


def test_the_phases_of_a_machine_are_stages_of_its_host() -> None:
    applied = {"type": "PlanApplied", "status": "True", "reason": "PlanApplied"}
    life = [
        (machine("Allocated"), stages.ALLOCATED),
        (machine("Reprovisioning"), stages.REPROVISIONING),
        (machine("Reprovisioning", applied), stages.BOOTING),
        (machine("Running", applied), stages.MEMBER),
        (machine("Preparing"), stages.CLEANING),
        (machine("Failed"), stages.FAILED),
    ]
    before: Manifest | None = None
    for after, stage in life:
        found = changes(BAREMETAL_MACHINE, before, after, lambda name: f"v of {name}")
        assert [(each.host, each.stage, each.version) for each in found] == [("host-1", stage, "v of m")]
        before = after


def test_a_machine_without_a_host_is_no_stage() -> None:
    waiting = machine("Pending")
    del waiting["status"]["machineInventoryRef"]
    assert told(BAREMETAL_MACHINE, None, waiting) == []


def test_a_condition_that_is_not_well_is_told_once_with_what_to_do() -> None:
    miss = {"type": "ImageResolved", "status": "False", "reason": "ImageCatalogMiss", "message": "no key"}
    (found,) = changes(BAREMETAL_MACHINE, machine("Pending"), machine("Pending", miss), str)
    assert (found.event, found.reason, found.text, found.lasting) == (events.CONDITION, "ImageCatalogMiss", "no key", True)
    assert found.to_do == "Add the version to the ConfigMap elemental-image-catalog."
    assert changes(BAREMETAL_MACHINE, machine("Pending", miss), machine("Pending", miss), str) == []


def test_what_is_on_its_way_is_not_lasting() -> None:
    waiting = {"type": "BootstrapReady", "status": "False", "reason": "BootstrapWaiting", "message": "x"}
    (found,) = changes(BAREMETAL_MACHINE, None, machine("Pending", waiting), str)
    assert not found.lasting


def test_a_machine_is_made_deleted_and_gone() -> None:
    made: Manifest = {"metadata": {"name": "m"}, "spec": {"version": "v1.35.4"}}
    going: Manifest = {"metadata": {"name": "m", "deletionTimestamp": "now"}, "spec": {"version": "v1.35.4"}}
    lives = [(None, made), (made, going), (going, None), (None, None)]
    found = [[each.text for each in changes(MACHINE, before, after, str)] for before, after in lives]
    assert found == [["is made, for Kubernetes v1.35.4"], ["is deleted"], ["is gone"], []]
