"""Webhooks that are asked, for both servers: a server of them, and a kind in two versions that it converts."""

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

from conformance.api import Api, Manifest
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


@contextmanager
def serving(api: Api, folder: Path) -> Iterator[Webhooks]:
    """The server, and a kind in two versions that it converts."""
    made = Webhooks(folder)
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
    place = f"{DEFINITIONS}/{PLURAL}.{GROUP}"
    api.delete(place)
    api.gone(place)
    api.post(DEFINITIONS, definition).ok()
    for name in ("v1", "v2"):
        api.eventually(f"/apis/{GROUP}/{name}/{PLURAL}", lambda answer: answer.code == 200)
    yield made
    api.delete(place)
    api.gone(place)
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
        entries = [self.entry("asked", rules, **only, **changes), self.entry("probe", [probe], **only)]
        self._api.post(path, {"metadata": {"name": "gauges"}, "webhooks": entries}).ok()
        eventually_blocking(self._is_asked, "the webhook is asked")
        self._webhooks.asked.clear()
        try:
            yield self._webhooks.asked
        finally:
            self._api.delete(f"{path}/gauges")
            eventually_blocking(lambda: not self._is_asked(), "the webhook is asked no more")
            self._webhooks.answer = lambda request: {"allowed": True}

    def entry(self, name: str, rules: list[Manifest], **changes: Any) -> Manifest:
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


def gauge(version: str, name: str, **spec: Any) -> Manifest:
    return {"apiVersion": f"{GROUP}/{version}", "kind": KIND, "metadata": {"name": name}, "spec": {"replicas": 1, **spec}}


def kind_of(version: str) -> Manifest:
    return {"group": GROUP, "version": version, "kind": KIND}


def resource_of(version: str) -> Manifest:
    return {"group": GROUP, "version": version, "resource": PLURAL}
