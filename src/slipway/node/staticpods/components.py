"""The static Pods of the API server, the controller manager and the scheduler.

``manifest`` decides what a Pod looks like from the configuration, the release and what the host has; ``write`` puts it
where the kubelet finds it.  etcd has a module of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.kubeadm import addresses
from slipway.api.kubeadm.addresses import join_host_port
from slipway.api.kubeadm.internal import Arg, ClusterConfiguration, ControlPlaneComponent
from slipway.api.machinery.yaml import goyaml
from slipway.node import paths
from slipway.node.staticpods import patches, rootless
from slipway.node.staticpods import pod as componentpod
from slipway.workload import arguments, images

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest
    from slipway.node.context import NodeContext

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
ADVERTISE_ADDRESS_ANNOTATION = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"
ETCD_CLIENT_PORT = 2379
_CONTROLLER_MANAGER_PORT, _SCHEDULER_PORT = 10257, 10259
_DEFAULT_AUTHORIZATION = ("Node", "RBAC")
_AUTHORIZATION_MODES = (*_DEFAULT_AUTHORIZATION, "Webhook", "ABAC", "AlwaysAllow", "AlwaysDeny")


class _Part(NamedTuple):
    """In what a component differs from the others."""

    defaults: dict[str, str]
    configured: ControlPlaneComponent
    cpu: str
    endpoint: componentpod.Endpoint
    paths: componentpod.Paths
    annotations: dict[str, str]


def manifest(component: str, ctx: NodeContext) -> Manifest:
    """The static Pod of a component, before a user's patches."""
    cluster, release = ctx.config.cluster, ctx.release
    part = _PARTS[component](ctx)
    mounts = componentpod.for_component(component, cluster, release, ctx.host)
    defaults = (Arg(name=name, value=value) for name, value in part.defaults.items())
    flags = arguments.to_command(defaults, part.configured.extra_args, sorted_extra_args=release.sorted_extra_args)
    container = {
        "name": component,
        "image": images.kubernetes(cluster, component),
        "command": [component, *flags],
        "resources": {"requests": {"cpu": part.cpu}},
        "volumeMounts": [mount.volume_mount() for mount in mounts],
        **componentpod.fields(part.endpoint, part.paths, ctx.config.timeouts, release),
        **componentpod.env(arguments.proxies(ctx.host.environment), part.configured.extra_envs),
    }
    return componentpod.manifest(container, mounts, part.annotations, release)


def write(ctx: NodeContext, component: str) -> None:
    """Make the manifest of a component, patch it, and write it for the kubelet."""
    _announce(ctx, component)
    write_secured(ctx, component, manifest(component, ctx))


def would_write(ctx: NodeContext, component: str) -> None:
    """The same in a dry run, which makes no users: the manifest is that of a component that runs as root."""
    _announce(ctx, component)
    if componentpod.without_root(ctx):
        ctx.progress.say(f"[control-plane] Would create users and groups for [{component}] to run as non-root")
        ctx.progress.say(f'[control-plane] Would update static pod manifest for "{component}" to run as non-root')
    write_manifest(ctx, component, manifest(component, ctx))


def write_secured(ctx: NodeContext, component: str, pod: Manifest) -> None:
    """Take root from a static Pod where that is asked for, and write it."""
    write_manifest(ctx, component, rootless.apply(ctx, component, pod) if componentpod.without_root(ctx) else pod)


def write_manifest(ctx: NodeContext, component: str, pod: Manifest) -> None:
    """Patch a static Pod, and write it into the kubelet's folder of manifests."""
    patched = patches.patch(ctx, component, pod)
    ctx.host.keep(path_of(component), goyaml.dump(patched).encode(), 0o600)


def _announce(ctx: NodeContext, component: str) -> None:
    ctx.progress.say(f'[control-plane] Creating static Pod manifest for "{component}"')
    if component == "kube-apiserver":
        for warning in authorization_warnings(ctx.config.cluster.api_server.extra_args):
            ctx.progress.warn(warning)


def path_of(component: str) -> str:
    return f"{paths.MANIFESTS_DIR}/{component}.yaml"


def authorization_warnings(extra_args: Iterable[Arg]) -> list[str]:
    """What is odd about the authorization modes that a user asked for; the API server gets them all the same."""
    asked = arguments.value_of(list(extra_args), "authorization-mode")
    if not asked:
        return []
    modes = asked.split(",")
    unknown = [mode for mode in modes if mode not in _AUTHORIZATION_MODES]
    known = tuple(mode for mode in modes if mode in _AUTHORIZATION_MODES)
    warnings = [f'unknown kube-apiserver authorization-mode "{mode}"' for mode in unknown]
    if known and known != _DEFAULT_AUTHORIZATION:
        warnings.append(f'the default kube-apiserver authorization-mode is "{",".join(_DEFAULT_AUTHORIZATION)}"; using "{asked}"')
    return warnings


