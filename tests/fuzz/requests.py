"""Requests to the embedded API server, as whoever reaches its port may write them: an answer, never an exception.

An input is a request as text: the method and the target, headers, an empty line, the body.  Each one meets a server of its own, with
an object of a built-in kind, one of a custom kind with a schema, and nothing outside the process.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import msgspec
from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request

from slipway.embedded import bootstrap
from slipway.embedded.apiextensions import definitions
from slipway.embedded.endpoints.handler import BODY_LIMIT, Handler
from slipway.embedded.registry import metadata
from slipway.embedded.server import Core
from slipway.embedded.storage.store import Store

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["text"],
            "properties": {
                "text": {"type": "string", "pattern": "^(a+)+$", "default": "a"},
                "size": {"x-kubernetes-int-or-string": True},
                "when": {"type": "string", "format": "date-time"},
                "wait": {"type": "string", "format": "duration", "nullable": True},
                "many": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer", "maximum": 9}},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}
_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.fuzz.io", "uid": "d"},
    "spec": {
        "group": "fuzz.io",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _SCHEMA},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
            }
        ],
    },
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}
_OBJECTS: dict[str, dict[str, Any]] = {
    "configmaps": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}},
    "pods": {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "i"}]}},
    "serviceaccounts": {"apiVersion": "v1", "kind": "ServiceAccount"},
    "deployments.apps": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1, "template": {"spec": {}}}},
    "widgets.fuzz.io": {"apiVersion": "fuzz.io/v1", "kind": "Widget", "spec": {"text": "a", "size": 1}},
}
_MAPS, _WIDGETS = "/api/v1/namespaces/default/configmaps", "/apis/fuzz.io/v1/namespaces/default/widgets"
_PODS = "/api/v1/namespaces/default/pods"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_JSON, _MERGE, _STRATEGIC = (f"application/{name}-patch+json" for name in ("json", "merge", "strategic-merge"))
_CONFIG_MAP = b'k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x10\n\x05\n\x01p\x12\x00\x12\x07\n\x01a\x12\x02bc\x1a\x00"\x00'


def _text(line: str, body: object = b"", **headers: str) -> bytes:
    """A request as text; a body that is not bytes is written as JSON."""
    lines = [line, *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()), "", ""]
    return "\n".join(lines).encode() + (body if isinstance(body, bytes) else msgspec.json.encode(body))


_WIDGET = {
    "apiVersion": "fuzz.io/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "resourceVersion": "7"},
    "spec": {"text": "aa", "size": "1", "when": "2026-01-02T03:04:05Z", "wait": "1h", "many": [1, 2], "open": {"x": [None]}},
}
_CONTAINERS = {
    "containers": [{"name": "c", "image": "j"}, {"$patch": "delete", "name": "d"}],
    "$setElementOrder/containers": [{"name": "c"}],
}
_OPERATIONS = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "copy", "from": "/data", "path": "/data/b"}]
_ROLE = {
    "metadata": {"name": "r"},
    "rules": [{"verbs": ["*"], "apiGroups": [""], "resources": ["pods/*"]}],
    "aggregationRule": {"clusterRoleSelectors": [{}]},
}

SEEDS = [
    _text(f"GET {_MAPS}?labelSelector=a+in+(b,c),!d,e>1&fieldSelector=metadata.name%3Da,metadata.namespace!%3Dx&limit=1", Accept="*/*"),
    _text(f"GET {_MAPS}?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Miwic3RhcnQiOiJhIn0&resourceVersion=1"),
    _text(f"GET {_PODS}?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1", Accept=_TABLE),
    _text("GET /openapi/v3/apis/fuzz.io/v1", Accept="application/yaml"),
    _text("GET /apis", Accept=_AGGREGATED, Authorization="Bearer abcdef.0123456789abcdef"),
    _text(f"POST {_MAPS}?dryRun=All&fieldValidation=Strict", {"metadata": {"generateName": "x-"}, "data": {"k": "v"}, "other": 1}),
    _text(f"POST {_MAPS}", b"metadata:\n  name: y\n  labels: {a: b}\ndata:\n  a: |-\n    text\n", Content_Type="application/yaml"),
    _text(f"POST {_MAPS}", _CONFIG_MAP, Content_Type="application/vnd.kubernetes.protobuf"),
    _text(f"PUT {_WIDGETS}/a", _WIDGET),
    _text(f"PATCH {_MAPS}/a", _OPERATIONS, Content_Type=_JSON),
    _text(f"PATCH {_WIDGETS}/a", {"spec": {"text": None, "open": {"a": 1}}, "metadata": {"labels": {"a": "b"}}}, Content_Type=_MERGE),
    _text(f"PATCH {_PODS}/a", {"spec": _CONTAINERS}, Content_Type=_STRATEGIC),
    _text(f"PATCH {_WIDGETS}/a?fieldManager=f&force=true", _WIDGET, Content_Type="application/apply-patch+yaml"),
    _text(f"PATCH {_WIDGETS}/a/scale", {"spec": {"replicas": 3}}, Content_Type=_MERGE),
    _text("PUT /apis/apps/v1/namespaces/default/deployments/a/scale", {"metadata": {"name": "a"}, "spec": {"replicas": 2}}),
    _text(f"DELETE {_MAPS}/a?gracePeriodSeconds=1", {"propagationPolicy": "Foreground", "preconditions": {"uid": "x"}, "dryRun": ["All"]}),
    _text(f"DELETE {_MAPS}?labelSelector=a%3Db&orphanDependents=true"),
    _text("POST /api/v1/namespaces/default/serviceaccounts/a/token", {"spec": {"expirationSeconds": 600, "audiences": ["x"]}}),
    _text(f"POST {_PODS}/a/eviction", {"metadata": {"name": "a"}, "deleteOptions": {"gracePeriodSeconds": 0}}),
    _text(f"POST {_PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}),
    _text("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get"}}}),
    _text("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", _CRD | {"metadata": {"name": "gadgets.fuzz.io"}}),
    _text("POST /apis/rbac.authorization.k8s.io/v1/clusterroles", _ROLE, Impersonate_User="jane", Impersonate_Group="system:masters"),
]
DICTIONARY = [
    *("fieldSelector=", "labelSelector=", "resourceVersion=", "continue=", "metadata.name", "notin", "application/json", "Content-Type: "),
    *('"metadata":', '"managedFields":', '"ownerReferences":', '"finalizers":', '"op":"copy"', '"$patch":"replace"', '"$retainKeys":'),
]


class _Failures(logging.Handler):
    """What the server did not expect: it answers with 500, and says so here."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None and record.exc_info[1] is not None:
            self.found.append(record.exc_info[1])


