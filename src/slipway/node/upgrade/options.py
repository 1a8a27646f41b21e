"""What an ``upgrade apply`` or ``upgrade node`` is asked for, and what its phases share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.api.kubeadm.internal import UpgradeApplyConfiguration, UpgradeConfiguration, UpgradeNodeConfiguration
    from slipway.host.interface import Host
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext
    from slipway.node.upgrade.controlplane import Outcome

Command = Literal["apply", "node"]


class UpgradeOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    command: Command = "apply"
    """``apply`` moves the cluster to another version, ``node`` brings one more node along."""
    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags and arguments say about the configuration, by the names of its fields: ``apply.kubernetesVersion``."""
    only: str = ""
    """The phase to run alone; empty for all."""
    kubeconfig: str = ""
    """Who asks the cluster; empty for the administrator's file, or the kubelet's on a worker."""
    etcd_snapshot_dir: str = ""
    """Where a snapshot of etcd is saved before anything is changed; empty for none."""
    assume_yes: bool = False
    answer: Callable[[], str] | None = None
    """Reads the answer to the question whether to go on; without one nobody is asked."""


class UpgradeRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``upgrade apply`` or ``upgrade node`` share."""

    ctx: NodeContext
    config: UpgradeConfiguration
    options: UpgradeOptions
    machine: Host
    """The host as it is; in a dry run the context's one has the files of the run, too."""
    cluster: Cluster
    is_control_plane: bool
    is_live: bool
    """Whether there is a cluster that answers, in a dry run too."""
    from_version: str
    """The version of the cluster before the upgrade."""
    outcome: Outcome | None = None
    """What became of the static Pods."""

    @property
    def wanted(self) -> UpgradeApplyConfiguration | UpgradeNodeConfiguration:
        """The section of the configuration that the command reads."""
        return self.config.apply if self.options.command == "apply" else self.config.node

    @property
    def ignored(self) -> frozenset[str]:
        """Lower-case names of preflight checks whose errors are only told."""
        return frozenset(name.lower() for name in self.wanted.ignore_preflight_errors)
