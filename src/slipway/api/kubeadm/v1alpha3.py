"""``kubeadm.k8s.io/v1alpha3``: what kubeadm 1.12 wrote and 1.14 still read, as types of its own.

The first version with InitConfiguration, ClusterConfiguration and JoinConfiguration as documents of their own; the
kubelet's and kube-proxy's configuration left it.  ClusterStatus was kept in the cluster, never by a user.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object

field = msgspec.field

API_VERSION = "kubeadm.k8s.io/v1alpha3"


class HostPathMount(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"name", "host_path", "mount_path"})

    name: str = ""
    host_path: str = ""
    mount_path: str = ""
    writable: bool = False
    path_type: str = ""


class Networking(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"service_subnet", "pod_subnet", "dns_domain"})

    service_subnet: str = ""
    pod_subnet: str = ""
    dns_domain: str = ""


class LocalEtcd(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"image", "data_dir"})

    image: str = ""
    data_dir: str = ""
    extra_args: dict[str, str] = field(default_factory=dict)
    server_cert_sans: list[str] = field(default_factory=list, name="serverCertSANs")
    peer_cert_sans: list[str] = field(default_factory=list, name="peerCertSANs")


class ExternalEtcd(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"endpoints", "ca_file", "cert_file", "key_file"})

    endpoints: list[str] | None = None
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


class Etcd(Object):
    local: LocalEtcd | None = None
    external: ExternalEtcd | None = None


class AuditPolicyConfiguration(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"path", "log_dir"})

    path: str = ""
    log_dir: str = ""
    log_max_age: int | None = None


class ClusterConfiguration(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset(
        {"kubernetes_version", "control_plane_endpoint", "certificates_dir", "image_repository", "unified_control_plane_image"}
    )

    etcd: Etcd = field(default_factory=Etcd)
    networking: Networking = field(default_factory=Networking)
    kubernetes_version: str = ""
    control_plane_endpoint: str = ""
    api_server_extra_args: dict[str, str] = field(default_factory=dict)
    controller_manager_extra_args: dict[str, str] = field(default_factory=dict)
    scheduler_extra_args: dict[str, str] = field(default_factory=dict)
    api_server_extra_volumes: list[HostPathMount] = field(default_factory=list)
    controller_manager_extra_volumes: list[HostPathMount] = field(default_factory=list)
    scheduler_extra_volumes: list[HostPathMount] = field(default_factory=list)
    api_server_cert_sans: list[str] = field(default_factory=list, name="apiServerCertSANs")
    certificates_dir: str = ""
    image_repository: str = ""
    unified_control_plane_image: str = ""
    audit_policy: AuditPolicyConfiguration = field(default_factory=AuditPolicyConfiguration)
    feature_gates: dict[str, bool] = field(default_factory=dict)
    cluster_name: str = ""


class Taint(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"key", "effect"})

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeRegistrationOptions(Object):
    name: str = ""
    cri_socket: str = ""
    taints: list[Taint] | None = None
    kubelet_extra_args: dict[str, str] = field(default_factory=dict)


class APIEndpoint(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"advertise_address", "bind_port"})

    advertise_address: str = ""
    bind_port: int = 0


class BootstrapToken(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"token"})

    token: str | None = None
    description: str = ""
    ttl: Duration | None = None
    expires: str | None = None
    usages: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


class InitConfiguration(Object):
    bootstrap_tokens: list[BootstrapToken] = field(default_factory=list)
    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    api_endpoint: APIEndpoint = field(default_factory=APIEndpoint)


class ClusterStatus(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"api_endpoints"})

    api_endpoints: dict[str, APIEndpoint] = field(default_factory=dict)


class JoinConfiguration(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset(
        {"ca_cert_path", "discovery_file", "discovery_token", "tls_bootstrap_token", "token", "discovery_token_unsafe_skip_ca_verification"}
    )

    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    ca_cert_path: str = ""
    discovery_file: str = ""
    discovery_token: str = ""
    discovery_token_api_servers: list[str] = field(default_factory=list, name="discoveryTokenAPIServers")
    discovery_timeout: Duration | None = None
    tls_bootstrap_token: str = ""
    token: str = ""
    cluster_name: str = ""
    discovery_token_ca_cert_hashes: list[str] = field(default_factory=list, name="discoveryTokenCACertHashes")
    discovery_token_unsafe_skip_ca_verification: bool = field(default=False, name="discoveryTokenUnsafeSkipCAVerification")
    control_plane: bool = False
    api_endpoint: APIEndpoint = field(default_factory=APIEndpoint)
    feature_gates: dict[str, bool] = field(default_factory=dict)


KINDS: dict[str, type[Object]] = {
    "InitConfiguration": InitConfiguration,
    "ClusterConfiguration": ClusterConfiguration,
    "ClusterStatus": ClusterStatus,
    "JoinConfiguration": JoinConfiguration,
}
