"""What every Cluster API type stands on: the base class, the markers that become the CRD's schema, and the types that groups share.

Types mirror Go's: a struct that Go holds by value is never None here, but empty and false (``if spec.init_configuration:``
is what Go calls IsDefined); a pointer in Go is ``| None``.  Constraints are for the API server: they are written to the
schema and not checked when decoding, so that a controller can read every object that the server has taken in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from slipway.api.machinery.objects import Manifest, Object
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of, pattern, schema

T = TypeVar("T", bound="Type")

# Attribute, name on the wire, default, and whether it is printed even then.
_plans: dict[type[Object], list[tuple[str, str, Any, bool]]] = {}

# What is there has something in it.
NOT_EMPTY: Mapping[str, Any] = {"minProperties": 1}
Int32 = Annotated[int, schema(format="int32")]
Int64 = Annotated[int, schema(format="int64")]
Time = Annotated[str, schema(format="date-time")]
Bytes = Annotated[str, schema(format="byte")]
Text256 = Annotated[str, length(1, 256)]
Text512 = Annotated[str, length(1, 512)]
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
CONDITION_TYPE = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
# The server knows the schema of metadata itself.
ObjectMetadata = Annotated[dict[str, Any], msgspec.Meta(extra={"schema": {"type": "object"}})]


class Type(Object, omit_defaults=True):
    """A value of the Cluster API.  ``openapi`` is what the schema says of the object as a whole."""

    openapi: ClassVar[Mapping[str, Any]] = {}

    def __bool__(self) -> bool:
        return self != type(self)()


def manifest(value: Object) -> Manifest:
    """The object as plain data, without what is empty, as Go's ``omitempty,omitzero`` has it."""
    out: Manifest = {}
    for name, wire, default, always in _plan(type(value)):
        item = getattr(value, name)
        if always or item != default:
            out[wire] = _plain(item)
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, Object):
        return manifest(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _plan(cls: type[Object]) -> list[tuple[str, str, Any, bool]]:
    plan = _plans.get(cls)
    if plan is None:
        plan = _plans[cls] = [
            (
                field.name,
                field.encode_name,
                field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default,
                field.name in cls.always_printed,
            )
            for field in msgspec.structs.fields(cls)
        ]
    return plan


def decode(content: object, into: type[T]) -> T:
    """A manifest as a type; what the type does not have is ignored."""
    return msgspec.convert(content, into)


class ObjectMeta(Type):
    """The metadata that a template gives to the objects made from it."""

    openapi = NOT_EMPTY

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Labels of the objects that are made; they organise and select objects."""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    """Annotations of the objects that are made, for tools that keep data of their own."""


class TemplateMeta(ObjectMeta):
    """The metadata that a template gives to the objects made from it; in v1beta1 it may be empty."""

    openapi: ClassVar[Mapping[str, Any]] = {}


class Condition(Type):
    """One aspect of the state of an object, as metav1.Condition."""

    always_printed = frozenset({"type", "status", "last_transition_time", "reason", "message"})

    type: Annotated[str, length(None, 316), pattern(CONDITION_TYPE), REQUIRED] = ""
    """The name of the condition, in CamelCase or as domain/CamelCase."""
    status: Annotated[str, one_of("True", "False", "Unknown"), REQUIRED] = ""
    """True, False or Unknown."""
    observed_generation: Annotated[Int64, at_least(0)] = 0
    """The metadata.generation that the condition was set for; an older one than the object's means that it is out of date."""
    last_transition_time: Annotated[Time, REQUIRED] = ""
    """When the status last changed."""
    reason: Annotated[str, length(1, 1024), pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"), REQUIRED] = ""
    """A word in CamelCase for why the condition last changed."""
    message: Annotated[str, length(None, 32768), REQUIRED] = ""
    """A sentence for people about the last change; it may be empty."""


class DeprecatedCondition(Type):
    """A condition in the form of v1beta1, kept for those who still read it."""

    always_printed = frozenset({"type", "status", "last_transition_time"})

    type: Annotated[str, length(1, 256), REQUIRED] = ""
    """The name of the condition, in CamelCase."""
    status: Annotated[str, REQUIRED] = ""
    """True, False or Unknown."""
    severity: Annotated[str, length(None, 32)] = ""
    """How grave a False is: Error, Warning or Info; empty for True."""
    last_transition_time: Annotated[Time, REQUIRED] = ""
    """When the status last changed."""
    reason: Annotated[str, length(1, 256)] = ""
    """A word in CamelCase for why the condition last changed."""
    message: Annotated[str, length(1, 10240)] = ""
    """A sentence for people about the last change."""


class ContractVersionedObjectReference(Type):
    """A reference to an object of a provider, in the reader's namespace; the version follows from the contract label of its CRD."""

    kind: Annotated[str, length(1, 63), pattern(r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"), REQUIRED] = ""
    """The kind of the object."""
    name: Annotated[str, length(1, 253), pattern(DNS_SUBDOMAIN), REQUIRED] = ""
    """The name of the object."""
    api_group: Annotated[str, length(1, 253), pattern(DNS_SUBDOMAIN), REQUIRED] = ""
    """The API group of the object, without a version."""


class ObjectReference(Type):
    """A reference with its version, as core v1 has it."""

    openapi: ClassVar[Mapping[str, Any]] = {"x-kubernetes-map-type": "atomic"}

    api_version: str = ""
    """The group and version of the object."""
    kind: str = ""
    """The kind of the object."""
    namespace: str = ""
    """The namespace of the object."""
    name: str = ""
    """The name of the object."""
    uid: str = ""
    """The object's identity, which no other object ever has."""
    resource_version: str = ""
    """The version of the object's content that is meant."""
    field_path: str = ""
    """The part of the object that is meant, where it is not the whole."""


class LabelSelectorRequirement(Type):
    """What a label must be."""

    always_printed = frozenset({"key", "operator"})

    key: Annotated[str, REQUIRED] = ""
    """The key of the label."""
    operator: Annotated[str, REQUIRED] = ""
    """In, NotIn, Exists or DoesNotExist."""
    values: Annotated[list[str], items(None, None, atomic=True)] = msgspec.field(default_factory=list)
    """The values that In and NotIn mean; the others have none."""


class LabelSelector(Type):
    """Objects by their labels, as metav1.LabelSelector: all of it must fit, and what is empty fits every object."""

    openapi: ClassVar[Mapping[str, Any]] = {"x-kubernetes-map-type": "atomic"}

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Labels that the object has."""
    match_expressions: Annotated[list[LabelSelectorRequirement], items(None, None, atomic=True)] = msgspec.field(default_factory=list)
    """What other labels must be."""


class StatusVersion(Type):
    """A Kubernetes version, and how many Machines have it."""

    version: Annotated[Text256, REQUIRED] = ""
    """The Kubernetes version."""
    replicas: Annotated[Int32, at_least(1)] = 0
    """How many Machines have it."""


CONDITIONS = items(None, 32, keys=("type",))
