"""What the machines' controllers are told on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import re


class MachinesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Regular expressions, of which any may match anywhere: which labels and annotations a Node gets beside those that it always gets."""

    node_labels: tuple[re.Pattern[str], ...] = ()
    node_annotations: tuple[re.Pattern[str], ...] = ()


NOTHING_MORE = MachinesOptions()
