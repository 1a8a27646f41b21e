"""The administrator's way into a new cluster: admin.conf, whose group is made an administrator with super-admin.conf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import addresses
from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.kube import errors
from slipway.node import paths
from slipway.node.cluster import live
from slipway.workload import roles

if TYPE_CHECKING:
    from slipway.node.cluster.live import LiveCluster
    from slipway.node.context import NodeContext


def connect(ctx: NodeContext, path: str = paths.ADMIN_CONF) -> LiveCluster:
    """The cluster, reached with a kubeconfig of this host; where that is admin.conf, its group has its rights afterwards."""
    patience = waiting.seconds(ctx.config.timeouts.kubernetes_api_call, 60)
    if path != paths.ADMIN_CONF:
        return live.connect(ctx.host, path, patience=patience, waiting=ctx.progress.say)
    server = addresses.local_api_url(ctx.config.local_api_endpoint) if ctx.release.init_uses_local_endpoint else ""
    admin = live.connect(ctx.host, path, server=server, patience=patience, waiting=ctx.progress.say)
    if not _binds_itself(admin, patience):
        _bind_with_super_admin(ctx, server, patience)
    return admin


def _binds_itself(admin: LiveCluster, patience: float) -> bool:
    """Whether the group of admin.conf is bound; a file of an older release has rights enough to bind it."""
    refused = False

    def attempt() -> str:
        nonlocal refused
        try:
            admin.client.create(roles.cluster_admins())
        except errors.AlreadyExistsError:
            return ""
        except errors.ForbiddenError:
            refused = True
        except errors.UntrustedError:
            raise
        except OperatorError as error:
            return f"could not bootstrap the admin user in file {paths.ADMIN_CONF}: unable to create ClusterRoleBinding: {error.message}"
        return ""

    waiting.until(attempt, timeout=patience)
    return not refused


def _bind_with_super_admin(ctx: NodeContext, server: str, patience: float) -> None:
    if not ctx.host.exists(paths.SUPER_ADMIN_CONF):
        raise OperatorError(
            f"could not bootstrap the admin user in file {paths.ADMIN_CONF}: the ClusterRoleBinding for the {roles.CLUSTER_ADMINS} Group "
            f"is missing but there is no {ctx.host.location(paths.SUPER_ADMIN_CONF)} to create it"
        )
    super_admin = live.connect(ctx.host, paths.SUPER_ADMIN_CONF, server=server, patience=patience)

    def attempt() -> str:
        try:
            super_admin.client.create(roles.cluster_admins())
        except errors.AlreadyExistsError:
            return ""
        except errors.UntrustedError:
            raise
        except OperatorError as error:
            return f"unable to create the {roles.CLUSTER_ADMINS} ClusterRoleBinding by using {paths.SUPER_ADMIN_CONF}: {error.message}"
        return ""

    try:
        waiting.until(attempt, timeout=patience)
    finally:
        super_admin.client.close()
