"""Namespaces: what every one has, and how a terminating one goes."""

from __future__ import annotations

import pytest
from embedded.wire import Wire, config_map, define, definition
from support.waiting import eventually

pytestmark = pytest.mark.asyncio

SPACE = "/api/v1/namespaces/space"


async def make(asker: Wire) -> None:
    await asker.make("/api/v1/namespaces", {"metadata": {"name": "space"}})
    await eventually(lambda: asker.get(f"{SPACE}/serviceaccounts/default"))


async def test_a_namespace_has_an_account_and_the_authority(asker: Wire) -> None:
    await make(asker)
    await eventually(lambda: asker.get(f"{SPACE}/configmaps/kube-root-ca.crt"))
    found = await asker.get(f"{SPACE}/configmaps/kube-root-ca.crt")
    assert found is not None
    assert found["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")


async def test_a_deleted_account_comes_back(asker: Wire) -> None:
    await make(asker)
    before = await asker.get(f"{SPACE}/serviceaccounts/default")
    await asker.ask("DELETE", f"{SPACE}/serviceaccounts/default")

    async def is_new() -> bool:
        found = await asker.get(f"{SPACE}/serviceaccounts/default")
        return found is not None and before is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    await eventually(is_new)


async def test_a_namespace_goes_with_all_that_is_in_it(asker: Wire) -> None:
    await make(asker)
    await define(asker, definition())
    gadgets = "/apis/embedded.test/v1/namespaces/space/gadgets"
    await asker.make(gadgets, {"apiVersion": "embedded.test/v1", "kind": "Gadget", "metadata": {"name": "g"}})
    await asker.make(f"{SPACE}/configmaps", config_map("a"))
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    await asker.make(f"{SPACE}/pods", pod)
    code, document = await asker.ask("DELETE", SPACE)
    assert (code, document["status"]["phase"]) == (200, "Terminating")
    await asker.until_gone(SPACE)
    for path in (f"{gadgets}/g", f"{SPACE}/configmaps/a", f"{SPACE}/pods/p"):
        assert await asker.get(path) is None


async def test_a_namespace_waits_for_finalizers_and_says_so(asker: Wire) -> None:
    await make(asker)
    await asker.make(f"{SPACE}/configmaps", config_map("held", finalizers=["example.com/hold"]))
    await asker.ask("DELETE", SPACE)

    async def message() -> str:
        found = await asker.get(SPACE)
        assert found is not None
        conditions = {condition["type"]: condition for condition in found["status"].get("conditions", ())}
        return str(conditions.get("NamespaceFinalizersRemaining", {}).get("message", ""))

    async def says_so() -> bool:
        return await message() == "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"

    await eventually(says_so)
    code, document = await asker.ask("POST", f"{SPACE}/configmaps", config_map("late"))
    assert (code, document["reason"]) == (403, "Forbidden")
    assert document["message"] == (
        'configmaps "late" is forbidden: unable to create new content in namespace space because it is being terminated'
    )
    await asker.patch(f"{SPACE}/configmaps/held", {"metadata": {"finalizers": None}})
    await asker.until_gone(SPACE)


async def test_objects_of_other_namespaces_stay(asker: Wire) -> None:
    await make(asker)
    await asker.make("/api/v1/namespaces", {"metadata": {"name": "space-2"}})
    await asker.make("/api/v1/namespaces/space-2/configmaps", config_map("a"))
    await asker.ask("DELETE", SPACE)
    await asker.until_gone(SPACE)
    assert await asker.get("/api/v1/namespaces/space-2/configmaps/a") is not None
