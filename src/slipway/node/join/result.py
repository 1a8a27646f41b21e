"""What a ``join`` made, for programs that call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class JoinResult(msgspec.Struct, kw_only=True, frozen=True):
    """What has become of the machine."""

    node_name: str
    kubernetes_version: str
    """The version of the cluster, whose kubeadm was acted as."""
    endpoint: str
    """The URL of the API server that the node joined by."""
    is_control_plane: bool
    seconds: Mapping[str, float] = msgspec.field(default_factory=dict)
    """How long each phase took that ran, by its path."""
