"""How long hosts take, by what they took: the host itself first, then the others, and what nobody measured is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE, MACHINE_INVENTORY, NODE
from slipway.api.elemental.cycles import CYCLES_ANNOTATION, Cycle, written
from slipway.simulation.rehearsal import measured
from slipway.simulation.rehearsal.measured import Took
from slipway.simulation.rehearsal.original import Original

Manifest = dict[str, Any]
BEGAN = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def inventory(name: str, *lives: Cycle) -> Manifest:
    return {"metadata": {"name": name, "annotations": {CYCLES_ANNOTATION: written(lives)} if lives else {}}}


def life(image: float, boot: float) -> Cycle:
    return Cycle(machine="m", claimed=at(0), applied=at(image), running=at(image + boot))


def original(*inventories: Manifest, **others: Any) -> Original:
    machines = others.get("machines", ())
    return Original(
        cluster={"metadata": {"name": "prod", "namespace": "default"}},
        objects={MACHINE_INVENTORY: inventories, MACHINE: machines, BAREMETAL_MACHINE: others.get("baremetal_machines", ())},
        catalog={},
        catalog_place="default/catalog",
        workload=others.get("workload"),
    )


def test_a_host_takes_the_median_of_what_it_took() -> None:
    found = measured.durations(original(inventory("a", life(10, 100), life(20, 900), life(30, 200))))
    assert (found["a"].image, found["a"].boot) == (Took(20, "this host"), Took(200, "this host"))


def test_a_host_without_a_past_takes_what_the_others_took() -> None:
    found = measured.durations(original(inventory("a", life(10, 100)), inventory("b")))
    assert found["b"].boot == Took(100, "other hosts")


def test_without_a_record_the_times_of_its_machine_and_node_count() -> None:
    machine = {"metadata": {"name": "m"}, "status": {"nodeRef": {"name": "n"}}}
    owner = [{"kind": "Machine", "name": "m"}]
    baremetal = {
        "metadata": {"name": "b", "creationTimestamp": "2026-01-02T03:00:00Z", "ownerReferences": owner},
        "status": {"machineInventoryRef": {"name": "a"}, "planAppliedTime": "2026-01-02T03:02:00Z"},
    }
    node = {"metadata": {"name": "n", "creationTimestamp": "2026-01-02T03:09:00Z"}}
    found = measured.durations(original(inventory("a"), machines=[machine], baremetal_machines=[baremetal], workload={NODE: [node]}))
    assert (found["a"].image, found["a"].boot) == (Took(120, "this host"), Took(420, "this host"))


def test_what_nobody_measured_is_assumed_and_told_with_the_hosts() -> None:
    found = measured.durations(original(inventory("a", life(10, 100)), inventory("b")))
    assert found["a"].drain == Took(measured.DEFAULTS["drain"], "unknown")
    assert measured.unknown(found) == {"drain": ["a", "b"], "clean": ["a", "b"]}


def test_a_life_in_which_somebody_was_looking_for_a_fault_does_not_count() -> None:
    found = measured.durations(original(inventory("a", life(10, 7 * 3600))))
    assert found["a"].boot.source == "unknown"
