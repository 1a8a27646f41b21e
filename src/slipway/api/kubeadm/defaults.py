"""The static defaults of v1beta3 and v1beta4: what a field means when it is left out, whatever the machine.

Defaults that depend on the machine (node name, addresses, the CRI socket) are made in node/config/dynamicdefaults.py.
Each function fills the object that it is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import v1beta3, v1beta4
from slipway.api.machinery.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Object
    from slipway.api.releases import Release

KUBERNETES_VERSION = "stable-1"
SERVICE_SUBNET = "10.96.0.0/12"
DNS_DOMAIN = "cluster.local"
CERTIFICATES_DIR = "/etc/kubernetes/pki"
CA_CERT_PATH = "/etc/kubernetes/pki/ca.crt"
IMAGE_REPOSITORY = "registry.k8s.io"
CLUSTER_NAME = "kubernetes"
ETCD_DATA_DIR = "/var/lib/etcd"
IMAGE_PULL_POLICY = "IfNotPresent"
ENCRYPTION_ALGORITHM = "RSA-2048"
API_SERVER_PORT = 6443
CRI_SOCKET = "unix:///var/run/containerd/containerd.sock"

CERTIFICATE_VALIDITY = Duration.of(hours=24 * 365)
CA_CERTIFICATE_VALIDITY = Duration.of(hours=24 * 365 * 10)
CONTROL_PLANE_TIMEOUT = Duration.of(minutes=4)
DISCOVERY_TIMEOUT = Duration.of(minutes=5)

TOKEN_TTL = Duration.of(hours=24)
TOKEN_USAGES = ("signing", "authentication")
TOKEN_GROUPS = ("system:bootstrappers:kubeadm:default-node-token",)

TIMEOUTS = {
    "control_plane_component_health_check": CONTROL_PLANE_TIMEOUT,
    "kubelet_health_check": Duration.of(minutes=4),
    "kubernetes_api_call": Duration.of(minutes=1),
    "etcd_api_call": Duration.of(minutes=2),
    "tls_bootstrap": Duration.of(minutes=5),
    "discovery": DISCOVERY_TIMEOUT,
    "upgrade_manifests": Duration.of(minutes=5),
}


def apply(config: Object, release: Release) -> None:
    """Fill in what a v1beta3 or v1beta4 document leaves out."""
    match config:
        case v1beta3.InitConfiguration() | v1beta4.InitConfiguration():
            _init(config)
        case v1beta3.ClusterConfiguration():
            _cluster(config)
            if config.api_server.timeout_for_control_plane is None:
                config.api_server.timeout_for_control_plane = CONTROL_PLANE_TIMEOUT
        case v1beta4.ClusterConfiguration():
            _cluster(config)
            _cluster_of_v1beta4(config, release)
        case v1beta3.JoinConfiguration() | v1beta4.JoinConfiguration():
            _join(config)
        case v1beta4.ResetConfiguration():
            config.certificates_dir = config.certificates_dir or CERTIFICATES_DIR
            config.timeouts = _timeouts(config.timeouts)
        case v1beta4.UpgradeConfiguration():
            _upgrade(config)
        case _:
            raise TypeError(f"{type(config).__qualname__} has no defaults")


def _init(config: v1beta3.InitConfiguration | v1beta4.InitConfiguration) -> None:
    if isinstance(config, v1beta4.InitConfiguration):
        if not config.bootstrap_tokens:
            config.bootstrap_tokens = [v1beta4.BootstrapToken()]
        config.timeouts = _timeouts(config.timeouts)
    elif not config.bootstrap_tokens:
        config.bootstrap_tokens = [v1beta3.BootstrapToken()]
    for token in config.bootstrap_tokens:
        token.ttl = TOKEN_TTL if token.ttl is None else token.ttl
        token.usages = token.usages or list(TOKEN_USAGES)
        token.groups = token.groups or list(TOKEN_GROUPS)
    _endpoint(config.local_api_endpoint)
    _node_registration(config.node_registration)


def _cluster(config: v1beta3.ClusterConfiguration | v1beta4.ClusterConfiguration) -> None:
    config.kubernetes_version = config.kubernetes_version or KUBERNETES_VERSION
    config.networking.service_subnet = config.networking.service_subnet or SERVICE_SUBNET
    config.networking.dns_domain = config.networking.dns_domain or DNS_DOMAIN
    config.certificates_dir = config.certificates_dir or CERTIFICATES_DIR
    config.image_repository = config.image_repository or IMAGE_REPOSITORY
    config.cluster_name = config.cluster_name or CLUSTER_NAME
    if config.etcd.external is None and config.etcd.local is None:
        if isinstance(config, v1beta4.ClusterConfiguration):
            config.etcd.local = v1beta4.LocalEtcd()
        else:
            config.etcd.local = v1beta3.LocalEtcd()
    if config.etcd.local is not None:
        config.etcd.local.data_dir = config.etcd.local.data_dir or ETCD_DATA_DIR


def _cluster_of_v1beta4(config: v1beta4.ClusterConfiguration, release: Release) -> None:
    config.encryption_algorithm = config.encryption_algorithm or ENCRYPTION_ALGORITHM
    if config.certificate_validity_period is None:
        config.certificate_validity_period = CERTIFICATE_VALIDITY
    if config.ca_certificate_validity_period is None:
        config.ca_certificate_validity_period = CA_CERTIFICATE_VALIDITY
    external = config.etcd.external
    if external is not None and release.http_etcd_endpoints and not external.http_endpoints:
        external.http_endpoints = list(external.endpoints or ())
    _environment(config.api_server.extra_envs)
    _environment(config.controller_manager.extra_envs)
    _environment(config.scheduler.extra_envs)
    if config.etcd.local is not None:
        _environment(config.etcd.local.extra_envs)


def _environment(variables: Iterable[v1beta4.EnvVar]) -> None:
    for variable in variables:
        if variable.value_from is not None and variable.value_from.field_ref is not None:
            field_ref = variable.value_from.field_ref
            field_ref.api_version = field_ref.api_version or "v1"


def _join(config: v1beta3.JoinConfiguration | v1beta4.JoinConfiguration) -> None:
    config.ca_cert_path = config.ca_cert_path or CA_CERT_PATH
    if config.control_plane is not None:
        _endpoint(config.control_plane.local_api_endpoint)
    discovery = config.discovery
    if not discovery.tls_bootstrap_token and discovery.bootstrap_token is not None:
        discovery.tls_bootstrap_token = discovery.bootstrap_token.token
    if discovery.file is not None:
        discovery.file.kube_config_path = _path_of_file_url(discovery.file.kube_config_path)
    if isinstance(config, v1beta4.JoinConfiguration):
        config.timeouts = _timeouts(config.timeouts)
    elif config.discovery.timeout is None:
        config.discovery.timeout = DISCOVERY_TIMEOUT
    _node_registration(config.node_registration)


def _upgrade(config: v1beta4.UpgradeConfiguration) -> None:
    for part in (config.apply, config.node):
        part.etcd_upgrade = True if part.etcd_upgrade is None else part.etcd_upgrade
        part.certificate_renewal = True if part.certificate_renewal is None else part.certificate_renewal
        part.image_pull_policy = part.image_pull_policy or IMAGE_PULL_POLICY
        part.image_pull_serial = True if part.image_pull_serial is None else part.image_pull_serial
    config.plan.etcd_upgrade = True if config.plan.etcd_upgrade is None else config.plan.etcd_upgrade
    config.timeouts = _timeouts(config.timeouts)


def _timeouts(timeouts: v1beta4.Timeouts | None) -> v1beta4.Timeouts:
    timeouts = timeouts or v1beta4.Timeouts()
    for name, default in TIMEOUTS.items():
        if getattr(timeouts, name) is None:
            setattr(timeouts, name, default)
    return timeouts


def _endpoint(endpoint: v1beta3.APIEndpoint | v1beta4.APIEndpoint) -> None:
    endpoint.bind_port = endpoint.bind_port or API_SERVER_PORT


def _node_registration(options: v1beta3.NodeRegistrationOptions | v1beta4.NodeRegistrationOptions) -> None:
    options.image_pull_policy = options.image_pull_policy or IMAGE_PULL_POLICY
    if isinstance(options, v1beta4.NodeRegistrationOptions) and options.image_pull_serial is None:
        options.image_pull_serial = True


def _path_of_file_url(location: str) -> str:
    if location[:5].lower() != "file:":
        return location
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(location).path)
