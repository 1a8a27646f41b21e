"""Server-side apply to objects that change all the time in what is not ours: sent only when something of ours would change.

A Machine's status changes many times in a rollout.  As long as this process wants the same of it as it applied last, and the object has
all of that, there is nothing to send, whatever its version is.  The first apply after a start is always sent: only that gives up a field
which a process before wanted.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.apply import Applier

_REMEMBERED = 50_000


class Propagation:
    def __init__(self, applier: Applier) -> None:
        self._applier = applier
        self._intents: dict[str, bytes] = {}

    async def create(self, kind: Kind, wanted: Manifest) -> Manifest:
        written = await self._applier.apply(kind, wanted)
        self._remember(written["metadata"]["uid"], _digest(wanted))
        return written

    async def apply(self, kind: Kind, wanted: Manifest, current: Manifest) -> Manifest:
        """The object after what is wanted of it was applied; ``current`` where there was nothing to send."""
        uid, intent = current["metadata"]["uid"], _digest(wanted)
        if self._intents.get(uid) == intent and covers(current, wanted):
            return current
        written = await self._applier.apply(kind, wanted, current=current)
        self._remember(uid, intent)
        return written

    def _remember(self, uid: str, intent: bytes) -> None:
        self._intents.pop(uid, None)
        self._intents[uid] = intent
        if len(self._intents) > _REMEMBERED:
            del self._intents[next(iter(self._intents))]


def covers(current: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; an empty value that is wanted is there when it is absent, too."""
    if isinstance(wanted, dict):
        if not wanted:
            return True
        return isinstance(current, dict) and all(covers(current.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(current, list):
        return len(wanted) <= len(current) and all(any(covers(have, want) for have in current) for want in wanted)
    return bool(current == wanted)


def _digest(wanted: Manifest) -> bytes:
    return blake2b(msgspec.json.encode(wanted, order="deterministic"), digest_size=16).digest()
