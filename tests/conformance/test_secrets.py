"""Secrets, ConfigMaps, Leases, Events and Nodes: what the server does to these kinds alone."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conformance.api import Api, without

Manifest = dict[str, Any]


def secret(name: str, **fields: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **fields}


def secrets(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/secrets" + (f"/{name}" if name else "")


def test_text_becomes_data(api: Api, namespace: str, unique: str) -> None:
    body = api.post(secrets(namespace), secret(unique, data={"a": "YQ==", "b": "Yg=="}, stringData={"b": "text"})).ok()
    assert without(body) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": unique, "namespace": namespace},
        "data": {"a": "YQ==", "b": base64.b64encode(b"text").decode()},
        "type": "Opaque",
    }
    body = api.patch(secrets(namespace, unique), {"stringData": {"c": "more"}}).ok()
    assert body["data"]["c"] == base64.b64encode(b"more").decode()


def test_the_type_of_a_secret_stays(api: Api, namespace: str, unique: str) -> None:
    api.post(secrets(namespace), secret(unique, type="cluster.x-k8s.io/secret")).ok()
    answer = api.patch(secrets(namespace, unique), {"type": "Opaque"})
    assert answer.summary == (
        422,
        "Invalid",
        f'Secret "{unique}" is invalid: type: Invalid value: "Opaque": field is immutable',
    )


def test_an_immutable_secret_stays_as_it_is(api: Api, namespace: str, unique: str) -> None:
    api.post(secrets(namespace), secret(unique, data={"a": "YQ=="}, immutable=True)).ok()
    answer = api.patch(secrets(namespace, unique), {"data": {"a": "Yg=="}})
    assert answer.summary == (
        422,
        "Invalid",
        f'Secret "{unique}" is invalid: data: Forbidden: field is immutable when `immutable` is set',
    )
    answer = api.patch(secrets(namespace, unique), {"immutable": False})
    assert answer.code == 422
    api.patch(secrets(namespace, unique), {"metadata": {"labels": {"a": "b"}}}).ok()


def test_data_must_be_base64_and_keys_have_a_form(api: Api, namespace: str, unique: str) -> None:
    answer = api.post(secrets(namespace), secret(unique, data={"a": "not base64!"}))
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    answer = api.post(secrets(namespace), secret(unique, data={"no/slash": "YQ=="}))
    assert answer.code == 422
    assert answer.body["message"].startswith(
        f'Secret "{unique}" is invalid: data[no/slash]: Invalid value: "no/slash": a valid config key must'
    )


def test_certificates_need_both_halves(api: Api, namespace: str, unique: str) -> None:
    answer = api.post(secrets(namespace), secret(unique, type="kubernetes.io/tls", data={"tls.crt": ""}))
    assert answer.summary == (422, "Invalid", f'Secret "{unique}" is invalid: data[tls.key]: Required value')


def leases(namespace: str, name: str = "") -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases" + (f"/{name}" if name else "")


def lease(name: str, holder: str, **metadata: Any) -> Manifest:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000000Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, **metadata}, "spec": spec}


def test_of_many_who_want_a_lease_one_gets_it(api: Api, namespace: str, unique: str) -> None:
    made = api.post(leases(namespace), lease(unique, "first")).ok()

    def take(number: int) -> int:
        return Api(api.connection).put(leases(namespace, unique), {**made, "spec": {**made["spec"], "holderIdentity": f"c{number}"}}).code

    with ThreadPoolExecutor(8) as pool:
        codes = sorted(pool.map(take, range(8)))
    assert codes == [200, *([409] * 7)]
    assert api.get(leases(namespace, unique)).ok()["spec"]["holderIdentity"].startswith("c")


def test_of_many_who_create_a_lease_one_does(api: Api, namespace: str, unique: str) -> None:
    def make(number: int) -> int:
        return Api(api.connection).post(leases(namespace), lease(unique, f"c{number}")).code

    with ThreadPoolExecutor(8) as pool:
        codes = sorted(pool.map(make, range(8)))
    assert codes == [201, *([409] * 7)]


def test_a_lease_is_checked(api: Api, namespace: str, unique: str) -> None:
    wrong = lease(unique, "me")
    wrong["spec"]["leaseDurationSeconds"] = 0
    answer = api.post(leases(namespace), wrong)
    assert answer.summary == (
        422,
        "Invalid",
        f'Lease.coordination.k8s.io "{unique}" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
    )


def test_an_event_is_one_object_in_two_groups(api: Api, namespace: str, unique: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": unique},
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": namespace},
        "type": "Normal",
        "reason": "Tested",
        "message": "said",
    }
    made = api.post(f"/api/v1/namespaces/{namespace}/events", body).ok()
    assert made["firstTimestamp"] is None
    assert (made["source"], made["eventTime"], made["reportingComponent"]) == ({}, None, "")
    other = api.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/{unique}").ok()
    assert (other["note"], other["regarding"]["name"], other["apiVersion"]) == ("said", "x", "events.k8s.io/v1")


def test_events_are_selected_by_what_they_are_about(api: Api, namespace: str, unique: str) -> None:
    for number in range(2):
        about = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"{unique}-{number}", "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{unique}-{number}"}, "involvedObject": about, "reason": "R"}
        api.post(f"/api/v1/namespaces/{namespace}/events", body).ok()
    found = api.get(f"/api/v1/namespaces/{namespace}/events", fieldSelector=f"involvedObject.name={unique}-1").ok()["items"]
    assert [item["metadata"]["name"] for item in found] == [f"{unique}-1"]


def test_a_new_event_needs_its_facts(api: Api, namespace: str, unique: str) -> None:
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": unique},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "Test",
        "reason": "R",
        "type": "Normal",
        "regarding": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": namespace},
        "note": "said",
    }
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    assert api.post(path, body).code == 201
    core = api.get(f"/api/v1/namespaces/{namespace}/events/{unique}").ok()
    assert (core["message"], core["reportingComponent"], core["involvedObject"]["name"]) == ("said", "example.com/c", "x")


def test_a_node_keeps_spec_and_status_apart(api: Api, unique: str) -> None:
    path = f"/api/v1/nodes/{unique}"
    taint = {"key": "example.com/t", "effect": "NoSchedule"}
    made = api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": unique}, "spec": {"taints": [taint]}}).ok()
    try:
        assert taint in made["spec"]["taints"]
        condition = {"type": "Ready", "status": "True", "reason": "R", "message": ""}
        body = api.patch(f"{path}/status", {"status": {"conditions": [condition]}}, "application/strategic-merge-patch+json").ok()
        assert body["status"]["conditions"][0]["status"] == "True"
        assert api.patch(path, {"spec": {"unschedulable": True}}).ok()["spec"]["unschedulable"] is True
    finally:
        api.delete(path).ok()


def test_service_accounts_get_tokens_that_open_the_door(api: Api, namespace: str, unique: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.post(path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": unique}}).ok()
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = api.post(f"{path}/{unique}/token", request)
    assert answer.code == 201
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = (
        api.as_token(answer.body["status"]["token"])
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        .ok()["status"]["userInfo"]
    )
    assert user["username"] == f"system:serviceaccount:{namespace}:{unique}"
    assert {"system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"} <= set(user["groups"])
