"""The local etcd member of a control plane node: its static Pod and its data folder.

What is asked of a running etcd (members, learners, health) is not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.kubeadm.addresses import join_host_port, loopback
from slipway.api.kubeadm.internal import APIEndpoint, Arg, LocalEtcd
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.version import Version
from slipway.node import paths
from slipway.node.staticpods import components
from slipway.node.staticpods import pod as componentpod
from slipway.workload import arguments, images

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release
    from slipway.node.context import NodeContext

ADVERTISE_CLIENT_URLS_ANNOTATION = "kubeadm.kubernetes.io/etcd.advertise-client-urls"
_PEER_PORT = 2380


class Member(NamedTuple):
    """A member of an etcd cluster, as ``initial-cluster`` names it."""

    name: str
    peer_url: str


def manifest(ctx: NodeContext, initial_cluster: Sequence[Member] = ()) -> Manifest:
    """The static Pod of the local member, before a user's patches.

    A member that joins is given the members that there are, itself among them; the first one starts a cluster alone.
    """
    cluster, local = ctx.config.cluster, _local(ctx)
    # In this order, which is not the volumes'.
    mounts = [
        componentpod.folder("etcd-data", local.data_dir, read_only=False),
        componentpod.folder("etcd-certs", f"{cluster.certificates_dir}/etcd", read_only=False),
    ]
    address = ctx.config.local_api_endpoint
    probed = componentpod.etcd_endpoint(local, loopback(address.advertise_address))
    container = {
        "name": "etcd",
        "image": images.etcd(cluster, ctx.release),
        "command": ["etcd", *_flags(ctx, local, initial_cluster)],
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
        "volumeMounts": [mount.volume_mount() for mount in mounts],
        **componentpod.fields(
            probed, componentpod.Paths(live="/livez", ready="/readyz", startup="/readyz"), ctx.config.timeouts, ctx.release
        ),
        **componentpod.env(local.extra_envs),
    }
    return componentpod.manifest(container, mounts, {ADVERTISE_CLIENT_URLS_ANNOTATION: client_url(address)}, ctx.release)


def write_local(ctx: NodeContext) -> None:
    """Make the data folder and the manifest of the first member."""
    ctx.host.make_dir(_local(ctx).data_dir, 0o700)
    _announce_local(ctx)
    components.write_secured(ctx, "etcd", manifest(ctx))


def would_write_local(ctx: NodeContext) -> None:
    ctx.progress.say(f'[etcd] Would ensure that "{_local(ctx).data_dir}" directory is present')
    _announce_local(ctx)
    _would_write(ctx, manifest(ctx))


def write_joined(ctx: NodeContext, members: Sequence[Member]) -> None:
    """Make the manifest of a member that joins others."""
    ctx.progress.say('[etcd] Creating static Pod manifest for "etcd"')
    components.write_secured(ctx, "etcd", manifest(ctx, members))


def would_write_joined(ctx: NodeContext) -> None:
    """A dry run knows none of the others."""
    ctx.progress.say('[etcd] Creating static Pod manifest for "etcd"')
    _would_write(ctx, manifest(ctx))


def client_url(endpoint: APIEndpoint) -> str:
    return f"https://{join_host_port(endpoint.advertise_address, components.ETCD_CLIENT_PORT)}"


def peer_url(endpoint: APIEndpoint) -> str:
    return f"https://{join_host_port(endpoint.advertise_address, _PEER_PORT)}"


def _announce_local(ctx: NodeContext) -> None:
    ctx.progress.say(f'[etcd] Creating static Pod manifest for local etcd in "{ctx.host.location(paths.MANIFESTS_DIR)}"')


def _would_write(ctx: NodeContext, pod: Manifest) -> None:
    if componentpod.without_root(ctx):
        ctx.progress.say('[etcd] Would create users and groups for "etcd" to run as non-root')
        ctx.progress.say('[etcd] Would update static pod manifest for "etcd" to run as non-root')
    components.write_manifest(ctx, "etcd", pod)


def _local(ctx: NodeContext) -> LocalEtcd:
    local = ctx.config.cluster.etcd.local
    if local is None or ctx.config.cluster.etcd.external is not None:
        raise ConfigurationError("etcd static pod manifest cannot be generated for cluster using external etcd: remove etcd.external")
    return local


def _flags(ctx: NodeContext, local: LocalEtcd, initial_cluster: Sequence[Member]) -> list[str]:
    address, name = ctx.config.local_api_endpoint, ctx.config.node_registration.name
    here = loopback(address.advertise_address)
    members = initial_cluster or [Member(name, peer_url(address))]
    flags = {
        "advertise-client-urls": client_url(address),
        "cert-file": _pki(ctx, "server.crt"),
        "client-cert-auth": "true",
        "data-dir": local.data_dir,
        "initial-advertise-peer-urls": peer_url(address),
        "initial-cluster": ",".join(f"{member.name}={member.peer_url}" for member in members),
        "key-file": _pki(ctx, "server.key"),
        "listen-client-urls": f"https://{join_host_port(here, components.ETCD_CLIENT_PORT)},{client_url(address)}",
        "listen-metrics-urls": f"http://{join_host_port(here, componentpod.ETCD_METRICS_PORT)}",
        "listen-peer-urls": peer_url(address),
        "name": name,
        "peer-cert-file": _pki(ctx, "peer.crt"),
        "peer-client-cert-auth": "true",
        "peer-key-file": _pki(ctx, "peer.key"),
        "peer-trusted-ca-file": _pki(ctx, "ca.crt"),
        "snapshot-count": "10000",
        "trusted-ca-file": _pki(ctx, "ca.crt"),
        **_graduated_flags(images.etcd_tag(ctx.config.cluster, ctx.release), ctx.release),
    }
    if initial_cluster:
        flags["initial-cluster-state"] = "existing"
    defaults = (Arg(name=flag, value=value) for flag, value in flags.items())
    return arguments.to_command(defaults, local.extra_args, sorted_extra_args=ctx.release.sorted_extra_args)


def _graduated_flags(tag: str, release: Release) -> dict[str, str]:
    """Two flags that were experimental in etcd 3.5; a tag that is no version is taken for an old one."""
    if _at_least(tag, release.etcd_graduated_flags_since):
        return {"feature-gates": "InitialCorruptCheck=true", "watch-progress-notify-interval": "5s"}
    return {"experimental-initial-corrupt-check": "true", "experimental-watch-progress-notify-interval": "5s"}


def _at_least(tag: str, since: str | None) -> bool:
    if since is None:
        return False
    if not since:
        return True
    try:
        return Version.parse(tag) >= Version.parse(since)
    except ValueError:
        return False


def _pki(ctx: NodeContext, name: str) -> str:
    return paths.join(ctx.config.cluster.certificates_dir, "etcd", name)
