"""Bodies in protobuf, written here by Google's own library from the declarations of Kubernetes' generated.proto."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from slipway.embedded.endpoints.protobuf import ProtobufError, decode

Kind = descriptor_pb2.FieldDescriptorProto
STRING, BYTES, BOOL, MESSAGE = Kind.TYPE_STRING, Kind.TYPE_BYTES, Kind.TYPE_BOOL, Kind.TYPE_MESSAGE
INT32, INT64 = Kind.TYPE_INT32, Kind.TYPE_INT64
PACKAGE = "conformance"
# Message: field number, name, type; the type of a message or of a repeated field is its name or "[]" before it.
MESSAGES: dict[str, list[tuple[int, str, Any]]] = {
    "TypeMeta": [(1, "apiVersion", STRING), (2, "kind", STRING)],
    "Unknown": [(1, "typeMeta", "TypeMeta"), (2, "raw", BYTES)],
    "Time": [(1, "seconds", INT64), (2, "nanos", INT32)],
    "ObjectMeta": [(1, "name", STRING), (3, "namespace", STRING), (7, "generation", INT64), (8, "creationTimestamp", "Time")],
    "DataEntry": [(1, "key", STRING), (2, "value", BYTES)],
    "Secret": [(1, "metadata", "ObjectMeta"), (2, "data", "[]DataEntry"), (3, "type", STRING), (5, "immutable", BOOL)],
    "IntOrString": [(1, "type", INT64), (2, "intVal", INT32), (3, "strVal", STRING)],
    "RollingUpdate": [(1, "maxUnavailable", "IntOrString"), (2, "maxSurge", "IntOrString")],
    "Strategy": [(1, "type", STRING), (2, "rollingUpdate", "RollingUpdate")],
    "DeploymentSpec": [(1, "replicas", INT32), (4, "strategy", "Strategy")],
    "Deployment": [(1, "metadata", "ObjectMeta"), (2, "spec", "DeploymentSpec")],
    "MicroTime": [(1, "seconds", INT64), (2, "nanos", INT32)],
    "LeaseSpec": [(1, "holderIdentity", STRING), (2, "leaseDurationSeconds", INT32), (4, "renewTime", "MicroTime")],
    "Lease": [(1, "metadata", "ObjectMeta"), (2, "spec", "LeaseSpec")],
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="conformance.proto", package=PACKAGE, syntax="proto2")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, type_ in fields:
            repeated = isinstance(type_, str) and type_.startswith("[]")
            added = message.field.add(name=field, number=number, label=Kind.LABEL_REPEATED if repeated else Kind.LABEL_OPTIONAL)
            if isinstance(type_, str):
                added.type, added.type_name = MESSAGE, f".{PACKAGE}.{type_.removeprefix('[]')}"
            else:
                added.type = type_
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


CLASSES = _classes()


def body(api_version: str, kind: str, **fields: Any) -> bytes:
    wrapped = CLASSES["Unknown"](
        typeMeta=CLASSES["TypeMeta"](apiVersion=api_version, kind=kind), raw=CLASSES[kind](**fields).SerializeToString()
    )
    written: bytes = b"k8s\x00" + wrapped.SerializeToString()
    return written


def test_zeros_that_nobody_set_are_left_out_and_pointers_kept() -> None:
    metadata = {"name": "s", "namespace": "", "generation": 0, "creationTimestamp": {}}
    sent = body("v1", "Secret", metadata=metadata, data=[{"key": "a", "value": b"\x00\xff"}], type="", immutable=False)
    assert decode(sent) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"a": "AP8="},
        "immutable": False,
    }


def test_numbers_or_texts_and_pointers_to_zero() -> None:
    rolling = {"maxUnavailable": {"type": 0, "intVal": 0}, "maxSurge": {"type": 1, "strVal": "25%"}}
    sent = body("apps/v1", "Deployment", metadata={"name": "d"}, spec={"replicas": 0, "strategy": {"rollingUpdate": rolling}})
    assert decode(sent)["spec"] == {"replicas": 0, "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "25%"}}}


def test_times_and_negative_numbers() -> None:
    spec = {"holderIdentity": "h", "leaseDurationSeconds": -1, "renewTime": {"seconds": 1767323045, "nanos": 123456000}}
    sent = body("coordination.k8s.io/v1", "Lease", metadata={"name": "l", "creationTimestamp": {"seconds": 1767323045}}, spec=spec)
    decoded = decode(sent)
    assert decoded["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert decoded["spec"] == {"holderIdentity": "h", "leaseDurationSeconds": -1, "renewTime": "2026-01-02T03:04:05.123456Z"}


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"{}", "does not appear to be a protobuf message"),
        (body("v1", "Secret", type="x")[:-1], "unexpected EOF"),
        (b"k8s\x00\x0a\x0b\x0a\x02v1\x12\x05Never", 'no kind "Never" is registered for version "v1"'),
    ],
)
def test_what_cannot_be_read_is_refused(sent: bytes, text: str) -> None:
    with pytest.raises(ProtobufError, match=text):
        decode(sent)
