"""RBAC rules, as apiserver's authorizer reads them, and roles that are made of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from embedded.wire import MERGE, Wire, wire
from support.waiting import eventually

from slipway.embedded.access.authorization import Attributes, allows
from slipway.embedded.server import EmbeddedServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def request(verb: str = "get", resource: str = "pods", subresource: str = "", group: str = "", name: str = "") -> Attributes:
    return Attributes(verb, "", group, "v1", "n", resource, subresource, name)


RULE: dict[str, Any] = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


@pytest.mark.parametrize(
    ("rule", "asked", "allowed"),
    [
        (RULE, request(), True),
        (RULE, request(verb="list"), False),
        (RULE, request(group="apps"), False),
        (RULE, request(resource="secrets"), False),
        (RULE, request(subresource="status"), False),
        (RULE | {"resources": ["pods/status"]}, request(subresource="status"), True),
        (RULE | {"resources": ["pods/status"]}, request(), False),
        (RULE | {"resources": ["*/status"]}, request(subresource="status"), True),
        (RULE | {"resources": ["*"]}, request(subresource="status"), True),
        (RULE | {"verbs": ["*"]}, request(verb="patch"), True),
        (RULE | {"apiGroups": ["*"]}, request(group="apps"), True),
        (RULE | {"resourceNames": ["a"]}, request(name="a"), True),
        (RULE | {"resourceNames": ["a"]}, request(name="b"), False),
        (RULE | {"resourceNames": ["a"]}, request(verb="list"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/healthz"]}, Attributes("get", "/healthz"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/apis/*"]}, Attributes("get", "/apis/apps"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/apis/*"]}, Attributes("get", "/version"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["*"]}, Attributes("get", "/version"), True),
    ],
)
def test_a_rule(rule: dict[str, Any], asked: Attributes, allowed: bool) -> None:
    assert allows(rule, asked, namespaced=False) is allowed


def test_a_role_in_a_namespace_says_nothing_of_paths() -> None:
    assert not allows({"verbs": ["get"], "nonResourceURLs": ["*"]}, Attributes("get", "/version"), namespaced=True)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer() as started:
        yield started


@pytest_asyncio.fixture
async def admin(server: EmbeddedServer) -> AsyncIterator[Wire]:
    async with wire(server.connection()) as opened:
        yield opened


async def bind(admin: Wire, role: str, **subject: str) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    await admin.make(f"{RBAC}/clusterrolebindings", {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]})


@pytest.mark.asyncio
async def test_a_binding_to_a_role_that_is_not_there_says_so(server: EmbeddedServer, admin: Wire) -> None:
    await bind(admin, "missing", kind="User", name="jane", apiGroup="rbac.authorization.k8s.io")
    async with wire(server.connection("jane", ())) as asker:
        code, document = await asker.ask("GET", "/api/v1/nodes")
    assert code == 403
    assert document["message"] == (
        'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope: '
        'RBAC: clusterrole.rbac.authorization.k8s.io "missing" not found'
    )


@pytest.mark.asyncio
async def test_a_role_of_labelled_roles_has_their_rules_and_follows_them(server: EmbeddedServer, admin: Wire) -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}
    await admin.make(f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "aggregationRule": selector, "rules": []})
    await bind(admin, "all", kind="Group", name="readers", apiGroup="rbac.authorization.k8s.io")
    rule = {"verbs": ["list"], "apiGroups": [""], "resources": ["nodes"]}
    await admin.make(f"{RBAC}/clusterroles", {"metadata": {"name": "nodes", "labels": {"to": "all"}}, "rules": [rule]})
    async with wire(server.connection("jane", ("readers",))) as asker:

        async def may(expected: int) -> bool:
            return (await asker.ask("GET", "/api/v1/nodes"))[0] == expected

        await eventually(lambda: may(200))
        await admin.ask("DELETE", f"{RBAC}/clusterroles/nodes")
        await eventually(lambda: may(403))


async def allow(admin: Wire, user: str, *rules: dict[str, Any], name: str = "allowed") -> None:
    await admin.make(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
    await bind(admin, name, kind="User", name=user, apiGroup="rbac.authorization.k8s.io")


MAY_WRITE_ROLES = {"verbs": ["create", "get", "patch", "update"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]}
GATHERS = {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}


@pytest.mark.asyncio
async def test_a_role_that_gathers_others_needs_all_rights(server: EmbeddedServer, admin: Wire) -> None:
    await allow(admin, "jane", MAY_WRITE_ROLES)
    why = 'clusterroles.rbac.authorization.k8s.io "{}" is forbidden: must have cluster-admin privileges to use the aggregationRule'
    async with wire(server.connection("jane", ())) as jane:
        await jane.make(f"{RBAC}/clusterroles", {"metadata": {"name": "empty"}, "rules": []})
        await bind(jane, "empty", kind="User", name="jane", apiGroup="rbac.authorization.k8s.io")
        code, document = await jane.ask("PATCH", f"{RBAC}/clusterroles/empty", {"aggregationRule": GATHERS}, MERGE)
        assert (code, document["message"]) == (403, why.format("empty"))
        code, document = await jane.ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "other"}, "aggregationRule": GATHERS})
        assert (code, document["message"]) == (403, why.format("other"))


@pytest.mark.asyncio
async def test_who_has_all_rights_may_gather_roles(server: EmbeddedServer, admin: Wire) -> None:
    rules = ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]})
    await allow(admin, "jane", *rules)
    async with wire(server.connection("jane", ())) as jane:
        await jane.make(f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "aggregationRule": GATHERS})


@pytest.mark.asyncio
async def test_a_selector_cannot_pretend_to_ask_for_one_name(server: EmbeddedServer, admin: Wire) -> None:
    await allow(admin, "jane", {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["allowed"]})
    async with wire(server.connection("jane", ())) as jane:
        code, _ = await jane.ask("GET", "/api/v1/secrets?fieldSelector=metadata.name%3Dallowed")
        assert code == 200
        code, _ = await jane.ask("GET", "/api/v1/secrets?fieldSelector=metadata.namespace!%3Dx%5C,metadata.name%3Dallowed")
        assert code == 403


@pytest.mark.asyncio
async def test_a_rule_of_a_billion_rights_is_refused_at_once(server: EmbeddedServer, admin: Wire) -> None:
    await allow(admin, "jane", MAY_WRITE_ROLES)
    many = [str(number) for number in range(1000)]
    async with wire(server.connection("jane", ())) as jane:
        rule = {"verbs": many, "apiGroups": many, "resources": many}
        code, _ = await jane.ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "rules": [rule]})
    assert code == 403
