"""Admission webhooks: who is asked about what, and what their answers do."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from aiohttp import web
from embedded.wire import MERGE, Wire, config_map

from slipway.embedded.pki import Identity
from slipway.embedded.server import EmbeddedServer

pytestmark = pytest.mark.asyncio

MAPS = "/api/v1/namespaces/default/configmaps"
GROUP = "/apis/admissionregistration.k8s.io/v1"
Manifest = dict[str, Any]
Answer = Callable[[Manifest], Manifest]


class Webhook:
    """A webhook that answers as the test wants, and keeps what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[Manifest] = []
        self.answer: Answer = lambda request: {"allowed": True}

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        review = msgspec.json.decode(await request.read())
        self.asked.append(review["request"])
        response = {"uid": review["request"]["uid"], **self.answer(review["request"])}
        body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        return web.Response(body=body, content_type="application/json")


@pytest_asyncio.fixture
async def webhook() -> AsyncIterator[Webhook]:
    found = Webhook("")
    runner = web.ServerRunner(web.Server(found), shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/admit"
    yield found
    await runner.cleanup()


async def register(asker: Wire, webhook: Webhook, kind: str = "validating", **changes: Any) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE", "DELETE"]}
    entry = {
        "name": "hook.example.com",
        "clientConfig": {"url": webhook.url},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **changes,
    }
    await asker.make(f"{GROUP}/{kind}webhookconfigurations", {"metadata": {"name": "hooks"}, "webhooks": [entry]})


async def test_a_webhook_sees_the_object_before_and_after(asker: Wire, webhook: Webhook) -> None:
    await register(asker, webhook)
    await asker.make(MAPS, config_map("a"))
    await asker.patch(f"{MAPS}/a", {"data": {"b": "2"}})
    await asker.ask("DELETE", f"{MAPS}/a")
    seen = [(asked["operation"], (asked["object"] or {}).get("data"), (asked["oldObject"] or {}).get("data")) for asked in webhook.asked]
    both = {"a": "1", "b": "2"}
    assert seen == [("CREATE", {"a": "1"}, None), ("UPDATE", both, {"a": "1"}), ("DELETE", None, both)]
    assert webhook.asked[0]["userInfo"]["username"] == "admin"
    assert webhook.asked[0]["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (webhook.asked[0]["name"], webhook.asked[0]["namespace"]) == ("a", "default")


async def test_a_refusal_says_why_and_nothing_is_written(asker: Wire, webhook: Webhook) -> None:
    await register(asker, webhook)
    webhook.answer = lambda request: {"allowed": False, "status": {"message": "not today", "code": 422, "reason": "Invalid"}}
    code, document = await asker.ask("POST", MAPS, config_map("a"))
    assert (code, document["reason"]) == (422, "Invalid")
    assert document["message"] == 'admission webhook "hook.example.com" denied the request: not today'
    assert await asker.get(f"{MAPS}/a") is None


async def test_a_refusal_without_words_is_forbidden(asker: Wire, webhook: Webhook) -> None:
    await register(asker, webhook)
    webhook.answer = lambda request: {"allowed": False}
    code, document = await asker.ask("POST", MAPS, config_map("a"))
    assert (code, document["reason"]) == (403, "Forbidden")
    assert document["message"] == 'admission webhook "hook.example.com" denied the request without explanation'


async def test_a_mutating_webhook_changes_what_is_stored(asker: Wire, webhook: Webhook) -> None:
    await register(asker, webhook, "mutating")
    patch = [{"op": "add", "path": "/data/added", "value": "yes"}]
    webhook.answer = lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": b64encode(msgspec.json.encode(patch)).decode()}
    made = await asker.make(MAPS, config_map("a"))
    assert made["data"] == {"a": "1", "added": "yes"}


async def test_warnings_reach_the_client(asker: Wire, webhook: Webhook) -> None:
    await register(asker, webhook)
    webhook.answer = lambda request: {"allowed": True, "warnings": ["mind the gap"]}
    await asker.make(MAPS, config_map("a"))
    assert asker.headers["Warning"] == '299 - "mind the gap"'


async def test_a_webhook_that_is_not_there_stops_writes_or_is_ignored(asker: Wire, webhook: Webhook) -> None:
    webhook.url = "http://127.0.0.1:1/nobody"
    await register(asker, webhook, "validating", failurePolicy="Fail")
    code, document = await asker.ask("POST", MAPS, config_map("a"))
    assert (code, document["reason"]) == (500, "InternalError")
    begin = 'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "http://127.0.0.1:1/nobody?timeout=10s"'
    assert document["message"].startswith(begin)
    await asker.ask("DELETE", f"{GROUP}/validatingwebhookconfigurations/hooks")
    await register(asker, webhook, "validating", failurePolicy="Ignore")
    await asker.make(MAPS, config_map("a"))


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, True),
        ({"objectSelector": {"matchLabels": {"a": "c"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]}, True),
        ({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/status"], "operations": ["*"]}]}, False),
        ({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["UPDATE"]}]}, False),
        (
            {"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"], "scope": "Cluster"}]},
            False,
        ),
        ({"rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}]}, False),
    ],
)
async def test_only_what_a_webhook_wants_to_see(asker: Wire, webhook: Webhook, changes: Manifest, asked: bool) -> None:
    await register(asker, webhook, **changes)
    await asker.make(MAPS, config_map("a", labels={"a": "b"}))
    assert bool(webhook.asked) is asked


