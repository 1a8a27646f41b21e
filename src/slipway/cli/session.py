"""What commands that work on a node have in common: the context of one that is set up already."""

from __future__ import annotations

from slipway.api.machinery.errors import OperatorError
from slipway.cli.fields import config_text
from slipway.host.progress import TextProgress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation
    from slipway.host.progress import Progress
    from slipway.node.context import NodeContext

# Seconds to wait for a cluster that is only asked for its configuration; kubeadm waits as long.
_CLUSTER_PATIENCE = 0.35


def node_context(call: Invocation, fields: dict[str, object], *, look_up: bool = True) -> NodeContext:
    """The context of a command that looks at a node: the file's configuration, or the defaults with ``fields``.

    A command to which the version does not matter spares the look-up of what a label such as stable-1 means.
    """
    from slipway.node.config import load as configuration
    from slipway.node.context import NodeContext

    progress = TextProgress()
    config, release = configuration.load_init(
        call.host, config_text(call), fields, progress, source=call.config_path, skip_cri_detection=True, look_up=look_up
    )
    call.release = release
    return NodeContext(config=config, release=release, host=call.host, progress=progress)


def live_context(call: Invocation, path: str, progress: Progress, prefix: str) -> NodeContext | None:
    """The context of this node with the configuration of its cluster; None where there is no kubeconfig, or no answer.

    What is done with certificates must not depend on a cluster that runs: it is asked, but not waited for.
    """
    from slipway.node import paths
    from slipway.node.cluster.live import connect
    from slipway.node.config import cluster as clusterconfig
    from slipway.node.config import version
    from slipway.node.context import NodeContext

    try:
        cluster = connect(call.host, path, patience=_CLUSTER_PATIENCE)
    except OperatorError:
        # Without a kubeconfig that can be read nobody expects the cluster to be asked.
        return None
    host, control_plane = call.host, call.host.exists(f"{paths.MANIFESTS_DIR}/kube-apiserver.yaml")
    release, asked = version.acting_release(host.environment), False
    try:
        release = version.acting_release(host.environment, clusterconfig.kubernetes_version(cluster))
        name = clusterconfig.node_name(host)
        asked = True
        config = clusterconfig.fetch(
            cluster, release, host, progress, prefix, name=name, is_control_plane=control_plane, patience=_CLUSTER_PATIENCE
        )
    except OperatorError as error:
        if not asked:
            clusterconfig.announce(release, progress, prefix)
        progress.warn(f"the cluster's configuration cannot be used: {error.message}")
        progress.say(f"[{prefix}] Error reading configuration from the Cluster. Falling back to default configuration\n")
        return None
    finally:
        cluster.client.close()
    progress.say("")
    call.release = release
    return NodeContext(config=config, release=release, host=host, progress=progress)
