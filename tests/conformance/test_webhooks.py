"""Admission webhooks: in which version an object is shown to them, and what of it when it is written through its scale."""

from __future__ import annotations

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conformance.api import MERGE, Api, Manifest
from conformance.widgets import DEFINITIONS, GROUP
from support import tlsserver
from support.waiting import eventually_blocking

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
PLURAL, KIND = "gauges", "Gauge"
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


class Webhooks:
    """One server of webhooks: ``/convert`` knows that what v1 calls size is the width of v2; what else is asked is kept and answered."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[Manifest] = []
        self.answer: Callable[[Manifest], Manifest] = lambda request: {"allowed": True}
        self.probed = 0
        issuer = tlsserver.authority()
        self.bundle = b64encode(issuer.certificate).decode()
        (folder / "pair.pem").write_bytes(tlsserver.leaf(issuer, common_name="webhooks").pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "pair.pem")
        webhooks = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                response = webhooks._answered(self.path.partition("?")[0], review["request"])
                body = json.dumps({**review, "request": None, "response": {"uid": review["request"]["uid"], **response}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                """What is asked is no news."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def client(self, path: str) -> Manifest:
        return {"url": f"https://127.0.0.1:{self.server.server_port}{path}", "caBundle": self.bundle}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join(10)

    def _answered(self, path: str, request: Manifest) -> Manifest:
        if path == "/convert":
            converted = [_converted(each, request["desiredAPIVersion"]) for each in request["objects"]]
            return {"convertedObjects": converted, "result": {"status": "Success"}}
        if path == "/probe":
            self.probed += 1
            return {"allowed": True}
        self.asked.append(request)
        return self.answer(request)


def _converted(item: Manifest, api_version: str) -> Manifest:
    old, new = ("size", "width") if api_version.endswith("v2") else ("width", "size")
    return {**item, "apiVersion": api_version, "spec": {new if key == old else key: value for key, value in item["spec"].items()}}


@pytest.fixture(scope="module")
def webhooks(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhooks]:
    """The server, and a kind in two versions that it converts."""
    made = Webhooks(tmp_path_factory.mktemp("webhooks"))
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": SCHEMA},
            "subresources": {"status": {}, "scale": SCALE},
        }
        for name in ("v1", "v2")
    ]
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": made.client("/convert"), "conversionReviewVersions": ["v1"]}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "kind": KIND},
            "versions": versions,
            "conversion": conversion,
        },
    }
    api.delete(f"{DEFINITIONS}/{PLURAL}.{GROUP}")
    api.gone(f"{DEFINITIONS}/{PLURAL}.{GROUP}")
    api.post(DEFINITIONS, definition).ok()
    for name in ("v1", "v2"):
        api.eventually(f"/apis/{GROUP}/{name}/{PLURAL}", lambda answer: answer.code == 200)
    yield made
    api.delete(f"{DEFINITIONS}/{PLURAL}.{GROUP}")
    api.gone(f"{DEFINITIONS}/{PLURAL}.{GROUP}")
    made.close()


class Asked:
    """The webhooks for one test: what they are to be asked about, and what they were."""

    def __init__(self, api: Api, webhooks: Webhooks, namespace: str) -> None:
        self._api, self._webhooks, self._namespace = api, webhooks, namespace

    @contextmanager
    def about(
        self, *resources: str, kind: str = "validating", versions: tuple[str, ...] = ("v2",), **changes: Any
    ) -> Iterator[list[Manifest]]:
        """While it lasts, a webhook is asked about these resources; what it is asked."""
        rules = [
            {"apiGroups": [GROUP], "apiVersions": [version], "resources": list(resources), "operations": ["*"]} for version in versions
        ]
        probe = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
        path = f"{CONFIGURATIONS}/{kind}webhookconfigurations"
        only = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}}
        entries = [self._entry("asked", rules, **only, **changes), self._entry("probe", [probe], **only)]
        self._api.post(path, {"metadata": {"name": "gauges"}, "webhooks": entries}).ok()
        eventually_blocking(self._is_asked, "the webhook is asked")
        self._webhooks.asked.clear()
        try:
            yield self._webhooks.asked
        finally:
            self._api.delete(f"{path}/gauges")
            eventually_blocking(lambda: not self._is_asked(), "the webhook is asked no more")
            self._webhooks.answer = lambda request: {"allowed": True}

    def _entry(self, name: str, rules: list[Manifest], **changes: Any) -> Manifest:
        return {
            "name": f"{name}.{GROUP}",
            "clientConfig": self._webhooks.client(f"/{name}"),
            "rules": rules,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **changes,
        }

    def _is_asked(self) -> bool:
        before = self._webhooks.probed
        self._api.post(f"/api/v1/namespaces/{self._namespace}/configmaps", {"metadata": {"name": "probe"}}, dryRun="All").ok()
        return self._webhooks.probed > before

    def answers(self, answer: Manifest) -> None:
        self._webhooks.answer = lambda request: answer

    def patches(self, *operations: Manifest) -> None:
        self.answers({"allowed": True, "patchType": "JSONPatch", "patch": b64encode(json.dumps(operations).encode()).decode()})


@pytest.fixture
def asked(api: Api, webhooks: Webhooks, namespace: str) -> Asked:
    return Asked(api, webhooks, namespace)


@pytest.fixture
def gauges(namespace: str) -> Callable[..., str]:
    def path(version: str, name: str = "", subresource: str = "") -> str:
        return "/".join(filter(None, (f"/apis/{GROUP}/{version}/namespaces/{namespace}/{PLURAL}", name, subresource)))

    return path


