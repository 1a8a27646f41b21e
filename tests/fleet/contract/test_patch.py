"""Patches against an API server, with somebody else who writes in between."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runtime.widgets import SPACE, WIDGET, api_client, widget

from slipway.api.machinery.patches import jsonpatch
from slipway.fleet.contract import conditions, v1beta1conditions
from slipway.fleet.contract import patch as patching
from slipway.fleet.contract.conditions import Condition, ConditionStatus
from slipway.fleet.contract.patch import Patcher, merge_patch
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.errors import ConflictError, NotFoundError

NOW = datetime(2026, 5, 1, tzinfo=UTC)
OWNED = ("Ready", "Paused")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {}, {"a": None}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": None}, {}, {}),
        ({"a": 1}, {"a": None}, {"a": None}),
    ],
)
def test_the_merge_patch_between_two_versions(before: dict[str, Any], after: dict[str, Any], expected: dict[str, Any]) -> None:
    patch = merge_patch(before, after)
    assert patch == expected
    assert _present(jsonpatch.merge(before, patch)) == _present(after)


def _present(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value is not None}


_JSON = st.recursive(
    st.booleans() | st.integers(2, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(st.text("ab", max_size=2), _JSON, max_size=4)


@given(_OBJECTS, _OBJECTS)
def test_a_merge_patch_makes_what_it_is_to_make(before: dict[str, Any], after: dict[str, Any]) -> None:
    patch = merge_patch(before, after)
    assert jsonpatch.equal(jsonpatch.merge(before, patch), after)
    assert (patch == {}) == jsonpatch.equal(before, after)


def test_what_belongs_to_the_api_server_is_left_alone() -> None:
    before = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "resourceVersion": "1", "generation": 1, "managedFields": [1]}}
    after = {"apiVersion": "v2", "kind": "X", "metadata": {"name": "x", "resourceVersion": "2", "generation": 2}}
    assert patching.changes(before, after) == ({}, {})


def test_the_last_finalizer_goes_with_its_list() -> None:
    before = {"metadata": {"name": "x", "finalizers": ["f"], "labels": {"a": "b"}}}
    after = {"metadata": {"name": "x", "finalizers": [], "labels": {"a": "b"}}}
    assert patching.changes(before, after).main == {"metadata": {"finalizers": None}}


class _Counted(AsyncClient):
    """Counts the requests that change something."""

    writes = 0

    async def patch(self, *arguments: Any, **options: Any) -> Any:
        self.writes += 1
        return await super().patch(*arguments, **options)


def _set(manifest: dict[str, Any], condition_type: str, status: ConditionStatus, reason: str = "R") -> dict[str, Any]:
    found = conditions.set_condition(conditions.of(manifest), Condition(type=condition_type, status=status, reason=reason), NOW)
    manifest.setdefault("status", {})["conditions"] = found
    return manifest


async def _theirs(client: AsyncClient, patch: dict[str, Any], subresource: str = "") -> None:
    await client.patch(WIDGET, "w", SPACE, patch, type=PatchType.MERGE, subresource=subresource)


@pytest.mark.asyncio
async def test_one_request_for_each_part_that_changed_and_none_for_nothing() -> None:
    async with api_client() as base:
        client = _Counted(base.connection)
        await client.create(WIDGET, widget("w", size=1, color="red"))
        manifest = await client.get(WIDGET, "w", SPACE)
        patcher = Patcher(client, WIDGET, manifest, owned_conditions=OWNED)
        assert (await patcher.patch(deepcopy(manifest)))["metadata"] == manifest["metadata"]
        assert client.writes == 0
        manifest["metadata"]["labels"] = {"a": "b"}
        manifest["spec"] = {"size": 2}
        after = await patcher.patch(_set(manifest, "Ready", "True"))
        assert client.writes == 2
        assert after["spec"] == {"size": 2}
        assert after["metadata"]["labels"] == {"a": "b"}
        assert conditions.is_true(conditions.of(after), "Ready")
        again = await patcher.patch(_set(deepcopy(after), "Ready", "False"))
        assert client.writes == 3, "status alone"
        assert await client.get(WIDGET, "w", SPACE) == again
        await client.close()


@pytest.mark.asyncio
async def test_what_others_wrote_elsewhere_stays() -> None:
    async with api_client() as client:
        manifest = await client.create(WIDGET, widget("w", size=1))
        patcher = Patcher(client, WIDGET, manifest, owned_conditions=OWNED)
        await _theirs(client, {"spec": {"color": "red"}, "metadata": {"annotations": {"theirs": "x"}}})
        await _theirs(client, {"status": {"phase": "Theirs"}}, "status")
        manifest["spec"]["size"] = 2
        manifest.setdefault("status", {})["observedGeneration"] = 1
        after = await patcher.patch(_set(manifest, "Ready", "True"))
        assert after["spec"] == {"size": 2, "color": "red"}
        assert after["metadata"]["annotations"] == {"theirs": "x"}
        assert after["status"]["phase"] == "Theirs"
        assert after["status"]["observedGeneration"] == 1


@pytest.mark.asyncio
async def test_our_conditions_are_put_onto_what_others_wrote() -> None:
    async with api_client() as client:
        manifest = await client.create(WIDGET, widget("w"))
        manifest = await Patcher(client, WIDGET, manifest, owned_conditions=OWNED).patch(_set(manifest, "Ready", "False", "Old"))
        patcher = Patcher(client, WIDGET, manifest, owned_conditions=OWNED)
        theirs = _set(_set(deepcopy(manifest), "Theirs", "True"), "Ready", "Unknown", "Meddled")
        await _theirs(client, {"status": {"conditions": theirs["status"]["conditions"]}}, "status")
        after = await patcher.patch(_set(manifest, "Ready", "True", "New"))
        assert [(one["type"], one["status"], one["reason"]) for one in conditions.of(after)] == [
            ("Ready", "True", "New"),
            ("Theirs", "True", "R"),
        ]


@pytest.mark.asyncio
async def test_deprecated_conditions_are_merged_too() -> None:
    def with_deprecated(manifest: dict[str, Any], name: str) -> dict[str, Any]:
        older = manifest.setdefault("status", {}).setdefault("deprecated", {}).setdefault("v1beta1", {})
        older["conditions"] = v1beta1conditions.set_deprecated(older.get("conditions") or [], v1beta1conditions.well(name), NOW)
        return manifest

    async with api_client() as client:
        manifest = await client.create(WIDGET, widget("w"))
        patcher = Patcher(client, WIDGET, manifest, owned_conditions=(), owned_deprecated_conditions=("Ready",))
        await _theirs(client, {"status": with_deprecated(deepcopy(manifest), "Theirs")["status"]}, "status")
        after = await patcher.patch(with_deprecated(manifest, "Ready"))
        assert [one["type"] for one in after["status"]["deprecated"]["v1beta1"]["conditions"]] == ["Ready", "Theirs"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("theirs", "subresource", "named"),
    [
        ({"spec": {"size": 7}}, "", r"spec\.size"),
        ({"status": {"phase": "Theirs"}}, "status", "phase"),
        ({"status": {"conditions": [{"type": "Other", "status": "False", "reason": "T"}]}}, "status", 'condition "Other"'),
    ],
)
async def test_a_change_to_the_same_thing_is_a_conflict(theirs: dict[str, Any], subresource: str, named: str) -> None:
    async with api_client() as client:
        manifest = await client.create(WIDGET, widget("w", size=1))
        patcher = Patcher(client, WIDGET, manifest, owned_conditions=OWNED)
        await _theirs(client, theirs, subresource)
        if subresource:
            manifest.setdefault("status", {})["phase"] = "Ours"
            _set(manifest, "Other", "True")
            if "phase" not in theirs["status"]:
                del manifest["status"]["phase"]
        else:
            manifest["spec"]["size"] = 2
        with pytest.raises(ConflictError, match=f"the Widget {SPACE}/w cannot be changed: .*{named}"):
            await patcher.patch(manifest)


@pytest.mark.asyncio
async def test_an_object_that_was_made_anew_is_not_the_one_that_was_read() -> None:
    async with api_client() as client:
        manifest = await client.create(WIDGET, widget("w", size=1))
        patcher = Patcher(client, WIDGET, manifest, owned_conditions=OWNED)
        await client.delete(WIDGET, "w", SPACE)
        await client.create(WIDGET, widget("w", size=1))
        manifest["spec"]["size"] = 2
        with pytest.raises(ConflictError, match="another one was made in its place"):
            await patcher.patch(manifest)


@pytest.mark.asyncio
async def test_an_object_that_is_gone_is_not_found() -> None:
    async with api_client() as client:
        manifest = await client.create(WIDGET, widget("w", size=1))
        patcher = Patcher(client, WIDGET, manifest, owned_conditions=OWNED)
        await client.delete(WIDGET, "w", SPACE)
        with pytest.raises(NotFoundError):
            await patcher.patch(_set(manifest, "Ready", "True"))


@pytest.mark.asyncio
async def test_with_its_last_finalizer_the_object_goes_and_its_status_is_not_missed() -> None:
    async with api_client() as client:
        made = widget("w")
        made["metadata"]["finalizers"] = ["e.test.slipway.io/f"]
        await client.create(WIDGET, made)
        await client.delete(WIDGET, "w", SPACE)
        manifest = await client.get(WIDGET, "w", SPACE)
        patcher = Patcher(client, WIDGET, manifest, owned_conditions=OWNED)
        manifest["metadata"]["finalizers"] = []
        await patcher.patch(_set(manifest, "Ready", "False"))
        assert await client.find(WIDGET, "w", SPACE) is None
