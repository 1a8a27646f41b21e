"""What an upgrade did, for programs that call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class UpgradeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an upgrade did, for programs that call it."""

    node_name: str
    from_version: str
    """The version of the cluster before the upgrade."""
    kubernetes_version: str
    is_control_plane: bool
    exchanged: tuple[str, ...] = ()
    """The static Pods that run from new manifests, in the order in which they were exchanged."""
    backup_dir: str = ""
    """Where the manifests of before are kept; empty where none was exchanged."""
    etcd_snapshot: str = ""
    seconds: Mapping[str, float] = msgspec.field(default_factory=dict)
    """How long each phase took that ran, by its path."""
