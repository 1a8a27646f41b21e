"""What a cache holds and what a reconciler is asked and answers.

A cached object has its metadata decoded; the rest stays the bytes that the server sent until somebody asks.  That is what makes
an informer fast and small: most events are filtered by metadata alone.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest

T = TypeVar("T")


class OwnerReference(msgspec.Struct, gc=False, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Metadata(msgspec.Struct, gc=False, rename="camel"):
    """The part of metav1.ObjectMeta that deciding what to do needs; times are RFC 3339 texts as the server wrote them."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class _Shell(msgspec.Struct, gc=False):
    metadata: Metadata


_decode_shell = msgspec.json.Decoder(_Shell).decode
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}
_decode_any = msgspec.json.Decoder().decode


_MANAGED_FIELDS = "managedFields"
_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def without_managed_fields(raw: msgspec.Raw | bytes) -> bytes:
    """An object without the record of who wrote what: half of it, of which a cache has no use.  In memory of its own."""
    content = bytes(raw)
    if _MANAGED_FIELDS.encode() not in content:
        return content
    parts = _decode_parts(content)
    # What has no metadata is refused where it is decoded.
    metadata = _decode_parts(parts.get("metadata", b"{}"))
    if metadata.pop(_MANAGED_FIELDS, None) is None:
        return content
    return msgspec.json.encode({**parts, "metadata": metadata})


class Object:
    """One object of the API as the server sent it.  It is shared by everybody who reads the cache: nobody changes it."""

    __slots__ = ("_known", "kind", "metadata", "raw")

    def __init__(self, kind: Kind, raw: bytes) -> None:
        self.kind = kind
        self.raw = raw
        self._known: dict[Callable[[Object], Any], Any] | None = None
        self.metadata: Metadata = _decode_shell(raw).metadata

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def request(self) -> Request:
        return Request(self.metadata.namespace, self.metadata.name)

    def content(self) -> Manifest:
        """The whole object, decoded anew each time: the caller may change it.

        Items of a list come without their kind, and metadata alone with another one: the object's own is put there.
        """
        content: Manifest = _decode_any(self.raw)
        content["apiVersion"], content["kind"] = self.kind.api_version, self.kind.kind
        return content

    def decode(self, type: type[T]) -> T:  # noqa: A002
        """The object as a msgspec struct; fields that the struct does not have are ignored."""
        decoder = _decoders.get(type)
        if decoder is None:
            decoder = _decoders[type] = msgspec.json.Decoder(type)
        decoded: T = decoder.decode(self.raw)
        return decoded

    def known(self, of: Callable[[Object], T]) -> T:
        """What a function says of this state of the object, which it is asked once: for what many ask, and what is small.

        It is shared by all who ask, and gone with the object.
        """
        if self._known is None:
            self._known = {}
        try:
            found: T = self._known[of]
        except KeyError:
            found = self._known[of] = of(self)
        return found

    def __repr__(self) -> str:
        return f"<{self.kind.kind} {self.metadata.namespace}/{self.metadata.name} at {self.metadata.resource_version}>"


class Outline(Object):
    """What is kept of an object that another process works on: as much as those need who only ask whether and whose it is.

    It has no resource version, so that the API server takes nothing that somebody makes of it.
    """

    __slots__ = ()


class Request(NamedTuple):
    """Which object is to be reconciled; the namespace is empty for objects that are in none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Result(NamedTuple):
    """``requeue_after``: in how many seconds to look again; 0: not before the next event."""

    requeue_after: float = 0.0


DONE = Result()


def timestamp(moment: datetime) -> str:
    """RFC 3339 in whole seconds, as the API server keeps it: a finer time would differ after the first read."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
