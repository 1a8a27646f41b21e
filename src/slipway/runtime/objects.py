"""What a cache holds and what a reconciler is asked and answers.

A cached object has what its metadata says of itself decoded; the rest stays the bytes that the server sent, packed, until somebody asks.
That is what makes an informer fast and small: most events are filtered by metadata alone.
"""

from __future__ import annotations

import sys
from datetime import UTC
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.cache.packing import Packer, Words

T = TypeVar("T")


class OwnerReference(msgspec.Struct, gc=False, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


# As dictionaries and lists these are more than half of what a small object takes: they stay bytes, and those that were asked for last are
# kept.  Most labels, finalizers and owners are those of many objects.
_KEPT = 2048
_map = lru_cache(_KEPT)(msgspec.json.Decoder(dict[str, str]).decode)
_list = lru_cache(_KEPT)(msgspec.json.Decoder(list[str]).decode)
_owners = lru_cache(_KEPT)(msgspec.json.Decoder(list[OwnerReference]).decode)
# In memory of its own: what the decoder gives is a part of the whole object, and would keep that.
_own = lru_cache(_KEPT)(msgspec.Raw)
_EMPTY_MAP, _EMPTY_LIST = msgspec.Raw(b"{}"), msgspec.Raw(b"[]")


class Metadata(msgspec.Struct, gc=False, rename="camel"):
    """The part of metav1.ObjectMeta that deciding what to do needs; times are RFC 3339 texts as the server wrote them.

    Labels and the like are shared with other objects that have the same.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    _labels: msgspec.Raw = msgspec.field(default=_EMPTY_MAP, name="labels")
    _annotations: msgspec.Raw = msgspec.field(default=_EMPTY_MAP, name="annotations")
    _finalizers: msgspec.Raw = msgspec.field(default=_EMPTY_LIST, name="finalizers")
    _owner_references: msgspec.Raw = msgspec.field(default=_EMPTY_LIST, name="ownerReferences")

    def __post_init__(self) -> None:
        # What belongs together has one name, and much is made in the same second.
        self.namespace, self.name = sys.intern(self.namespace), sys.intern(self.name)
        if self.creation_timestamp is not None:
            self.creation_timestamp = sys.intern(self.creation_timestamp)
        self._labels, self._annotations = _own(bytes(self._labels)), _own(bytes(self._annotations))
        self._finalizers, self._owner_references = _own(bytes(self._finalizers)), _own(bytes(self._owner_references))
        # What is not as it should be is refused here, and not where somebody asks for it.
        _ = self.labels, self.annotations, self.finalizers, self.owner_references

    @property
    def labels(self) -> dict[str, str]:
        return _map(bytes(self._labels))

    @property
    def annotations(self) -> dict[str, str]:
        return _map(bytes(self._annotations))

    @property
    def finalizers(self) -> list[str]:
        return _list(bytes(self._finalizers))

    @property
    def owner_references(self) -> list[OwnerReference]:
        return _owners(bytes(self._owner_references))


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
    return fitted(msgspec.json.encode({**parts, "metadata": metadata}))


def fitted(encoded: bytes) -> bytes:
    """A copy of what msgspec encoded, to be kept: the original has the memory of a buffer that grew by halves."""
    return bytes(memoryview(encoded))


class Object:
    """One object of the API as the server sent it.  It is shared by everybody who reads the cache: nobody changes it."""

    __slots__ = ("_content", "_known", "_words", "kind", "metadata")

    def __init__(self, kind: Kind, raw: bytes) -> None:
        self.kind = kind
        self.metadata: Metadata = _decode_shell(raw).metadata
        self._content = raw
        self._words: Words | None = None
        # Functions and what they said, in turn: there are one or two, and a dictionary would take more than what most of them say.
        self._known: tuple[Any, ...] = ()

    @property
    def raw(self) -> bytes:
        """All of it, as JSON."""
        return self._content if self._words is None else self._words.unpack(self._content)

    def pack(self, packer: Packer) -> None:
        """Have it take less memory, and who reads it a moment longer."""
        if self._words is None:
            self._content, self._words = packer.pack(self._content)

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
        known = self._known
        for index in range(0, len(known), 2):
            if known[index] == of:
                found: T = known[index + 1]
                return found
        said = of(self)
        self._known += (of, said)
        return said

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
    """``requeue_after``: in how many seconds to look again; 0: not before the next event.

    ``pause``: for how many seconds, from the begin of this look on, it is not looked at again, whatever happens: for what is large.  It
    counts where it is longer than the interval of the controller.
    """

    requeue_after: float = 0.0
    pause: float = 0.0


DONE = Result()


def timestamp(moment: datetime) -> str:
    """RFC 3339 in whole seconds, as the API server keeps it: a finer time would differ after the first read."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
