"""What an ``init`` is asked for, and what its phases share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.host.interface import Host
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext


class InitOptions(msgspec.Struct, kw_only=True, frozen=True):
    """What a command line asks for."""

    text: str | None = None
    """The content of ``--config``; None where there is no file."""
    source: str = ""
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What flags say about the configuration, by the names of its fields."""
    only: str = ""
    """The phase to run alone, such as ``certs/ca``; empty for all."""
    detect_cri: bool = True
    kubeconfig_dir: str = paths.KUBERNETES_DIR
    kubeconfig: str = paths.ADMIN_CONF
    """With what phases that talk to the cluster reach it."""
    upload_certs: bool = False
    skip_token_print: bool = False
    skip_certificate_key_print: bool = False
    print_manifest: bool = False


class InitRun(msgspec.Struct, kw_only=True):
    """What the phases of one ``init`` share."""

    ctx: NodeContext
    options: InitOptions
    machine: Host
    """The host as it is; in a dry run the context's one has the files of the run, too."""
    kubeconfig: str
    """With what the cluster is reached: a dry run has an admin.conf of its own, and looks at no other."""
    connect: Callable[[NodeContext, str], Cluster]
    skip_phases: tuple[str, ...] = ()
    cluster: Cluster | None = None
    """The API server, reached when a phase first needs it."""
