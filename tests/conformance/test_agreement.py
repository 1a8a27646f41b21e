"""The embedded server and the real one, given the same random writes, answer alike: objects, owners of fields, refusals."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from conformance.api import Answer, Api
from conformance.conftest import embedded
from conformance.widgets import Widgets

SEQUENCES = 40


class Write:
    """One write by one manager; the same for every server."""

    def __init__(self, dice: random.Random, name: str, namespace: str) -> None:
        self.name, self.namespace = name, namespace
        self.way = dice.choices(["apply", "patch", "put", "apply status", "patch status"], [60, 15, 10, 8, 7])[0]
        self.manager = dice.choice(["one", "two", "three"])
        self.force = dice.random() < 0.4
        self.spec = _spec(dice)
        self.metadata = dice.choice([{}, {"labels": {"l": dice.choice("12")}}, {"annotations": {"a": dice.choice("12")}}])
        types = sorted(set(self.spec.get("set", [])))
        self.status = {"ready": self.force, "conditions": [{"type": type_, "status": "True"} for type_ in types]}

    def send(self, widgets: Widgets) -> Answer:
        api, path = widgets.api, widgets.path(self.namespace, self.name)
        manifest = widgets.manifest(self.name, self.spec, **self.metadata)
        if self.way == "apply":
            return api.apply(path, manifest, self.manager, force=self.force)
        if self.way == "patch":
            change = {"spec": self.spec, **({"metadata": self.metadata} if self.metadata else {})}
            return api.patch(path, change, fieldManager=self.manager)
        if self.way == "put":
            live = api.get(path)
            if live.code == 404:
                return api.post(widgets.path(self.namespace), manifest, fieldManager=self.manager)
            return api.put(path, {**live.ok(), "spec": self.spec}, fieldManager=self.manager)
        status = {**widgets.manifest(self.name), "status": self.status}
        if self.way == "apply status":
            return api.apply(f"{path}/status", status, self.manager, force=self.force)
        return api.patch(f"{path}/status", {"status": self.status}, fieldManager=self.manager)


def _spec(dice: random.Random) -> dict[str, Any]:
    """Fields of every type, each there only sometimes."""
    part = {"value": dice.choice("12"), "other": dice.choice("12")}
    fields: dict[str, Any] = {
        "text": dice.choice("abc"),
        "mode": dice.choice(["Fast", "Safe"]),
        "labels": {key: dice.choice("12") for key in dice.sample("xyz", dice.randint(0, 3))},
        "list": [dice.choice("pq") for _ in range(dice.randint(0, 3))],
        "set": dice.sample("pqrs", dice.randint(0, 4)),
        "parts": [
            {"name": name, **{key: part[key] for key in part if dice.random() < 0.5}} for name in dice.sample("abcd", dice.randint(0, 3))
        ],
        "reference": {key: dice.choice("12") for key in dice.sample(["kind", "name"], dice.randint(0, 2))},
        "free": dice.choice([{"q": {"w": 1}}, {"q": {"e": [1]}}, {}, {"q": 2}]),
        "nested": dice.choice([{"a": "y"}, {"b": "1"}, {}, {"a": "x", "b": "2"}]),
        "replicas": dice.choice([0, 1, 2]),
        "maybe": dice.choice([None, "m"]),
    }
    return {name: value for name, value in fields.items() if dice.random() < 0.35}


def _said(answer: Answer) -> Any:
    """An answer without times, uids and versions; the real server lists causes in no order."""
    body = answer.body
    if body["kind"] == "Status":
        causes = sorted(json.dumps(cause) for cause in body.get("details", {}).get("causes", []))
        return answer.code, body.get("reason"), body["message"] if len(causes) < 2 else "", causes
    metadata = body["metadata"]
    owners = {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"] for entry in metadata["managedFields"]
    }
    kept = {name: metadata.get(name) for name in ("labels", "annotations", "generation")}
    return answer.code, body.get("spec"), body.get("status"), kept, owners


def test_random_writes_have_the_same_effect(request: pytest.FixtureRequest, api: Api, widgets: Widgets, namespace: str) -> None:
    if "real" not in request.node.name:
        pytest.skip("the embedded server is compared with the real one, where that is there")
    with embedded() as server:
        ours = Api(server.connection())
        ours.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}).ok()
        with Widgets.installed(ours) as our_widgets:
            for seed in range(SEQUENCES):
                dice = random.Random(seed)
                for step in range(dice.randint(3, 9)):
                    write = Write(dice, f"w{seed}", namespace)
                    real, embedded_ = _said(write.send(widgets)), _said(write.send(our_widgets))
                    assert embedded_ == real, (seed, step, vars(write))
