"""What costs much does not hold up the server: others are answered meanwhile, and the verdict is the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Kind
from slipway.embedded.access.authentication import ADMIN
from slipway.embedded.access.authorization import Authorizer
from slipway.embedded.apiextensions.cel.patience import AT_ONCE
from slipway.embedded.apiextensions.cel.rules import Rules
from slipway.embedded.server import EmbeddedServer
from slipway.embedded.storage.store import Store
from slipway.embedded.webhooks import conditions
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import InvalidError

THING = Kind("patience.test", "v1", "Thing", "things", True)
ITEMS = [f"{number:02}" for number in range(34)]
RULE = "self.all(a, self.all(b, self.all(c, a + b != c)))"
SPEC: dict[str, Any] = {
    "type": "array",
    "maxItems": 34,
    "items": {"type": "string", "maxLength": 4},
    "x-kubernetes-validations": [{"rule": RULE, "message": "one is made of two others"}],
}
SCHEMA = {"type": "object", "properties": {"spec": SPEC}}
CRD = {
    "metadata": {"name": "things.patience.test"},
    "spec": {
        "group": THING.group,
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


@pytest.mark.asyncio
async def test_others_are_answered_while_an_object_is_judged_that_costs_much() -> None:
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client, AsyncClient(server.connection()) as other:
        await client.create(CUSTOM_RESOURCE_DEFINITION, CRD)
        thing = {"metadata": {"name": "a", "namespace": "default"}, "spec": [*ITEMS[:-1], "3232"]}
        judged = asyncio.create_task(client.create(THING, thing))
        answers = 0
        while not judged.done():
            await other.get(NAMESPACE, "default")
            answers += 1
        with pytest.raises(InvalidError, match="one is made of two others"):
            await judged
    # By a server that is held up, one question at most is answered before the object is judged, and one with it.
    assert answers >= 3


@pytest.mark.asyncio
async def test_the_verdict_is_the_same_wherever_it_is_found() -> None:
    rules = Rules(SCHEMA)
    for items in (["a", "b", "ab"], ITEMS[:20], [*ITEMS[:20], "1919"]):
        whole, judged = rules.validate({"spec": items}, None), await rules.judge({"spec": items}, None)
        assert ([str(error) for error in judged.errors], judged.warnings) == ([str(error) for error in whole.errors], whole.warnings)
    assert rules.validate({"spec": ITEMS[:20]}, None, AT_ONCE).is_spent


@pytest.mark.asyncio
async def test_a_condition_that_asks_for_rights_is_answered_from_a_thread_too() -> None:
    request: dict[str, Any] = {
        "uid": "u",
        "name": "a",
        "operation": "CREATE",
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "object": {"spec": {}},
        "oldObject": None,
    }
    rights = conditions.Rights(Authorizer(Store()), ADMIN)
    # One check costs 350,000, by the real server's count.
    for verb, holds in (("allowed()", True), ("errored()", False)):
        asked = {"name": "c", "expression": f"authorizer.group('').resource('pods').check('get').{verb}"}
        assert await conditions.Conditions([asked]).hold(request, rights) is holds
