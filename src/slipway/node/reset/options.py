"""What a ``reset`` is asked for, and what its phases share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.api.kubeadm.internal import ClusterConfiguration, ResetConfiguration
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster


def _nobody_answers() -> str:
    return ""


class ResetOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags say about the configuration, by the names of its fields."""
    only: str = ""
    """The phase to run alone; empty for all."""
    detect_cri: bool = True
    kubeconfig: str = paths.ADMIN_CONF
    answer: Callable[[], str] = _nobody_answers
    """Reads the operator's answer to a question that was shown."""


class ResetRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``reset`` share."""

    config: ResetConfiguration
    options: ResetOptions
    release: Release
    host: Host
    progress: Progress
    cluster: Cluster | None = None
    """The API server, where it could be asked for the configuration."""
    cluster_config: ClusterConfiguration | None = None
    node_name: str = ""
    """The name that the kubelet of this machine has; empty where it has none."""
    etcd_data_dir: str = ""
    """The data folder of etcd, once it was emptied."""
    emptied: list[str] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)
    """Folders and files of the machine that are gone, in the order in which they went."""

    @property
    def certificates_dir(self) -> str:
        return self.config.certificates_dir or paths.PKI_DIR
