"""A Lease that many hold under one name: each of them sees to it that it is renewed, and need not do so itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import LEASE
from slipway.runtime.leader import Elector, holder

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest


class SharedElector(Elector):
    """A renewal by one who has the same name counts for all, from when they looked before it: it cannot have been earlier than that.

    So those who share a Lease read it, and one of them writes; if each wrote, each would meet what the others had written.
    """

    _looked_at = float("-inf")

    async def attempt(self) -> bool:
        # One who was faster may have had the same name.
        return await super().attempt() or await super().attempt()

    async def confirm(self) -> bool:
        """Write the Lease, whoever has renewed it last: what others have read of it before is no longer what is there."""
        self._leading = False
        return await self.attempt()

    async def _renew(self, lease: Manifest) -> bool:
        for _ in range(2):
            began = self._clock.time()
            found = await self._client.find(LEASE, self.name, self.namespace)
            if found is None or holder(found) != self.who:
                return False
            if self._seen is not None and (found.get("spec") or {}) != self._seen:
                self._observe(found)
                self._renewed_at, self._looked_at = self._looked_at, began
                return True
            if await super()._renew(found):
                return True
            # Somebody was faster, after we had looked.
            self._looked_at = began
        return False

    async def _write(self, lease: Manifest | None) -> None:
        began = self._clock.time()
        await super()._write(lease)
        self._looked_at = began
