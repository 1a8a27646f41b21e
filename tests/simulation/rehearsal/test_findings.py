"""What a rehearsal finds, and how much each finding weighs."""

from __future__ import annotations

from typing import Any

import pytest
from simulation.rehearsal.recorded import SECOND, load

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, CLUSTER, CONFIG_MAP, KUBEADM_CONTROL_PLANE, MACHINE, Kind
from slipway.simulation.rehearsal import findings
from slipway.simulation.rehearsal.original import LISTED, Original, belonging

Manifest = dict[str, Any]


def saying(type_: str, reason: str, message: str = "", *, status: str = "False", **spec: Any) -> Manifest:
    told = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-02T03:04:05Z"}
    return {"metadata": {"name": "m", "namespace": "s"}, "spec": spec, "status": {"conditions": [told], "nodeRef": {"name": "n"}}}


@pytest.mark.parametrize(
    ("condition", "reason", "message", "kind"),
    [
        ("ImageResolved", "ImageCatalogMiss", 'the ConfigMap has no key "v1.35.4"', findings.CATALOG_MISS),
        ("InventoryAllocated", "PoolExhausted", "no host is free", findings.POOL_TOO_SMALL),
        ("PlanApplied", "PlanFailed", "upgrade-system: ERRO cannot create a snapshot: no space left on device", findings.NO_SPACE),
        ("PlanApplied", "PlanFailed", "upgrade-system: the disk is gone", findings.CONDITION),
    ],
)
def test_what_a_machine_says_that_does_not_go_on_stops_the_upgrade(condition: str, reason: str, message: str, kind: str) -> None:
    (found,) = findings.stuck([(BAREMETAL_MACHINE, saying(condition, reason, message))], 10.0)
    assert (found.kind, found.weight, found.object) == (kind, "stops", "BaremetalMachine m")
    assert message in found.message
    assert found.to_do


def test_what_lasts_is_told_and_not_what_waits_for_it() -> None:
    objects: list[tuple[Kind, Manifest]] = [
        (MACHINE, saying("NodeHealthy", "NodeDoesNotExist", "waiting")),
        (BAREMETAL_MACHINE, saying("ImageResolved", "ImageCatalogMiss", "no key")),
    ]
    assert [each.kind for each in findings.stuck(objects, 10.0)] == [findings.CATALOG_MISS]


def test_where_no_condition_says_why_that_is_told() -> None:
    (found,) = findings.stuck([(KUBEADM_CONTROL_PLANE, {"metadata": {"name": "p", "namespace": "s"}})], 60.0)
    assert (found.kind, found.weight) == (findings.STALLED, "stops")


def budget(name: str, allowed: int, **labels: str) -> Manifest:
    status = {"disruptionsAllowed": allowed, "desiredHealthy": 2, "currentHealthy": 2}
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"selector": {"matchLabels": labels}}, "status": status}


def pod(name: str, node: str, **labels: str) -> Manifest:
    return {"metadata": {"name": name, "namespace": "shop", "labels": labels}, "spec": {"nodeName": node}}


def test_a_budget_blocks_that_allows_nothing_and_has_a_pod_on_the_node() -> None:
    pods = [pod("web-1", "n", app="web"), pod("web-2", "other", app="web"), pod("db-1", "n", app="db")]
    budgets = [budget("web", 0, app="web"), budget("db", 1, app="db"), budget("mail", 0, app="mail")]
    assert [(each["metadata"]["name"], held) for each, held in findings.blocking(pods, budgets, "n")] == [("web", ["web-1"])]


def test_a_drain_that_is_held_up_for_ever_stops_the_upgrade_and_one_that_is_forced_is_a_warning() -> None:
    waiting = "Drain not completed yet:\n* Pod shop/web-1: cannot evict pod as it would violate the pod's disruption budget. The disruption"
    machine = saying("Deleting", "DrainingNode", waiting, status="True")
    assert findings.is_held(machine)
    for_ever = findings.held_up(budget("web", 0, app="web"), ["web-1"], machine, "host-1")
    assert (for_ever.weight, for_ever.object) == ("stops", "PodDisruptionBudget shop/web")
    assert "host-1" in for_ever.message
    assert "web-1" in for_ever.message
    machine["spec"]["deletion"] = {"nodeDrainTimeoutSeconds": 300}
    forced = findings.held_up(budget("web", 0, app="web"), ["web-1"], machine, "host-1")
    assert forced.weight == "warning"
    assert "300 s" in forced.message


def recorded() -> Original:
    loaded = load()
    listed = {kind: loaded.management.get(kind.plural, []) for kind in LISTED}
    (cluster,) = loaded.management[CLUSTER.plural]
    return Original(
        cluster=cluster,
        objects=belonging(cluster, listed),
        catalog=loaded.management[CONFIG_MAP.plural][0]["data"],
        catalog_place="cpaas-system/elemental-image-catalog",
    )


def test_what_a_simulation_cannot_try_is_said_of_every_upgrade() -> None:
    told = findings.beforehand(recorded(), [SECOND], {})
    assert any(each.weight == "unknown" and each.message.startswith("taken for granted: that the images are in the") for each in told)


def test_a_prerequisite_without_which_an_upgrade_would_not_begin_says_so() -> None:
    original = recorded()
    del original.cluster["metadata"]["annotations"]["cpaas.io/registry-address"]
    told = [each for each in findings.beforehand(original, [SECOND], {}) if each.kind == findings.PREREQUISITE]
    (unknown,) = [each for each in told if "the registry of hosts is known" in each.message]
    assert unknown.weight == "holds"
    assert "fleet upgrade does not begin before" in unknown.to_do
