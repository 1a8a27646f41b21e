"""What can be made to go wrong in a demonstration: how it comes about, what tells it, and what mends it.

Each is a row of the upgrade guide's *Troubleshooting* table, or a part of the system that fails.  What is mended is mended as an operator
would, with what the conditions and the reference of them say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.demo.options import Options
    from slipway.demo.story import Story


class Fault:
    """One that goes wrong once, during the upgrade."""

    restarts = False
    """Whether the API server is stopped and started again, and so has to keep its objects."""

    def left_out(self, options: Options) -> Sequence[str]:
        """Versions that the catalog does not have."""
        return ()

    async def prepare(self, story: Story) -> None:
        """Before the upgrade begins."""

    async def occur(self, story: Story) -> None:
        """While it goes on; it ends when what went wrong is mended."""
