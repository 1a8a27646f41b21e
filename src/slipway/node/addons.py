"""The add-ons of a cluster, put in place from a node: what they consist of is in slipway.workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.node.preflight import check
from slipway.node.preflight.check import FINE, Findings
from slipway.node.staticpods import patches
from slipway.workload import arguments, coredns, kubeproxy

if TYPE_CHECKING:
    from collections.abc import Collection

    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext

_UNSUPPORTED_ADVICE = (
    "[preflight] The corefile contains plugins that kubeadm/CoreDNS does not know how to migrate. "
    "Each plugin listed should be manually verified for compatibility with the newer version of CoreDNS. "
    "Once ready, the upgrade can be initiated by skipping the preflight check. During the upgrade, "
    "kubeadm will migrate the configuration while leaving the listed plugin configs untouched, "
    "but cannot guarantee that they will work with the newer version of CoreDNS.\n"
)


def install(name: str, ctx: NodeContext, cluster: Cluster) -> None:
    """Create or update an add-on: ``coredns`` or ``kube-proxy``."""
    if name == coredns.NAME:
        _install_coredns(ctx, cluster)
        ctx.progress.say("[addons] Applied essential addon: CoreDNS")
    else:
        cluster.apply_all((kubeproxy.config_map(ctx.config, ctx.release), _proxy_daemon_set(ctx), *kubeproxy.access()))
        ctx.progress.say("[addons] Applied essential addon: kube-proxy")


def manifests(name: str, ctx: NodeContext) -> list[Manifest]:
    """Everything that an add-on consists of, for other tools to apply."""
    if name == coredns.NAME:
        return coredns.manifests(ctx.config.cluster, _coredns_deployment(ctx))
    return [*kubeproxy.access(), kubeproxy.config_map(ctx.config, ctx.release), _proxy_daemon_set(ctx)]


def deployed_coredns(cluster: Cluster) -> coredns.Deployed:
    """The Deployment that is there."""
    return coredns.deployed(cluster.list("apps/v1", "Deployment", coredns.NAMESPACE, coredns.LABEL))


def running_coredns(cluster: Cluster) -> coredns.Running:
    """The Corefile in use and the version of CoreDNS that reads it; both are empty where there is no Corefile."""
    found = cluster.get("v1", "ConfigMap", coredns.NAME, coredns.NAMESPACE)
    if found is None:
        return coredns.NOTHING
    return coredns.Running(coredns.corefile_of(found), deployed_coredns(cluster).version.lstrip("v"))


def check_corefile(ctx: NodeContext, cluster: Cluster, ignored: Collection[str]) -> None:
    """The preflight checks of an upgrade: can the Corefile be moved to the CoreDNS of this release, and is all of it known.

    ``ignored`` are lower-case names, as of ``--ignore-preflight-errors``.
    """
    findings = [("CoreDNSUnsupportedPlugins", unsupported_plugins(running_coredns(cluster), ctx.release))]
    findings.append(("CoreDNSMigration", migration_problems(running_coredns(cluster), ctx.release)))
    check.tell(findings, ctx.progress, ignored)


def unsupported_plugins(found: coredns.Running, release: Release) -> Findings:
    try:
        notices = coredns.unsupported_plugins(found, release)
    except OperatorError as error:
        return Findings(errors=(error.message,))
    if not notices:
        return FINE
    listed = " ".join(map(str, notices))
    return Findings(errors=(f"CoreDNS cannot migrate the following plugins:\n[{listed}]",), output=_UNSUPPORTED_ADVICE)


def migration_problems(found: coredns.Running, release: Release) -> Findings:
    try:
        coredns.migrated(found, release)
    except OperatorError as error:
        return Findings(errors=(f"CoreDNS will not be upgraded: {error.message}",))
    return FINE


def _install_coredns(ctx: NodeContext, cluster: Cluster) -> None:
    """Replicas that an operator chose are kept, and a Corefile that is an operator's own."""
    deployment = _coredns_deployment(ctx, deployed_coredns(cluster).replicas)
    update = coredns.update(running_coredns(cluster), ctx.config.cluster, ctx.release)
    if update.problem:
        ctx.progress.warn(
            f"the CoreDNS Configuration was not migrated: {update.problem}. The existing CoreDNS Corefile configuration has been retained."
        )
    if update.migrated is not None:
        cluster.apply(update.migrated)
        cluster.patch("apps/v1", "Deployment", coredns.NAME, coredns.NAMESPACE, coredns.on_old_corefile())
        ctx.progress.say("[addons] Migrating CoreDNS Corefile")
    cluster.apply_all(coredns.written(ctx.config.cluster, deployment, update))


def _coredns_deployment(ctx: NodeContext, replicas: int = coredns.REPLICAS) -> Manifest:
    return patches.patch(ctx, patches.COREDNS_DEPLOYMENT, coredns.deployment(ctx.config.cluster, ctx.release, replicas))


def _proxy_daemon_set(ctx: NodeContext) -> Manifest:
    return kubeproxy.daemon_set(ctx.config.cluster, arguments.proxies(ctx.host.environment))
