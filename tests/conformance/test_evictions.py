"""Evictions of Pods, and the budgets that they ask."""

from __future__ import annotations

from typing import Any

from conformance.api import Api

REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def pod(api: Api, namespace: str, name: str, *, runs: bool = True) -> str:
    """The path of a Pod of the app ``name``, which no node has."""
    # Where no controller manager runs, nobody else makes the account that every Pod needs.
    api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]}
    api.post(path, {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}).ok()
    if runs:
        ready = {"type": "Ready", "status": "True"}
        api.patch(f"{path}/{name}/status", {"status": {"phase": "Running", "conditions": [ready]}}).ok()
    return f"{path}/{name}"


def budget(api: Api, namespace: str, name: str, app: str) -> None:
    """One that allows nothing: a Pod is wanted, and there is one."""
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    made = api.post(path, {"metadata": {"name": name}, "spec": spec}).ok()
    status: dict[str, Any] = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    status["observedGeneration"] = made["metadata"]["generation"]
    api.patch(f"{path}/{name}/status", {"status": status}).ok()


def eviction(name: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


def test_an_eviction_that_a_budget_does_not_allow(api: Api, namespace: str, unique: str) -> None:
    path = pod(api, namespace, unique)
    budget(api, namespace, unique, unique)
    answer = api.post(f"{path}/eviction", eviction(unique))
    assert answer.summary == (429, "TooManyRequests", REFUSED)
    message = f"The disruption budget {unique} needs 1 healthy pods and has 1 currently"
    assert answer.body["details"]["causes"] == [{"reason": "DisruptionBudget", "message": message}]
    assert api.get(path).code == 200


def test_a_pod_that_does_not_run_goes_whatever_its_budget_says(api: Api, namespace: str, unique: str) -> None:
    path = pod(api, namespace, unique, runs=False)
    budget(api, namespace, unique, unique)
    answer = api.post(f"{path}/eviction", eviction(unique))
    assert (answer.code, answer.body["status"]) == (201, "Success")
    assert api.get(path).code == 404


def test_a_pod_that_has_several_budgets_is_not_evicted(api: Api, namespace: str, unique: str) -> None:
    path = pod(api, namespace, unique)
    for name in (f"{unique}-a", f"{unique}-b"):
        budget(api, namespace, name, unique)
    answer = api.post(f"{path}/eviction", eviction(unique))
    message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert answer.summary == (500, "", message)
    assert api.get(path).code == 200


def test_the_name_of_an_eviction_is_that_of_its_pod(api: Api, namespace: str, unique: str) -> None:
    path = pod(api, namespace, unique)
    assert api.post(f"{path}/eviction", eviction("other")).summary == (
        400,
        "BadRequest",
        "name in URL does not match name in Eviction object",
    )
