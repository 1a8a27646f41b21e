"""Versions of custom resources: renamed or converted by a webhook, in reads, writes and watches; and the two faces of Events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from aiohttp import web
from embedded.wire import DEFINITIONS, Wire, define, definition
from support.waiting import eventually

pytestmark = pytest.mark.asyncio

V1, V2 = ("/apis/embedded.test/v1/namespaces/default/gadgets", "/apis/embedded.test/v2/namespaces/default/gadgets")
Manifest = dict[str, Any]


class Converter:
    """v1 has spec.size, v2 has spec.width."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0
        self.fails = ""

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        asked = msgspec.json.decode(await request.read())["request"]
        self.asked += 1
        converted = [self._converted(item, asked["desiredAPIVersion"]) for item in asked["objects"]]
        result = {"status": "Failure", "message": self.fails} if self.fails else {"status": "Success"}
        response = {"uid": asked["uid"], "convertedObjects": converted, "result": result}
        document = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
        return web.Response(body=msgspec.json.encode(document), content_type="application/json")

    def _converted(self, item: Manifest, api_version: str) -> Manifest:
        old, new = ("size", "width") if api_version.endswith("v2") else ("width", "size")
        spec = {new if key == old else key: value for key, value in item.get("spec", {}).items()}
        return {
            **item,
            "apiVersion": api_version,
            "spec": spec,
            "metadata": {**item["metadata"], "uid": "forged", "labels": {"by": "webhook"}},
        }


