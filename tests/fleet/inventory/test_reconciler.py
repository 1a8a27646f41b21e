"""Inventories on an API server: what each host is given, and what its status says."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from typing import Any

import pytest
from fleet.inventory.management import SPACE, Management, condition
from support.waiting import eventually

from slipway.api.cluster.infrastructure import names as infrastructure
from slipway.api.cluster.kinds import MACHINE_INVENTORY, ROLE, ROLE_BINDING, SECRET, SERVICE_ACCOUNT
from slipway.api.elemental import names, plan
from slipway.kube.aio import PatchType

# Of `{}`, by sha256sum.
EMPTY = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.asyncio
async def test_a_host_gets_a_plan_secret_and_an_account_for_it_alone(management: Management) -> None:
    await management.start()
    inventory = await management.inventory("m-1", tpmHash="a" * 64)
    binding = await management.when(ROLE_BINDING, "host-m-1", lambda found: True)
    secret, role = await management.secret("m-1"), await management.client.get(ROLE, "host-m-1", SPACE)
    assert (secret["type"], secret["metadata"]["labels"]) == ("elemental.cattle.io/plan", {"elemental.cattle.io/managed": "true"})
    assert {key: b64decode(value) for key, value in secret["data"].items()} == {"plan": b"{}"}
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("MachineInventory", inventory["metadata"]["uid"], True)
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["m-1"], "verbs": ["get", "list", "watch", "update"]}
    assert role["rules"] == [rule]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "host-m-1", "namespace": SPACE}]


@pytest.mark.asyncio
async def test_an_inventory_is_ready_once_its_agent_applied_the_empty_plan(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    waiting = await management.told("m-1", "Ready", "WaitingForPlan")
    assert waiting["status"] == "False"
    await management.apply("m-1")
    ready = await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
    assert ready["status"] == "True"
    status = (await management.client.get(MACHINE_INVENTORY, "m-1", SPACE))["status"]
    assert (status["plan"]["checksum"], status["plan"]["state"]) == (EMPTY, "Applied")
    assert (status["plan"]["secretRef"]["name"], status["plan"]["secretRef"]["namespace"]) == ("m-1", SPACE)


@pytest.mark.asyncio
async def test_what_it_wrote_itself_is_no_reason_to_look_at_an_inventory_again(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.apply("m-1")
    await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
    before = await _looks(management)
    facts = {"bootId": "1", "clean": True, "observedAt": "2026-05-01T00:00:00Z", "freeBytes": {"/": 1}, "image": {}, "plan": ""}
    await management.report("m-1", slipway_host_facts=json.dumps(facts).encode())
    await management.when(MACHINE_INVENTORY, "m-1", lambda found: found["status"].get("hostFacts"))
    assert await _looks(management) == before + 1


async def _looks(management: Management) -> float:
    """How many there were, once there are no more: an inventory is looked at once in a tenth of a second here, at most."""
    labels, before = {"controller": "machineinventory", "result": "success"}, -1.0
    while (now := management.metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels) or 0.0) != before:
        before = now
        await asyncio.sleep(0.5)
    return now


@pytest.mark.asyncio
async def test_an_outcome_of_an_earlier_plan_says_nothing_of_the_one_that_is_there(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.apply("m-1")
    await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
    # The applied-checksum of `{}` stays: Elemental's operator would go on to say Applied.
    await management.report("m-1", plan=b'{"instructions":[]}')
    found = await management.when(
        MACHINE_INVENTORY, "m-1", lambda found: found["status"]["plan"]["checksum"] == plan.checksum(b'{"instructions":[]}')
    )
    assert "state" not in found["status"]["plan"]
    assert condition(found, "Ready")["reason"] == "WaitingForPlan"


@pytest.mark.asyncio
async def test_a_plan_that_failed_is_told_with_what_the_host_printed(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.secret("m-1")
    raw = b'{"instructions":[{"name":"upgrade-system"}]}'
    output = plan.pack_output({"upgrade-system": b"exit 18: the registry\ndoes not answer"})
    await management.report(
        "m-1", plan=raw, failed_checksum=plan.checksum(raw).encode(), failure_count=b"3", max_failures=b"3", failed_output=output
    )
    failed = await management.told("m-1", "Ready", "PlanFailure")
    assert "failed 3 times: upgrade-system: exit 18: the registry does not answer" in failed["message"]
    found = await management.client.get(MACHINE_INVENTORY, "m-1", SPACE)
    assert (found["status"]["plan"]["state"], found["status"]["plan"]["failures"]) == ("Failed", 3)


@pytest.mark.asyncio
async def test_the_facts_that_a_host_reports_are_in_its_status(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.secret("m-1")
    facts = {
        "registry": {"address": "registry.lab:5000", "reachable": True},
        "freeBytes": {"/": 5000000000},
        "bootId": "b-1",
        "clean": True,
    }
    await management.report("m-1", slipway_host_facts=json.dumps(facts).encode())
    found = await management.when(MACHINE_INVENTORY, "m-1", lambda found: found.get("status", {}).get("hostFacts"))
    assert found["status"]["hostFacts"] == facts


@pytest.mark.asyncio
async def test_facts_that_are_garbage_are_passed_over(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.secret("m-1")
    await management.report("m-1", slipway_host_facts=b'{"freeBytes": "plenty"')
    await management.apply("m-1")
    await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
    assert "hostFacts" not in (await management.client.get(MACHINE_INVENTORY, "m-1", SPACE))["status"]


@pytest.mark.asyncio
async def test_a_host_with_the_name_of_somebodys_secret_gets_no_right_to_it(management: Management) -> None:
    await management.start()
    await management.client.create(SECRET, {"metadata": {"name": "c1-ca", "namespace": SPACE}, "data": {"tls.key": "c2VjcmV0"}})
    await management.inventory("c1-ca", tpmHash="a" * 64)
    told = await management.told("c1-ca", "Ready", "PlanCreationFailure")
    assert f"the Secret {SPACE}/c1-ca was not made for the MachineInventory c1-ca" in told["message"]
    assert await management.client.find(ROLE, "host-c1-ca", SPACE) is None
    assert (await management.client.get(SECRET, "c1-ca", SPACE))["data"] == {"tls.key": "c2VjcmV0"}


@pytest.mark.asyncio
async def test_a_role_that_somebody_widened_is_narrowed_again(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    role = await management.when(ROLE, "host-m-1", lambda found: True)
    wide = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}]
    await management.client.patch(ROLE, "host-m-1", SPACE, {"rules": wide}, type=PatchType.MERGE)
    await management.when(ROLE, "host-m-1", lambda found: found["rules"] == role["rules"])


@pytest.mark.asyncio
async def test_an_account_that_was_deleted_comes_back(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    first = await management.when(SERVICE_ACCOUNT, "host-m-1", lambda found: True)
    await management.client.delete(SERVICE_ACCOUNT, "host-m-1", SPACE)
    await management.when(SERVICE_ACCOUNT, "host-m-1", lambda found: found["metadata"]["uid"] != first["metadata"]["uid"])


@pytest.mark.asyncio
async def test_data_volumes_are_refused_with_a_sentence(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64, storage={"volumes": [{"name": "etcd"}]})
    told = await management.told("m-1", "Ready", "StorageUnsupported")
    assert told["message"].endswith("Remove spec.storage")
    assert await management.client.find(SECRET, "m-1", SPACE) is None


@pytest.mark.asyncio
async def test_two_inventories_of_one_identity_are_told_apart_by_age(management: Management) -> None:
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.inventory("m-2", tpmHash="a" * 64)
    await management.start()
    told = await management.told("m-2", "Ready", "DuplicateIdentity")
    assert f"{SPACE}/m-1 registered with the same identity before" in told["message"]
    await management.told("m-1", "Ready", "WaitingForPlan")
    await management.client.delete(MACHINE_INVENTORY, "m-1", SPACE)
    await management.told("m-2", "Ready", "WaitingForPlan")


@pytest.mark.asyncio
async def test_a_host_that_a_machine_has_is_adopted(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.told("m-1", "AdoptionReady", "NotAdopted")
    await _annotate(management, "m-1", {infrastructure.OWNER_BAREMETAL_MACHINE_ANNOTATION: "cp-1"})
    assert "cp-1" in (await management.told("m-1", "AdoptionReady", "SuccessfullyAdopted"))["message"]


@pytest.mark.asyncio
async def test_with_its_inventory_everything_of_a_host_goes(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.told("m-1", "Ready", "WaitingForPlan")
    await management.client.delete(MACHINE_INVENTORY, "m-1", SPACE)
    for kind, name in (
        (MACHINE_INVENTORY, "m-1"),
        (SECRET, "m-1"),
        (SERVICE_ACCOUNT, "host-m-1"),
        (ROLE, "host-m-1"),
        (ROLE_BINDING, "host-m-1"),
    ):
        await _gone(management, kind, name)


@pytest.mark.asyncio
async def test_a_resettable_host_is_reset_before_its_inventory_goes(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await _annotate(management, "m-1", {names.RESETTABLE_ANNOTATION: "true"})
    await management.apply("m-1")
    await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
    await management.client.delete(MACHINE_INVENTORY, "m-1", SPACE)
    told = await management.told("m-1", "Ready", "Resetting")
    assert "set the annotation elemental.cattle.io/resettable to false" in told["message"]
    secret = await management.secret("m-1")
    assert secret["metadata"]["annotations"]["elemental.cattle.io/plan.type"] == "reset"
    wanted = plan.decode(b64decode(secret["data"]["plan"]))
    assert [each.name for each in wanted.instructions] == ["boot-recovery", "reboot"]
    assert secret["data"]["applied-checksum"] == ""
    await management.apply("m-1")
    await _gone(management, MACHINE_INVENTORY, "m-1")


@pytest.mark.asyncio
async def test_a_resettable_inventory_whose_secret_is_somebodys_goes(management: Management) -> None:
    """As its condition advises: the host was never given a Secret by which it could be reset."""
    await management.start()
    await management.client.create(SECRET, {"metadata": {"name": "c1-ca", "namespace": SPACE}, "data": {"tls.key": "c2VjcmV0"}})
    await management.inventory("c1-ca", tpmHash="a" * 64)
    await _annotate(management, "c1-ca", {names.RESETTABLE_ANNOTATION: "true"})
    await management.told("c1-ca", "Ready", "PlanCreationFailure")
    await management.client.delete(MACHINE_INVENTORY, "c1-ca", SPACE)
    await _gone(management, MACHINE_INVENTORY, "c1-ca")
    assert (await management.client.get(SECRET, "c1-ca", SPACE))["data"] == {"tls.key": "c2VjcmV0"}


@pytest.mark.asyncio
async def test_a_plan_in_flight_is_not_replaced_by_the_reset(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.secret("m-1")
    await _annotate(management, "m-1", {names.RESETTABLE_ANNOTATION: "true"})
    raw = b'{"instructions":[{"name":"x"}]}'
    await management.report("m-1", plan=raw, plan_state=b"in-progress")
    await management.client.delete(MACHINE_INVENTORY, "m-1", SPACE)
    told = await management.told("m-1", "Ready", "Resetting")
    assert "Waiting for the empty plan to end" in told["message"]
    assert (await management.secret("m-1"))["data"]["plan"] == b64encode(raw).decode()
    await _annotate(management, "m-1", {names.RESETTABLE_ANNOTATION: "false"})
    await _gone(management, MACHINE_INVENTORY, "m-1")


@pytest.mark.asyncio
async def test_the_inventory_of_a_host_in_use_goes_when_the_machine_has_given_it_back(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    used: dict[str, str | None] = {"baremetal.alauda.io/owner-baremetalmachine": "cp-1", names.RESETTABLE_ANNOTATION: "true"}
    await _annotate(management, "m-1", used)
    await management.apply("m-1")
    await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
    await management.client.delete(MACHINE_INVENTORY, "m-1", SPACE)
    told = await management.told("m-1", "Ready", "InUse")
    assert "in use by the BaremetalMachine cp-1: delete its Machine" in told["message"]
    assert (await management.secret("m-1"))["metadata"]["annotations"]["elemental.cattle.io/plan.type"] == "empty"
    await _annotate(management, "m-1", {"baremetal.alauda.io/owner-baremetalmachine": None})
    await management.told("m-1", "Ready", "Resetting")


@pytest.mark.asyncio
async def test_an_inventory_that_was_moved_to_another_management_cluster_leaves_its_host_alone(management: Management) -> None:
    await management.start()
    await management.inventory("m-1", tpmHash="a" * 64)
    await management.apply("m-1")
    await management.told("m-1", "Ready", "PlanSuccessfullyApplied")
    await _annotate(management, "m-1", {"clusterctl.cluster.x-k8s.io/delete-for-move": "", names.RESETTABLE_ANNOTATION: "true"})
    await management.client.delete(MACHINE_INVENTORY, "m-1", SPACE)
    await _gone(management, MACHINE_INVENTORY, "m-1")


async def _annotate(management: Management, name: str, annotations: dict[str, str | None]) -> None:
    await management.client.patch(MACHINE_INVENTORY, name, SPACE, {"metadata": {"annotations": annotations}}, type=PatchType.MERGE)


async def _gone(management: Management, kind: Any, name: str) -> None:
    async def gone() -> bool:
        return await management.client.find(kind, name, SPACE) is None

    await eventually(gone, f"the {kind.kind} {name} is gone")
