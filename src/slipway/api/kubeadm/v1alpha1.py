"""``kubeadm.k8s.io/v1alpha1``: what kubeadm 1.8 to 1.10 wrote and 1.11 still read, as types of its own.

One MasterConfiguration holds everything that ``init`` needs, one NodeConfiguration what ``join`` needs.  Fields are
the union of the releases 1.9, 1.10 and 1.11.  Files of that time may lack apiVersion and kind.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object

field = msgspec.field

API_VERSION = "kubeadm.k8s.io/v1alpha1"


class HostPathMount(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"name", "host_path", "mount_path"})

    name: str = ""
    host_path: str = ""
    mount_path: str = ""
    writable: bool = False
    path_type: str = ""


class API(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"advertise_address", "control_plane_endpoint", "bind_port"})

    advertise_address: str = ""
    control_plane_endpoint: str = ""
    bind_port: int = 0


class KubeProxy(Object):
    config: dict[str, Any] | None = None


class KubeletConfiguration(Object):
    base_config: dict[str, Any] | None = None


class Networking(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"service_subnet", "pod_subnet", "dns_domain"})

    service_subnet: str = ""
    pod_subnet: str = ""
    dns_domain: str = ""


class SelfHostedEtcd(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"certificates_dir", "cluster_service_name", "etcd_version", "operator_version"})

    certificates_dir: str = ""
    cluster_service_name: str = ""
    etcd_version: str = ""
    operator_version: str = ""


class Etcd(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"endpoints", "ca_file", "cert_file", "key_file", "data_dir", "image"})

    endpoints: list[str] | None = None
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    data_dir: str = ""
    extra_args: dict[str, str] = field(default_factory=dict)
    image: str = ""
    self_hosted: SelfHostedEtcd | None = None
    server_cert_sans: list[str] = field(default_factory=list, name="serverCertSANs")
    peer_cert_sans: list[str] = field(default_factory=list, name="peerCertSANs")


class AuditPolicyConfiguration(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"path", "log_dir"})

    path: str = ""
    log_dir: str = ""
    log_max_age: int | None = None


class MasterConfiguration(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset(
        {
            "kubernetes_version",
            "cloud_provider",
            "node_name",
            "privileged_pods",
            "token",
            "certificates_dir",
            "image_repository",
            "unified_control_plane_image",
        }
    )

    api: API = field(default_factory=API)
    kube_proxy: KubeProxy = field(default_factory=KubeProxy)
    etcd: Etcd = field(default_factory=Etcd)
    kubelet_configuration: KubeletConfiguration = field(default_factory=KubeletConfiguration)
    networking: Networking = field(default_factory=Networking)
    kubernetes_version: str = ""
    cloud_provider: str = ""
    node_name: str = ""
    authorization_modes: list[str] = field(default_factory=list)
    no_taint_master: bool = False
    privileged_pods: bool = False
    token: str = ""
    token_ttl: Duration | None = field(default=None, name="tokenTTL")
    token_usages: list[str] = field(default_factory=list)
    token_groups: list[str] = field(default_factory=list)
    cri_socket: str = ""
    api_server_extra_args: dict[str, str] = field(default_factory=dict)
    controller_manager_extra_args: dict[str, str] = field(default_factory=dict)
    scheduler_extra_args: dict[str, str] = field(default_factory=dict)
    api_server_extra_volumes: list[HostPathMount] = field(default_factory=list)
    controller_manager_extra_volumes: list[HostPathMount] = field(default_factory=list)
    scheduler_extra_volumes: list[HostPathMount] = field(default_factory=list)
    api_server_cert_sans: list[str] = field(default_factory=list, name="apiServerCertSANs")
    certificates_dir: str = ""
    image_repository: str = ""
    image_pull_policy: str = ""
    unified_control_plane_image: str = ""
    audit_policy: AuditPolicyConfiguration = field(default_factory=AuditPolicyConfiguration)
    feature_gates: dict[str, bool] = field(default_factory=dict)
    cluster_name: str = ""


class NodeConfiguration(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset(
        {
            "ca_cert_path",
            "discovery_file",
            "discovery_token",
            "node_name",
            "tls_bootstrap_token",
            "token",
            "discovery_token_unsafe_skip_ca_verification",
        }
    )

    ca_cert_path: str = ""
    discovery_file: str = ""
    discovery_token: str = ""
    discovery_token_api_servers: list[str] = field(default_factory=list, name="discoveryTokenAPIServers")
    discovery_timeout: Duration | None = None
    node_name: str = ""
    tls_bootstrap_token: str = ""
    token: str = ""
    cri_socket: str = ""
    cluster_name: str = ""
    discovery_token_ca_cert_hashes: list[str] = field(default_factory=list, name="discoveryTokenCACertHashes")
    discovery_token_unsafe_skip_ca_verification: bool = field(default=False, name="discoveryTokenUnsafeSkipCAVerification")
    feature_gates: dict[str, bool] = field(default_factory=dict)


KINDS: dict[str, type[Object]] = {
    "MasterConfiguration": MasterConfiguration,
    "NodeConfiguration": NodeConfiguration,
}
