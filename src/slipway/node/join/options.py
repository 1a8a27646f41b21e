"""What a ``join`` is asked for, and what its phases share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.internal import JoinConfiguration
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.context import NodeContext
    from slipway.node.join.cluster import Way


class JoinOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags say about the configuration, by the names of its fields."""
    only: str = ""
    """The phase to run alone, such as ``control-plane-prepare/certs``; empty for all."""
    detect_cri: bool = True
    discovers: bool = True
    """Whether the command has flags for discovery; a phase without them works with the admin.conf of earlier phases."""


class JoinRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``join`` share."""

    config: JoinConfiguration
    options: JoinOptions
    release: Release
    host: Host
    machine: Host
    """The host as it is; in a dry run ``host`` has the files of the run, too."""
    progress: Progress
    way: Way
    """How the cluster is got to know: found, or in a dry run imagined."""
    ctx: NodeContext | None = None
    """Made when a phase first needs it, from what the cluster says of itself."""
    keys_expected: bool = False

    @property
    def is_control_plane(self) -> bool:
        return self.config.control_plane is not None