@pytest_asyncio.fixture
async def converter() -> AsyncIterator[Converter]:
    found = Converter()
    runner = web.ServerRunner(web.Server(found), shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/convert"
    yield found
    await runner.cleanup()


async def defined(asker: Wire, converter: Converter) -> None:
    webhook = {"clientConfig": {"url": converter.url}, "conversionReviewVersions": ["v1"]}
    await define(asker, definition(versions=("v1", "v2"), conversion={"strategy": "Webhook", "webhook": webhook}))


def gadget(version: str, spec: Manifest, name: str = "g") -> Manifest:
    return {"apiVersion": f"embedded.test/{version}", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


async def test_without_a_webhook_only_the_version_changes(asker: Wire) -> None:
    await define(asker, definition(versions=("v1", "v2")))
    await asker.make(V2, gadget("v2", {"width": 1}))
    found = await asker.get(f"{V1}/g")
    assert found is not None
    assert (found["apiVersion"], found["spec"]) == ("embedded.test/v1", {"width": 1})


async def test_a_webhook_converts_what_is_written_and_read(asker: Wire, converter: Converter) -> None:
    await defined(asker, converter)
    made = await asker.make(V2, gadget("v2", {"width": 3}))
    assert made["spec"] == {"width": 3}
    stored = await asker.get(f"{V1}/g")
    assert stored is not None
    assert (stored["spec"], stored["metadata"]["labels"]) == ({"size": 3}, {"by": "webhook"})
    assert stored["metadata"]["uid"] == made["metadata"]["uid"] != "forged"


async def test_a_patch_of_another_version_is_applied_in_that_version(asker: Wire, converter: Converter) -> None:
    await defined(asker, converter)
    await asker.make(V1, gadget("v1", {"size": 1}))
    assert (await asker.patch(f"{V2}/g", {"spec": {"width": 2}}))["spec"] == {"width": 2}
    found = await asker.get(f"{V1}/g")
    assert found is not None
    assert (found["spec"], found["metadata"]["generation"]) == ({"size": 2}, 2)


async def test_a_list_is_converted_at_once_and_an_object_once(asker: Wire, converter: Converter) -> None:
    await defined(asker, converter)
    for number in range(5):
        await asker.make(V1, gadget("v1", {"size": number}, f"g{number}"))
    converter.asked = 0
    for _ in range(2):
        _, document = await asker.ask("GET", V2)
        assert [item["spec"]["width"] for item in document["items"]] == list(range(5))
    assert converter.asked == 1


async def test_a_watch_shows_its_version(asker: Wire, converter: Converter) -> None:
    await defined(asker, converter)
    async with asker.watch(f"{V2}?watch=1") as events:
        await asker.make(V1, gadget("v1", {"size": 7}))
        event = await anext(events)
    assert (event["type"], event["object"]["apiVersion"], event["object"]["spec"]) == ("ADDED", "embedded.test/v2", {"width": 7})


async def test_a_conversion_that_fails_is_said(asker: Wire, converter: Converter) -> None:
    await defined(asker, converter)
    await asker.make(V1, gadget("v1", {"size": 7}))
    converter.fails = "no idea"
    code, document = await asker.ask("GET", f"{V2}/g")
    assert (code, document["reason"]) == (500, "InternalError")
    assert document["message"].endswith("failed: no idea")


async def test_objects_stay_in_the_version_in_which_they_were_stored_until_they_are_written(asker: Wire) -> None:
    await define(asker, definition(versions=("v1", "v2")))
    await asker.make(V1, gadget("v1", {"a": 1}))
    path = f"{DEFINITIONS}/gadgets.embedded.test"
    found = await asker.get(path)
    assert found is not None
    for version in found["spec"]["versions"]:
        version["storage"] = version["name"] == "v2"
    code, changed = await asker.ask("PUT", path, found)
    assert (code, changed["status"]["storedVersions"]) == (200, ["v1", "v2"])
    for where, version in ((V1, "v1"), (V2, "v2")):
        document = await asker.get(f"{where}/g")
        assert document is not None
        assert document["apiVersion"] == f"embedded.test/{version}"
    await asker.patch(f"{V2}/g", {"spec": {"a": 2}})
    document = await asker.get(f"{V1}/g")
    assert document is not None
    assert document["spec"] == {"a": 2}


async def test_a_version_that_is_no_longer_served_is_gone(asker: Wire) -> None:
    await define(asker, definition(versions=("v1", "v2")))
    path = f"{DEFINITIONS}/gadgets.embedded.test"
    found = await asker.get(path)
    assert found is not None
    found["spec"]["versions"][1]["served"] = False
    assert (await asker.ask("PUT", path, found))[0] == 200
    await asker.until_gone(V2)
    assert (await asker.ask("GET", V1))[0] == 200


async def test_names_that_another_definition_has_are_not_accepted(asker: Wire) -> None:
    await define(asker, definition())
    other = definition("widgets")
    other["spec"]["names"] = {**other["spec"]["names"], "kind": "Gadget"}
    await asker.make(DEFINITIONS, other)
    path = f"{DEFINITIONS}/widgets.embedded.test"

    async def conditions() -> dict[str, tuple[str, str, str]]:
        found = await asker.get(path)
        assert found is not None
        listed = found["status"].get("conditions") or ()
        return {item["type"]: (item["status"], item["reason"], item["message"]) for item in listed}

    await eventually(conditions)
    assert await conditions() == {
        "NamesAccepted": ("False", "ListKindConflict", '"GadgetList" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    await asker.ask("DELETE", f"{DEFINITIONS}/gadgets.embedded.test")

    async def is_established() -> bool:
        return (await conditions()).get("Established", ("",))[0] == "True"

    await eventually(is_established)


async def test_an_event_has_two_faces(asker: Wire) -> None:
    body = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reason": "Done",
        "action": "Do",
        "note": "said",
        "type": "Normal",
        "reportingController": "c",
        "reportingInstance": "i",
        "regarding": {"kind": "ConfigMap", "name": "x", "namespace": "default"},
    }
    await asker.make("/apis/events.k8s.io/v1/namespaces/default/events", body)
    found = await asker.get("/api/v1/namespaces/default/events/e")
    assert found is not None
    assert (found["apiVersion"], found["message"], found["involvedObject"]["name"], found["reportingComponent"]) == ("v1", "said", "x", "c")
    _, listed = await asker.ask("GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dx")
    assert len(listed["items"]) == 1
