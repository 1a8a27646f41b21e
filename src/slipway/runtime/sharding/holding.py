"""What this process has of the whole: the shards it keeps objects of, and those of them that it works on.

A shard is kept before it is worked on, and worked on no more before it is let go: what a reconcile reads is all there or none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from slipway.runtime.objects import Outline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object


class Partition(Protocol):
    """Whose every object is.  Nothing but cost depends on it: two that disagree for a moment are kept apart by what they write."""

    @property
    def shards(self) -> int: ...

    def divides(self, kind: Kind) -> bool:
        """Whether of a kind only a part is kept; all of it otherwise."""
        ...

    def after(self, kind: Kind) -> Sequence[Kind]:
        """The kinds that say whose objects of this one are."""
        ...

    def shard(self, found: Object) -> int:
        """Which shard works on an object."""
        ...

    def kept(self, found: Object, shards: Collection[int]) -> Object | None:
        """What is kept of an object where these shards are: itself, an outline or nothing.  An outline stays one."""
        ...

    def follow(self, cache: Cache) -> None:
        """Tell the cache when objects have become another shard's without having changed themselves; before anything is kept."""
        ...

    async def close(self) -> None:
        """Follow nothing any more."""
        ...


class Holding:
    """``leads`` says of a shard whether its lease is held at this very moment."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leads: Callable[[int], bool] = lambda shard: False
        self.held: set[int] = set()
        self.active: set[int] = set()
        self.divides, self.after, self.shard = partition.divides, partition.after, partition.shard

    def kept(self, found: Object) -> Object | None:
        return self.partition.kept(found, self.held)

    def works_on(self, found: Object) -> bool:
        """Whether this process may reconcile an object now."""
        return not isinstance(found, Outline) and self.works(self.shard(found))

    def works(self, shard: int) -> bool:
        return shard in self.active and self.leads(shard)
