"""What every step of a node's life works with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.credentials.keys import KeyPool

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import InitConfiguration
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress


class NodeContext(msgspec.Struct, kw_only=True):
    """The configuration, the release that is acted as, the machine, and where to report.

    A control-plane join works with the InitConfiguration that the cluster's ClusterConfiguration and its own
    JoinConfiguration make together, so one context serves both.
    """

    config: InitConfiguration
    release: Release
    host: Host
    progress: Progress
    keys: KeyPool = msgspec.field(default_factory=KeyPool)
    """The private keys that were made ahead."""
    warned: set[str] = msgspec.field(default_factory=set)

    def warn_once(self, text: str) -> None:
        """A warning that several steps of one run would repeat."""
        if text not in self.warned:
            self.warned.add(text)
            self.progress.warn(text)
