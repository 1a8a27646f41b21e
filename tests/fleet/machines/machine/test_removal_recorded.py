"""Whole passes of a deletion, on two API servers, come to what Cluster API's own pass comes to, for each recorded case."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from fleet.infrastructure import TEST_CONFIG, TEST_MACHINE
from fleet.machines.machine.machineworld import MachineWorld
from fleet.machines.machine.recorded import NOW, rows

from slipway.api.cluster.kinds import CLUSTER, MACHINE, NAMESPACE, NODE, POD, Kind
from slipway.fleet.machines.machine import deprecated
from slipway.kube.aio import PatchType
from slipway.kube.errors import AlreadyExistsError

pytestmark = [pytest.mark.asyncio, pytest.mark.recorded]

FINALIZER = "machine.cluster.x-k8s.io"


async def made(world: MachineWorld, kind: Kind, given: dict[str, Any] | None) -> None:
    """An object of a provider, deleted where it is so in the case."""
    if given is None:
        return
    await world.client.create(kind, {"metadata": {"name": "m", "namespace": world.namespace, "finalizers": ["x"]}})
    if given["metadata"].get("deletionTimestamp"):
        await world.client.delete(kind, "m", world.namespace)


async def arranged(world: MachineWorld, case: dict[str, Any]) -> None:
    await world.cluster()
    if case["cluster"]["metadata"].get("deletionTimestamp"):
        await world.patch(CLUSTER, "c", {"metadata": {"finalizers": ["x"]}})
        await world.client.delete(CLUSTER, "c", world.namespace)
    await world.machine("cp-0", control_plane=True)
    given = case["machine"]
    bootstrap = given["spec"]["bootstrap"]
    metadata = {"finalizers": [FINALIZER], "annotations": given["metadata"].get("annotations", {})}
    spec = {"deletion": given["spec"]["deletion"]} if "deletion" in given["spec"] else {}
    if "configRef" not in bootstrap:
        spec["bootstrap"] = bootstrap
    if "providerID" in given["spec"]:
        spec["providerID"] = given["spec"]["providerID"]
    await world.machine("m", metadata=metadata, spec=spec)
    await world.patch(MACHINE, "m", {"status": given["status"]}, subresource="status")
    await made(world, TEST_CONFIG, case.get("config"))
    await made(world, TEST_MACHINE, case.get("infra"))
    if "node" in case:
        node = {key: value for key, value in case["node"].items() if key != "status"}
        await world.remote.create(NODE, node)
        await world.remote.patch(NODE, "n", "", {"status": case["node"]["status"]}, type=PatchType.MERGE, subresource="status")
    for pod in case.get("pods", ()):
        with suppress(AlreadyExistsError):
            await world.remote.create(NAMESPACE, {"metadata": {"name": pod["metadata"]["namespace"]}})
        await world.remote.create(POD, pod)
    await world.client.delete(MACHINE, "m", world.namespace)


@pytest.mark.parametrize(("case", "answer"), rows("deletion"))
async def test_a_pass_comes_as_far_as_upstreams(case: dict[str, Any], answer: dict[str, Any], world: MachineWorld) -> None:
    world.now = NOW
    await arranged(world, case)
    result = await world.reconcile("m")
    node = await world.remote.find(NODE, "n")
    assert (node is not None) is answer["node"]
    assert bool(node and node["spec"].get("unschedulable")) is answer["cordoned"]
    machine = await world.client.find(MACHINE, "m", world.namespace)
    if answer["finalizers"] == 0:
        assert machine is None
        return
    assert machine is not None
    deleting = next(each for each in machine["status"]["conditions"] if each["type"] == "Deleting")
    assert (deleting["reason"], deleting["message"]) == (answer["reason"], answer["message"])
    assert sorted(machine["status"].get("deletion") or {}) == sorted(answer["started"])
    assert result.requeue_after >= answer["requeue"] if answer["requeue"] else True
    told = {
        each["type"]: [each.get(field, "") for field in ("type", "status", "reason", "severity", "message")]
        for each in deprecated.of(machine)
    }
    # Of the others, upstream's other phases tell, which are not part of the case.
    for wanted in answer["older"]:
        if wanted[0] != "Ready":
            assert told[wanted[0]] == wanted
