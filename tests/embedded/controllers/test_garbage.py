"""The garbage collector: dependents go with their owners, wait for them, or are left to themselves."""

from __future__ import annotations

from typing import Any

import pytest
from embedded.wire import Wire, config_map
from support.waiting import eventually

pytestmark = pytest.mark.asyncio

MAPS = "/api/v1/namespaces/default/configmaps"
Manifest = dict[str, Any]


def owned_by(*owners: Manifest, block: bool = False) -> list[Manifest]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]


async def make(asker: Wire, name: str, **metadata: Any) -> Manifest:
    return await asker.make(MAPS, config_map(name, **metadata))


async def test_dependents_of_dependents_go_too(asker: Wire) -> None:
    owner = await make(asker, "owner")
    middle = await make(asker, "middle", ownerReferences=owned_by(owner))
    await make(asker, "last", ownerReferences=owned_by(middle))
    await asker.ask("DELETE", f"{MAPS}/owner")
    await asker.until_gone(f"{MAPS}/last")
    assert await asker.get(f"{MAPS}/middle") is None


async def test_an_object_stays_while_one_owner_does(asker: Wire) -> None:
    one, other = await make(asker, "one"), await make(asker, "other")
    await make(asker, "child", ownerReferences=owned_by(one, other))
    await asker.ask("DELETE", f"{MAPS}/one")

    async def has_one_owner() -> bool:
        child = await asker.get(f"{MAPS}/child")
        assert child is not None
        return [reference["name"] for reference in child["metadata"]["ownerReferences"]] == ["other"]

    await eventually(has_one_owner)
    await asker.ask("DELETE", f"{MAPS}/other")
    await asker.until_gone(f"{MAPS}/child")


async def test_a_foreground_deletion_waits_for_those_that_block_it(asker: Wire) -> None:
    owner = await make(asker, "owner")
    await make(asker, "child", ownerReferences=owned_by(owner, block=True), finalizers=["example.com/hold"])
    code, document = await asker.ask("DELETE", f"{MAPS}/owner", {"propagationPolicy": "Foreground"})
    assert (code, document["metadata"]["finalizers"]) == (200, ["foregroundDeletion"])

    async def is_deleting() -> bool:
        child = await asker.get(f"{MAPS}/child")
        return child is not None and "deletionTimestamp" in child["metadata"]

    await eventually(is_deleting)
    assert await asker.get(f"{MAPS}/owner") is not None
    await asker.patch(f"{MAPS}/child", {"metadata": {"finalizers": None}})
    await asker.until_gone(f"{MAPS}/owner")


async def test_a_foreground_deletion_does_not_wait_for_others(asker: Wire) -> None:
    owner = await make(asker, "owner")
    await make(asker, "child", ownerReferences=owned_by(owner), finalizers=["example.com/hold"])
    await asker.ask("DELETE", f"{MAPS}/owner", {"propagationPolicy": "Foreground"})
    await asker.until_gone(f"{MAPS}/owner")
    child = await asker.get(f"{MAPS}/child")
    assert child is not None
    assert "deletionTimestamp" in child["metadata"]


async def test_orphans_lose_their_owner_and_stay(asker: Wire) -> None:
    owner = await make(asker, "owner")
    await make(asker, "child", ownerReferences=owned_by(owner))
    await asker.ask("DELETE", f"{MAPS}/owner", {"propagationPolicy": "Orphan"})
    await asker.until_gone(f"{MAPS}/owner")
    child = await asker.get(f"{MAPS}/child")
    assert child is not None
    assert "ownerReferences" not in child["metadata"]


async def test_an_object_whose_owner_never_was_goes(asker: Wire) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0"}
    await make(asker, "child", ownerReferences=[reference])
    await asker.until_gone(f"{MAPS}/child")


async def test_an_owner_in_another_namespace_is_none(asker: Wire) -> None:
    await asker.make("/api/v1/namespaces", {"metadata": {"name": "other"}})
    owner = await asker.make("/api/v1/namespaces/other/configmaps", config_map("owner"))
    await make(asker, "child", ownerReferences=owned_by(owner))
    await asker.until_gone(f"{MAPS}/child")


async def test_an_owner_without_a_namespace_is_one_for_all(asker: Wire) -> None:
    owner = await asker.make("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    await make(asker, "child", ownerReferences=owned_by(owner))
    await make(asker, "witness", ownerReferences=[{**owned_by(owner)[0], "uid": "other"}])
    await asker.until_gone(f"{MAPS}/witness")
    assert await asker.get(f"{MAPS}/child") is not None
    await asker.ask("DELETE", "/api/v1/nodes/n")
    await asker.until_gone(f"{MAPS}/child")


async def test_a_reference_to_a_namesake_is_not_enough(asker: Wire) -> None:
    first = await make(asker, "owner")
    await asker.ask("DELETE", f"{MAPS}/owner")
    await make(asker, "owner")
    await make(asker, "child", ownerReferences=owned_by(first))
    await asker.until_gone(f"{MAPS}/child")


async def test_a_hundred_dependents_go(asker: Wire) -> None:
    owner = await make(asker, "owner")
    for number in range(100):
        await make(asker, f"child-{number}", ownerReferences=owned_by(owner), labels={"a": "b"})
    await asker.ask("DELETE", f"{MAPS}/owner")

    async def none_left() -> bool:
        return not (await asker.ask("GET", f"{MAPS}?labelSelector=a%3Db"))[1]["items"]

    await eventually(none_left)
