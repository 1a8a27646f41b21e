"""Who should have which shards: a pure function of who is there and who has what.

All members decide by it for themselves, each on what it sees.  What they see may differ for a moment; leases keep two from having one
shard, and whoever sees the same moves to the same end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class Moves(NamedTuple):
    """What a member has to do; both in order."""

    take: tuple[int, ...] = ()
    release: tuple[int, ...] = ()


def shard_of(namespace: str, name: str, shards: int) -> int:
    """The shard of a name: the same in every process, on every machine, for ever."""
    return crc32(f"{namespace}/{name}".encode()) % shards


def targets(members: Collection[str], shards: int, holders: Mapping[int, str]) -> dict[str, int]:
    """How many shards each member should have: as many as each other, or one more, which those get who have most already."""
    if not members:
        return {}
    held = [*holders.values()]
    least, more = divmod(shards, len(members))
    ranked = sorted(members, key=lambda member: (-held.count(member), member))
    return {member: least + (place < more) for place, member in enumerate(ranked)}


def assignment(members: Collection[str], shards: int, holders: Mapping[int, str]) -> dict[str, Moves]:
    """What each member has to do, so that in the end every shard has a holder and the least has moved.

    ``holders`` has those shards alone that somebody holds.  Who holds some and is no member is about to go: what it has is not free yet.
    """
    free = [shard for shard in range(shards) if shard not in holders]
    found = {}
    for member, target in sorted(targets(members, shards, holders).items()):
        own = sorted(shard for shard, holder in holders.items() if holder == member and shard < shards)
        wanted = max(0, target - len(own))
        found[member] = Moves(tuple(free[:wanted]), tuple(own[target:]))
        free = free[wanted:]
    return found
