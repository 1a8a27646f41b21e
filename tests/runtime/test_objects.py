"""What a cached object decodes, and when."""

from __future__ import annotations

import msgspec

from slipway.api.cluster.kinds import MACHINE, SECRET
from slipway.runtime.objects import DONE, Object, OwnerReference, Request, Result

MACHINE_JSON = b"""{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","namespace":"default","uid":"u",
"resourceVersion":"7","generation":3,"creationTimestamp":"2026-05-01T12:00:00Z","deletionTimestamp":"2026-05-01T13:00:00Z",
"labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["x/y"],"managedFields":[{"manager":"kubectl"}],
"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineSet","name":"s","uid":"v","controller":true,
"blockOwnerDeletion":true}]},"spec":{"version":"v1.35.4","unknown":{"to":"us"}}}"""


class Spec(msgspec.Struct):
    version: str = ""


class Machine(msgspec.Struct):
    spec: Spec = msgspec.field(default_factory=Spec)


def test_metadata_is_there_at_once() -> None:
    found = Object(MACHINE, MACHINE_JSON)
    metadata = found.metadata
    assert (found.namespace, found.name, found.request) == ("default", "m", Request("default", "m"))
    assert (metadata.uid, metadata.resource_version, metadata.generation) == ("u", "7", 3)
    assert (metadata.creation_timestamp, metadata.deletion_timestamp) == ("2026-05-01T12:00:00Z", "2026-05-01T13:00:00Z")
    assert (metadata.labels, metadata.annotations, metadata.finalizers) == ({"a": "b"}, {"c": "d"}, ["x/y"])
    assert metadata.owner_references == [OwnerReference("cluster.x-k8s.io/v1beta2", "MachineSet", "s", "v", True, True)]


def test_what_is_not_there_is_empty_and_of_one_object_only() -> None:
    first, second = (Object(SECRET, b'{"metadata":{"name":"s","creationTimestamp":null}}') for _ in range(2))
    assert (first.metadata.labels, first.metadata.finalizers, first.metadata.deletion_timestamp) == ({}, [], None)
    assert first.metadata.labels is not second.metadata.labels


def test_the_content_is_the_callers_own_and_knows_its_kind() -> None:
    found = Object(SECRET, b'{"metadata":{"name":"s"},"data":{"a":"Yg=="}}')
    found.content()["data"]["a"] = "changed"
    assert found.content() == {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}}


def test_a_struct_takes_what_it_knows() -> None:
    assert Object(MACHINE, MACHINE_JSON).decode(Machine) == Machine(Spec("v1.35.4"))


def test_a_request_reads_as_namespace_and_name() -> None:
    assert [str(Request("default", "x")), str(Request("", "node"))] == ["default/x", "node"]
    assert Result() == DONE
