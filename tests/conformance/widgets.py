"""The custom resource of the suite: its CustomResourceDefinition and its objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conformance.api import Api, Manifest

GROUP = "conformance.test.slipway.io"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRING = {"type": "string"}

SPEC_FIELDS: Manifest = {
    "text": {**STRING, "minLength": 1, "maxLength": 10},
    "version": {**STRING, "pattern": "^v[0-9]+$"},
    "mode": {**STRING, "enum": ["Fast", "Safe"]},
    "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 100, "default": 1},
    "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
    "when": {**STRING, "format": "date-time"},
    "amount": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "paused": {"type": "boolean"},
    "maybe": {**STRING, "nullable": True},
    "nested": {
        "type": "object",
        "default": {},
        "properties": {"a": {**STRING, "default": "x"}, "b": STRING},
    },
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "labels": {"type": "object", "additionalProperties": STRING, "maxProperties": 3},
    "list": {"type": "array", "items": STRING, "maxItems": 3},
    "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
    "parts": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": STRING, "value": STRING, "other": STRING}},
    },
    "reference": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"kind": STRING, "name": STRING}},
    "template": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    "choice": {
        "type": "object",
        "properties": {"a": STRING, "b": STRING},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
}
CONDITIONS: Manifest = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status"],
        "properties": {"type": STRING, "status": {**STRING, "enum": ["True", "False", "Unknown"]}, "reason": STRING},
    },
}
SCHEMA: Manifest = {
    "type": "object",
    "properties": {
        "apiVersion": STRING,
        "kind": STRING,
        "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": SPEC_FIELDS},
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "selector": STRING, "ready": {"type": "boolean"}, "conditions": CONDITIONS},
        },
    },
}


def definition(plural: str = "widgets", kind: str = "Widget", **changes: Any) -> Manifest:
    """A CustomResourceDefinition of the suite's group."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        ],
        **changes,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": kind.lower(),
                "kind": kind,
                "listKind": f"{kind}List",
                "shortNames": [f"{plural[:3]}x"],
            },
            "versions": [version],
        },
    }


class Widgets:
    """The resource, installed."""

    api_version = f"{GROUP}/v1"

    def __init__(self, api: Api, plural: str = "widgets", kind: str = "Widget") -> None:
        self.api, self.plural, self.kind = api, plural, kind

    @classmethod
    @contextmanager
    def installed(cls, api: Api, plural: str = "widgets", kind: str = "Widget", **changes: Any) -> Iterator[Widgets]:
        name = f"{plural}.{GROUP}"
        api.delete(f"{DEFINITIONS}/{name}")
        api.gone(f"{DEFINITIONS}/{name}")
        api.post(DEFINITIONS, definition(plural, kind, **changes)).ok()
        made = cls(api, plural, kind)
        api.eventually(f"/apis/{GROUP}/v1/{plural}", lambda answer: answer.code == 200)
        yield made
        api.delete(f"{DEFINITIONS}/{name}")

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        parts = [f"/apis/{GROUP}/v1/namespaces/{namespace}/{self.plural}", name, subresource]
        return "/".join(part for part in parts if part)

    def manifest(self, name: str = "", spec: Any = None, **metadata: Any) -> Manifest:
        named = {"name": name} if name else {}
        made: Manifest = {"apiVersion": self.api_version, "kind": self.kind, "metadata": {**named, **metadata}}
        return made if spec is None else {**made, "spec": spec}

    def create(self, namespace: str, name: str, spec: Any = None, **metadata: Any) -> Manifest:
        made: Manifest = self.api.post(self.path(namespace), self.manifest(name, spec, **metadata)).ok()
        return made