_failures = _Failures()
_log = logging.getLogger("slipway.embedded.endpoints.handler")
_log.addHandler(_failures)
_log.propagate = False


def fuzz(data: bytes) -> None:
    """Anything but an answer is a finding, and an internal error is none."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.decode("utf-8", "replace").split("\n")
    method, _, target = first.partition(" ")
    if not (method.isascii() and method.isalpha() and method.isupper()) or len(body) > BODY_LIMIT:
        return
    headers = [(name, value.strip()) for name, colon, value in (line.partition(":") for line in lines) if colon and name.isascii()]
    asyncio.run(_send(method, target, headers, body))
    if _failures.found:
        failure = _failures.found[0]
        _failures.found.clear()
        raise failure


async def _send(method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> None:
    core = _server()
    handler = Handler(core, everybody_is_admin=True)
    payload = StreamReader(BaseProtocol(asyncio.get_running_loop()), BODY_LIMIT)
    payload.feed_data(body)
    payload.feed_eof()
    try:
        request = make_mocked_request(method, target, headers=headers, payload=payload, transport=_Transport(), client_max_size=BODY_LIMIT)
    except ValueError:
        # aiohttp has refused it before the server sees it.
        return
    task: asyncio.Task[web.StreamResponse] = asyncio.create_task(handler(request))
    while not task.done():
        # A watch waits for changes until it is told to end.
        handler.end_watches()
        await asyncio.sleep(0)
    task.result()
    await core.caller.close()


class _Transport(Mock):
    """A connection without a certificate."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        del name
        return default

    def is_closing(self) -> bool:
        return False


def _server() -> Core:
    store = Store()
    bootstrap.populate(store, lambda: NOW)
    store.put(definitions.DEFINITIONS, msgspec.json.decode(msgspec.json.encode(_CRD)), 0)
    for bucket, manifest in _OBJECTS.items():
        given = {"name": "a", "namespace": "default"}
        metadata.initialise(given, NOW)
        store.put(bucket, {**manifest, "metadata": given}, 0)
    core = Core(store, lambda: NOW, tokens={}, version="v1.35.4", bookmark_seconds=60, ca=b"")
    core.definitions.load()
    return core
