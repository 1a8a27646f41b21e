"""What a ``reset`` undid, for programs that call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class ResetResult(msgspec.Struct, frozen=True, kw_only=True):
    """What is gone from the machine, and what is not; of a dry run nothing is."""

    node_name: str
    """The name that the kubelet of this machine had; empty where it had none."""
    emptied: tuple[str, ...] = ()
    """Folders whose content is gone."""
    removed: tuple[str, ...] = ()
    """Files that are gone."""
    left_alone: tuple[str, ...] = ()
    """What is still there and was made by, or for, the cluster, in a few words each."""
    seconds: Mapping[str, float] = msgspec.field(default_factory=dict)
    """How long each phase took that ran, by its path."""
