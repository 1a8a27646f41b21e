"""Objects of one kind, kept as what they say in other words than another one of that kind.

Ten thousand Machines say nearly the same: against one of them the others take a tenth of their bytes.  To pack one takes 25 µs and to
unpack it 10 µs (4 KiB of JSON), which is as much as to decode it.  What changes all the time is left as it is until it has come to rest.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from slipway.runtime.cache.store import Store
    from slipway.runtime.objects import Object

# What is smaller is not worth it; what is larger holds the others up, and may be a server's that is not ours.
_LEAST, _MOST = 256, 64 << 10
# How far back words are found: an object of this size against another one.
_WINDOW = 14
_MEMORY = 5
_FASTEST = 1
_LONGEST = (1 << _WINDOW) // 2
# An object that takes more than this part of its bytes is unlike the one that was chosen: most have grown since, or it was another sort.
_PART = 4
# So many are packed before another one is chosen: each is kept for as long as there is one that was packed with it.
_PATIENCE = 64
# In seconds: what has not changed for so long is packed.
_REST = 10.0
# So many are packed before others get on: a few milliseconds.
_AT_ONCE = 200


class Words:
    """The object that others are told by."""

    __slots__ = ("_text",)

    def __init__(self, text: bytes) -> None:
        self._text = text[-_LONGEST:]

    def pack(self, raw: bytes) -> bytes:
        packing = zlib.compressobj(_FASTEST, zlib.DEFLATED, -_WINDOW, _MEMORY, zdict=self._text)
        return packing.compress(raw) + packing.flush()

    def unpack(self, packed: bytes) -> bytes:
        return zlib.decompressobj(-_WINDOW, zdict=self._text).decompress(packed)


class Packed(NamedTuple):
    content: bytes
    words: Words | None
    """None where the content is the object itself."""


class Packer:
    """Packs objects of one kind, and chooses the one that the next are told by."""

    def __init__(self) -> None:
        self._words: Words | None = None
        self._since = 0

    def pack(self, raw: bytes) -> Packed:
        if not _LEAST <= len(raw) <= _MOST:
            return Packed(raw, None)
        if self._words is None:
            self._words = Words(raw)
        packed = self._words.pack(raw)
        self._since += 1
        if len(packed) * _PART > len(raw) and self._since >= _PATIENCE:
            self._words, self._since = Words(raw), 0
            packed = self._words.pack(raw)
        return Packed(packed, self._words) if len(packed) < len(raw) else Packed(raw, None)


class Resting:
    """Packs the objects of a store, each when it has come to rest."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._packer = Packer()
        # When each is to be packed, the first to come first; not the objects, of which a busy one has many states until then.
        self._due: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def pack(self, found: Object) -> None:
        """At once: a list has thousands that have been at rest for long."""
        found.pack(self._packer)

    def changed(self, new: Object) -> None:
        loop = asyncio.get_running_loop()
        place = new.namespace, new.name
        self._due[place] = loop.time() + _REST
        self._due.move_to_end(place)
        if self._timer is None:
            self._timer = loop.call_later(_REST, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now, packed = loop.time(), 0
        while (first := next(iter(self._due), None)) is not None and self._due[first] <= now and packed < _AT_ONCE:
            del self._due[first]
            namespace, name = first
            found = self._store.get(name, namespace)
            if found is not None:
                self.pack(found)
                packed += 1
        self._timer = None if first is None else loop.call_later(max(self._due[first] - now, 0.0), self._look)
