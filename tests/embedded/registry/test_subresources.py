"""Sub-resources that are not the object: scale, eviction within budgets, and the binding of Pods."""

from __future__ import annotations

from typing import Any

import pytest
from embedded.wire import Wire

pytestmark = pytest.mark.asyncio

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
Manifest = dict[str, Any]


async def pod(asker: Wire, name: str = "p", **spec: Any) -> Manifest:
    containers = [{"name": "c", "image": "i"}]
    return await asker.make(PODS, {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": {"containers": containers, **spec}})


async def runs(asker: Wire, name: str = "p", *, ready: bool = True) -> None:
    """What a kubelet says of a Pod."""
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    await asker.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [condition]}})


async def budget(asker: Wire, allowed: int, name: str = "b", *, policy: str = "", **status: Any) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}, **({"unhealthyPodEvictionPolicy": policy} if policy else {})}
    await asker.make(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    observed = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1}
    await asker.patch(f"{BUDGETS}/{name}/status", {"status": {**observed, **status}})


async def evict(asker: Wire, name: str = "p") -> tuple[int, Manifest]:
    return await asker.ask("POST", f"{PODS}/{name}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})


async def test_an_eviction_deletes_the_pod(asker: Wire) -> None:
    await pod(asker)
    assert (await evict(asker))[0] == 201
    assert await asker.get(f"{PODS}/p") is None


async def test_an_eviction_that_a_budget_forbids_is_to_be_tried_again(asker: Wire) -> None:
    await pod(asker)
    await runs(asker)
    await budget(asker, 0)
    code, document = await evict(asker)
    assert (code, document["reason"]) == (429, "TooManyRequests")
    assert document["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert document["details"]["causes"][0]["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert await asker.get(f"{PODS}/p") is not None


async def test_an_eviction_uses_up_what_a_budget_allows(asker: Wire) -> None:
    for name in ("p", "q"):
        await pod(asker, name)
        await runs(asker, name)
    await budget(asker, 1)
    assert [(await evict(asker, name))[0] for name in ("p", "q")] == [201, 429]


async def test_a_pod_that_does_not_run_is_evicted_whatever_a_budget_says(asker: Wire) -> None:
    await pod(asker)
    await budget(asker, 0)
    assert (await evict(asker))[0] == 201


@pytest.mark.parametrize(
    ("policy", "status", "code"),
    [
        pytest.param("", {}, 201, id="the others are healthy"),
        pytest.param("", {"currentHealthy": 0}, 429, id="the others are not"),
        pytest.param("AlwaysAllow", {"currentHealthy": 0}, 201, id="it may always go"),
    ],
)
async def test_a_pod_that_is_not_ready_goes_as_its_budget_has_it(policy: str, status: Manifest, code: int, asker: Wire) -> None:
    await pod(asker)
    await runs(asker, ready=False)
    await budget(asker, 0, policy=policy, **status)
    assert (await evict(asker))[0] == code


async def test_a_budget_that_nobody_has_looked_at_is_to_be_waited_for(asker: Wire) -> None:
    await pod(asker)
    await runs(asker)
    await budget(asker, 1, observedGeneration=0)
    code, document = await evict(asker)
    assert (code, document["details"]["retryAfterSeconds"]) == (429, 10)
    assert document["details"]["causes"][0]["message"] == "The disruption budget b is still being processed by the server."


async def test_a_pod_with_several_budgets_is_not_evicted(asker: Wire) -> None:
    await pod(asker)
    await runs(asker)
    await budget(asker, 1, "b")
    await budget(asker, 1, "c")
    code, document = await evict(asker)
    assert (code, document["status"]) == (500, "Failure")
    assert await asker.get(f"{PODS}/p") is not None


async def test_an_eviction_of_another_name_is_refused(asker: Wire) -> None:
    await pod(asker)
    code, document = await asker.ask(
        "POST", f"{PODS}/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "q"}}
    )
    assert (code, document["message"]) == (400, "name in URL does not match name in Eviction object")


async def test_an_evicted_pod_says_so(asker: Wire) -> None:
    await pod(asker, nodeName="n")
    await evict(asker)
    found = await asker.get(f"{PODS}/p")
    assert found is not None
    assert [each["reason"] for each in found["status"]["conditions"] if each["type"] == "DisruptionTarget"] == ["EvictionByEvictionAPI"]


async def test_a_pod_on_a_node_is_given_time_to_end(asker: Wire) -> None:
    await pod(asker, nodeName="n")
    assert (await evict(asker))[0] == 201
    found = await asker.get(f"{PODS}/p")
    assert found is not None
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    await asker.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    assert await asker.get(f"{PODS}/p") is None


async def test_a_binding_gives_a_pod_its_node_once(asker: Wire) -> None:
    await pod(asker)
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    assert (await asker.ask("POST", f"{PODS}/p/binding", binding))[0] == 201
    found = await asker.get(f"{PODS}/p")
    assert found is not None
    assert found["spec"]["nodeName"] == "n"
    assert (await asker.ask("POST", f"{PODS}/p/binding", binding))[0] == 409


async def test_scaling_a_deployment_changes_its_generation(asker: Wire) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await asker.make(path, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
    scale = await asker.get(f"{path}/d/scale")
    assert scale is not None
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 0, "selector": "a=b"})
    code, scaled = await asker.ask("PUT", f"{path}/d/scale", {**scale, "spec": {"replicas": 3}})
    assert (code, scaled["spec"]["replicas"]) == (200, 3)
    found = await asker.get(f"{path}/d")
    assert found is not None
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (3, 2)
    code, document = await asker.ask("PUT", f"{path}/d/scale", {**scale, "spec": {"replicas": 4}})
    assert (code, document["reason"]) == (409, "Conflict")
