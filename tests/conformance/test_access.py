"""Who may do what: nobody without credentials, and everybody only what roles give."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.api import Api
from conformance.widgets import GROUP, Widgets

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Account:
    """A service account with rights of its own."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self.namespace, self.name = namespace, name
        self.user = f"system:serviceaccount:{namespace}:{name}"
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        api.post(path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}).ok()
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        self.api = api.as_token(api.post(f"{path}/{name}/token", request).ok()["status"]["token"])
        self._admin = api

    def allow(self, *rules: dict[str, Any]) -> None:
        """Give rights in the namespace."""
        version = "rbac.authorization.k8s.io/v1"
        role = {"apiVersion": version, "kind": "Role", "metadata": {"name": self.name}, "rules": list(rules)}
        self._admin.post(f"{RBAC}/namespaces/{self.namespace}/roles", role).ok()
        binding = {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": {"name": self.name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": self.name},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}],
        }
        self._admin.post(f"{RBAC}/namespaces/{self.namespace}/rolebindings", binding).ok()

    def may(self, verb: str, resource: str, **attributes: Any) -> bool:
        spec = {"resourceAttributes": {"namespace": self.namespace, "verb": verb, "resource": resource, **attributes}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
        allowed: bool = self.api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).ok()["status"]["allowed"]
        return allowed

    def await_right(self, verb: str, resource: str, **attributes: Any) -> None:
        """The real server learns of roles through a watch."""
        self._admin.eventually("/version", lambda answer: self.may(verb, resource, **attributes))


@pytest.fixture
def account(api: Api, namespace: str, unique: str) -> Account:
    return Account(api, namespace, unique)


def test_a_wrong_token_is_nobody(api: Api) -> None:
    answer = api.as_token("wrong").get("/api/v1/namespaces")
    assert answer.code == 401
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_nobody_may_not_read(api: Api) -> None:
    answer = api.as_token("").get("/api/v1/namespaces")
    assert answer.code == 403
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" '
        "at the cluster scope",
        "reason": "Forbidden",
        "details": {"kind": "namespaces"},
        "code": 403,
    }


def test_without_a_role_nothing_is_allowed(account: Account, widgets: Widgets) -> None:
    api, namespace, user = account.api, account.namespace, account.user
    path = f"/api/v1/namespaces/{namespace}/secrets"
    answer = api.get(f"{path}/x")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'secrets "x" is forbidden: User "{user}" cannot get resource "secrets" in API group "" in the namespace "{namespace}"',
        "reason": "Forbidden",
        "details": {"name": "x", "kind": "secrets"},
        "code": 403,
    }
    answer = api.post(path, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}})
    assert answer.body["message"] == (
        f'secrets is forbidden: User "{user}" cannot create resource "secrets" in API group "" in the namespace "{namespace}"'
    )
    answer = api.get(path, watch="true")
    assert answer.body["message"] == (
        f'secrets is forbidden: User "{user}" cannot watch resource "secrets" in API group "" in the namespace "{namespace}"'
    )
    answer = api.get("/api/v1/secrets")
    assert (
        answer.body["message"] == f'secrets is forbidden: User "{user}" cannot list resource "secrets" in API group "" at the cluster scope'
    )
    answer = api.patch(widgets.path(namespace, "x", "status"), {"status": {}})
    assert answer.body["message"] == (
        f'widgets.{GROUP} "x" is forbidden: User "{user}" cannot patch resource "widgets/status" in API group "{GROUP}" '
        f'in the namespace "{namespace}"'
    )
    assert answer.body["details"] == {"name": "x", "group": GROUP, "kind": "widgets"}


def test_a_path_that_is_no_resource(account: Account) -> None:
    answer = account.api.get("/metrics")
    assert (answer.code, answer.body["message"]) == (403, f'forbidden: User "{account.user}" cannot get path "/metrics"')


def test_a_role_allows_what_it_says_and_no_more(api: Api, account: Account) -> None:
    account.allow({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create"]})
    account.await_right("create", "configmaps")
    path = f"/api/v1/namespaces/{account.namespace}/configmaps"
    account.api.post(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": account.name}}).ok()
    account.api.get(f"{path}/{account.name}").ok()
    assert account.api.get(path).code == 403
    assert account.api.patch(f"{path}/{account.name}", {"data": {}}).code == 403
    assert account.api.get(f"/api/v1/namespaces/default/configmaps/{account.name}").code == 403
    assert not account.may("delete", "configmaps")


def test_a_role_for_one_name(account: Account) -> None:
    account.allow({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]})
    account.await_right("get", "secrets", name="mine")
    path = f"/api/v1/namespaces/{account.namespace}/secrets"
    assert account.api.get(f"{path}/mine").code == 404
    assert account.api.get(f"{path}/other").code == 403


def test_the_status_is_a_right_of_its_own(account: Account, widgets: Widgets, api: Api) -> None:
    account.allow({"apiGroups": [GROUP], "resources": ["widgets/status"], "verbs": ["patch"]})
    account.await_right("patch", "widgets", group=GROUP, subresource="status")
    widgets.create(account.namespace, account.name, {"text": "a"})
    account.api.patch(widgets.path(account.namespace, account.name, "status"), {"status": {"ready": True}}).ok()
    assert account.api.patch(widgets.path(account.namespace, account.name), {"spec": {"text": "b"}}).code == 403


def test_an_apply_that_creates_needs_the_right_to_create(account: Account, widgets: Widgets) -> None:
    account.allow({"apiGroups": [GROUP], "resources": ["widgets"], "verbs": ["patch"]})
    account.await_right("patch", "widgets", group=GROUP)
    answer = account.api.apply(widgets.path(account.namespace, account.name), widgets.manifest(account.name, {"text": "a"}), "m")
    assert answer.code == 403
    assert answer.body["message"] == (
        f'widgets.{GROUP} "{account.name}" is forbidden: User "{account.user}" cannot create resource "widgets" in API group "{GROUP}" '
        f'in the namespace "{account.namespace}"'
    )


def test_nobody_gives_away_more_than_they_have(account: Account) -> None:
    account.allow(
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    )
    account.await_right("create", "roles", group="rbac.authorization.k8s.io")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "more"}, "rules": rules}
    answer = account.api.post(f"{RBAC}/namespaces/{account.namespace}/roles", role)
    assert answer.code == 403
    assert "is attempting to grant RBAC permissions not currently held" in answer.body["message"]