async def test_a_dry_run_asks_only_webhooks_without_side_effects(asker: Wire, webhook: Webhook) -> None:
    await register(asker, webhook, sideEffects="Some")
    code, document = await asker.ask("POST", f"{MAPS}?dryRun=All", config_map("a"))
    assert (code, document["message"]) == (400, 'admission webhook "hook.example.com" does not support dry run')


async def test_a_write_that_meets_another_one_is_made_again(server: EmbeddedServer, asker: Wire, webhook: Webhook) -> None:
    await asker.make(MAPS, config_map("a"))
    await register(asker, webhook)
    first = True

    def slip_in(request: Manifest) -> Manifest:
        nonlocal first
        if first:
            first = False
            store = server.core.store
            stored = store.get("configmaps", "default", "a")
            assert stored is not None
            store.put("configmaps", {**stored.manifest(), "data": {"between": "yes"}}, stored.version)
        return {"allowed": True}

    webhook.answer = slip_in
    patched = await asker.patch(f"{MAPS}/a", {"data": {"b": "2"}})
    assert patched["data"] == {"between": "yes", "b": "2"}
    first = True
    stale = {**patched, "data": {}}
    code, document = await asker.ask("PUT", f"{MAPS}/a", stale)
    assert (code, document["reason"]) == (409, "Conflict")


async def test_a_bundle_tells_whom_to_trust(asker: Wire) -> None:
    identity = Identity.load(None, lambda: datetime.now(UTC))
    webhook = Webhook("")
    runner = web.ServerRunner(web.Server(webhook), shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=identity.server_context(("127.0.0.1",))).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        await register(asker, webhook, clientConfig={"url": url, "caBundle": b64encode(identity.ca).decode()})
        await asker.make(MAPS, config_map("a"))
        assert len(webhook.asked) == 1
        other = Identity.load(None, lambda: datetime.now(UTC))
        configuration = f"{GROUP}/validatingwebhookconfigurations/hooks"
        found = await asker.get(configuration)
        assert found is not None
        found["webhooks"][0]["clientConfig"]["caBundle"] = b64encode(other.ca).decode()
        assert (await asker.ask("PUT", configuration, found))[0] == 200
        code, document = await asker.ask("PATCH", f"{MAPS}/a", {"data": {"b": "1"}}, MERGE)
        assert code == 500
        assert "certificate verify failed" in document["message"]
    finally:
        await runner.cleanup()