def _api_server(ctx: NodeContext) -> _Part:
    cluster, local = ctx.config.cluster, ctx.config.local_api_endpoint
    flags = {
        "advertise-address": local.advertise_address,
        "allow-privileged": "true",
        "client-ca-file": _pki(cluster, "ca.crt"),
        "enable-admission-plugins": "NodeRestriction",
        "enable-bootstrap-token-auth": "true",
        "kubelet-client-certificate": _pki(cluster, "apiserver-kubelet-client.crt"),
        "kubelet-client-key": _pki(cluster, "apiserver-kubelet-client.key"),
        "kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname",
        "proxy-client-cert-file": _pki(cluster, "front-proxy-client.crt"),
        "proxy-client-key-file": _pki(cluster, "front-proxy-client.key"),
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-client-ca-file": _pki(cluster, "front-proxy-ca.crt"),
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "secure-port": str(local.bind_port),
        "service-account-issuer": f"https://kubernetes.default.svc.{cluster.networking.dns_domain}",
        "service-account-key-file": _pki(cluster, "sa.pub"),
        "service-account-signing-key-file": _pki(cluster, "sa.key"),
        "service-cluster-ip-range": cluster.networking.service_subnet,
        "tls-cert-file": _pki(cluster, "apiserver.crt"),
        "tls-private-key-file": _pki(cluster, "apiserver.key"),
        **_etcd_client_flags(cluster, local.advertise_address),
    }
    if arguments.value_of(cluster.api_server.extra_args, "authorization-config") is None:
        flags["authorization-mode"] = ",".join(_DEFAULT_AUTHORIZATION)
    address = componentpod.reachable(local.advertise_address) if local.advertise_address else "127.0.0.1"
    return _Part(
        defaults=flags,
        configured=cluster.api_server,
        cpu="250m",
        endpoint=componentpod.Endpoint(address, local.bind_port),
        paths=componentpod.Paths(live="/livez", ready="/readyz", startup="/livez"),
        annotations={ADVERTISE_ADDRESS_ANNOTATION: join_host_port(local.advertise_address, local.bind_port)},
    )


def _etcd_client_flags(cluster: ClusterConfiguration, advertise_address: str) -> dict[str, str]:
    """How the API server reaches etcd, and who it is there."""
    external = cluster.etcd.external
    if external is None:
        local = f"https://{join_host_port(addresses.loopback(advertise_address), ETCD_CLIENT_PORT)}"
        extra = cluster.etcd.local.extra_args if cluster.etcd.local else []
        advertised = arguments.value_of(extra, "advertise-client-urls")
        return {
            "etcd-servers": local if advertised is None else advertised,
            "etcd-cafile": _pki(cluster, "etcd/ca.crt"),
            "etcd-certfile": _pki(cluster, "apiserver-etcd-client.crt"),
            "etcd-keyfile": _pki(cluster, "apiserver-etcd-client.key"),
        }
    flags = {"etcd-servers": ",".join(external.endpoints)}
    if external.ca_file:
        flags["etcd-cafile"] = external.ca_file
    if external.cert_file and external.key_file:
        flags["etcd-certfile"] = external.cert_file
        flags["etcd-keyfile"] = external.key_file
    return flags


def _controller_manager(ctx: NodeContext) -> _Part:
    cluster = ctx.config.cluster
    ca = _pki(cluster, "ca.crt")
    # With an external CA there is no key to sign with: empty files keep the signing controller from starting.
    external_ca = ctx.host.exists(ca) and not ctx.host.exists(_pki(cluster, "ca.key"))
    flags = {
        **_companion_flags(paths.CONTROLLER_MANAGER_CONF),
        "client-ca-file": ca,
        "cluster-signing-cert-file": "" if external_ca else ca,
        "cluster-signing-key-file": "" if external_ca else _pki(cluster, "ca.key"),
        "controllers": "*,bootstrapsigner,tokencleaner",
        "requestheader-client-ca-file": _pki(cluster, "front-proxy-ca.crt"),
        "root-ca-file": ca,
        "service-account-private-key-file": _pki(cluster, "sa.key"),
        "use-service-account-credentials": "true",
    }
    if cluster.networking.pod_subnet:
        flags["allocate-node-cidrs"] = "true"
        flags["cluster-cidr"] = cluster.networking.pod_subnet
        if cluster.networking.service_subnet:
            flags["service-cluster-ip-range"] = cluster.networking.service_subnet
    if cluster.cluster_name:
        flags["cluster-name"] = cluster.cluster_name
    return _Part(
        defaults=flags,
        configured=cluster.controller_manager,
        cpu="200m",
        endpoint=componentpod.Endpoint(componentpod.bind_address(cluster.controller_manager.extra_args), _CONTROLLER_MANAGER_PORT),
        paths=componentpod.Paths(live="/healthz", ready="", startup="/healthz"),
        annotations={},
    )


def _scheduler(ctx: NodeContext) -> _Part:
    scheduler = ctx.config.cluster.scheduler
    return _Part(
        defaults=_companion_flags(paths.SCHEDULER_CONF),
        configured=scheduler,
        cpu="100m",
        endpoint=componentpod.Endpoint(componentpod.bind_address(scheduler.extra_args), _SCHEDULER_PORT),
        paths=componentpod.Paths(live="/livez", ready="/readyz", startup="/livez"),
        annotations={},
    )


def _companion_flags(kubeconfig: str) -> dict[str, str]:
    return {
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "kubeconfig": kubeconfig,
        "leader-elect": "true",
    }


def _pki(cluster: ClusterConfiguration, name: str) -> str:
    return paths.join(cluster.certificates_dir, name)


_PARTS = {"kube-apiserver": _api_server, "kube-controller-manager": _controller_manager, "kube-scheduler": _scheduler}