def gauge(version: str, name: str, **spec: Any) -> Manifest:
    return {"apiVersion": f"{GROUP}/{version}", "kind": KIND, "metadata": {"name": name}, "spec": {"replicas": 1, **spec}}


def kind_of(version: str) -> Manifest:
    return {"group": GROUP, "version": version, "kind": KIND}


def resource_of(version: str) -> Manifest:
    return {"group": GROUP, "version": version, "resource": PLURAL}


def test_an_object_is_shown_in_the_version_that_a_rule_names(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    with asked.about(PLURAL) as seen:
        api.post(gauges("v1"), gauge("v1", unique, size=1)).ok()
        api.patch(gauges("v1", unique), {"spec": {"size": 2}}, MERGE).ok()
        api.delete(gauges("v1", unique)).ok()
    assert [each["operation"] for each in seen] == ["CREATE", "UPDATE", "DELETE"]
    widths = [[(each[part] or {"spec": {}})["spec"].get("width") for part in ("oldObject", "object")] for each in seen]
    assert widths == [[None, 1], [1, 2], [2, None]]
    for each in seen:
        assert (each["kind"], each["resource"]) == (kind_of("v2"), resource_of("v2"))
        assert (each["requestKind"], each["requestResource"]) == (kind_of("v1"), resource_of("v1"))


def test_what_a_webhook_changes_in_another_version_is_converted_back(
    api: Api, asked: Asked, gauges: Callable[..., str], unique: str
) -> None:
    asked.patches({"op": "replace", "path": "/spec/width", "value": 7}, {"op": "add", "path": "/spec/unit", "value": "mm"})
    with asked.about(PLURAL, kind="mutating"):
        made = api.post(gauges("v1"), gauge("v1", unique, size=1)).ok()
    assert (made["apiVersion"], made["spec"]) == (f"{GROUP}/v1", {"replicas": 1, "size": 7, "unit": "mm"})
    assert api.get(gauges("v1", unique)).ok()["spec"]["size"] == 7


def test_a_refusal_in_another_version_refuses(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    asked.answers({"allowed": False, "status": {"message": "too wide", "code": 422, "reason": "Invalid"}})
    with asked.about(PLURAL):
        answer = api.post(gauges("v1"), gauge("v1", unique, size=1))
    assert answer.summary == (422, "Invalid", f'admission webhook "asked.{GROUP}" denied the request: too wide')


def test_with_the_policy_exact_other_versions_are_not_shown(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    with asked.about(PLURAL, matchPolicy="Exact") as seen:
        api.post(gauges("v1"), gauge("v1", unique, size=1)).ok()
        api.patch(gauges("v2", unique), {"spec": {"width": 2}}, MERGE).ok()
    assert [each["object"]["apiVersion"] for each in seen] == [f"{GROUP}/v2"]


def test_the_version_of_the_request_comes_before_others(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    with asked.about(PLURAL, versions=("v2", "v1")) as seen:
        api.post(gauges("v1"), gauge("v1", unique, size=1)).ok()
    assert [each["object"]["apiVersion"] for each in seen] == [f"{GROUP}/v1"]


def test_a_status_is_shown_in_the_version_that_a_rule_names(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    api.post(gauges("v1"), gauge("v1", unique, size=3)).ok()
    with asked.about(f"{PLURAL}/status") as seen:
        api.patch(gauges("v1", unique, "status"), {"status": {"replicas": 1}}, MERGE).ok()
    (review,) = seen
    assert (review["subResource"], review["kind"]) == ("status", kind_of("v2"))
    assert (review["object"]["spec"]["width"], review["object"]["status"]) == (3, {"replicas": 1})


def test_a_scale_is_no_business_of_who_judges_objects(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    api.post(gauges("v1"), gauge("v1", unique)).ok()
    with asked.about(PLURAL, versions=("v1", "v2")) as seen:
        api.patch(gauges("v1", unique, "scale"), {"spec": {"replicas": 2}}, MERGE).ok()
    assert seen == []


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_scale_is_shown_as_a_scale(api: Api, asked: Asked, gauges: Callable[..., str], unique: str, version: str) -> None:
    api.post(gauges("v1"), gauge("v1", unique)).ok()
    with asked.about(f"{PLURAL}/scale", versions=(version,)) as seen:
        api.patch(gauges("v1", unique, "scale"), {"spec": {"replicas": 2}}, MERGE).ok()
    (review,) = seen
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (review["operation"], review["subResource"], review["name"]) == ("UPDATE", "scale", unique)
    assert (review["kind"], review["requestKind"], review["resource"]) == (scale, scale, resource_of(version))
    assert [review[part]["spec"] for part in ("oldObject", "object")] == [{"replicas": 1}, {"replicas": 2}]
    assert (review["object"]["apiVersion"], review["object"]["kind"]) == ("autoscaling/v1", "Scale")


def test_what_a_webhook_makes_of_a_scale_is_what_is_scaled_to(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    api.post(gauges("v1"), gauge("v1", unique)).ok()
    asked.patches({"op": "replace", "path": "/spec/replicas", "value": 5})
    with asked.about(f"{PLURAL}/scale", kind="mutating", versions=("v1",)):
        assert api.patch(gauges("v1", unique, "scale"), {"spec": {"replicas": 2}}, MERGE).ok()["spec"] == {"replicas": 5}
    assert api.get(gauges("v1", unique)).ok()["spec"]["replicas"] == 5
