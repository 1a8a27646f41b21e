"""``kubeadm.k8s.io/v1beta3``: deprecated, still read by kubeadm 1.31 to 1.36, as types of its own.

It differs from v1beta4 in that extra arguments are maps, two timeouts stand where they are used, and what v1beta4
added (timeouts, environment variables, switches for the add-ons, the algorithm and validity of certificates) is not there.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object

field = msgspec.field

API_VERSION = "kubeadm.k8s.io/v1beta3"


class HostPathMount(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"name", "host_path", "mount_path"})

    name: str = ""
    host_path: str = ""
    mount_path: str = ""
    read_only: bool = False
    path_type: str = ""


class ControlPlaneComponent(Object):
    extra_args: dict[str, str] = field(default_factory=dict)
    extra_volumes: list[HostPathMount] = field(default_factory=list)


class APIServer(ControlPlaneComponent):
    cert_sans: list[str] = field(default_factory=list, name="certSANs")
    timeout_for_control_plane: Duration | None = None


class DNS(Object):
    image_repository: str = ""
    image_tag: str = ""


class Networking(Object):
    service_subnet: str = ""
    pod_subnet: str = ""
    dns_domain: str = ""


class LocalEtcd(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"data_dir"})

    image_repository: str = ""
    image_tag: str = ""
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


class ClusterConfiguration(Object):
    etcd: Etcd = field(default_factory=Etcd)
    networking: Networking = field(default_factory=Networking)
    kubernetes_version: str = ""
    control_plane_endpoint: str = ""
    api_server: APIServer = field(default_factory=APIServer)
    controller_manager: ControlPlaneComponent = field(default_factory=ControlPlaneComponent)
    scheduler: ControlPlaneComponent = field(default_factory=ControlPlaneComponent)
    dns: DNS = field(default_factory=DNS)
    certificates_dir: str = ""
    image_repository: str = ""
    feature_gates: dict[str, bool] = field(default_factory=dict)
    cluster_name: str = ""


class Taint(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"key", "effect"})

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeRegistrationOptions(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"taints"})

    name: str = ""
    cri_socket: str = ""
    taints: list[Taint] | None = None
    kubelet_extra_args: dict[str, str] = field(default_factory=dict)
    ignore_preflight_errors: list[str] = field(default_factory=list)
    image_pull_policy: str = ""


class APIEndpoint(Object):
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


class Patches(Object):
    directory: str = ""


class InitConfiguration(Object):
    bootstrap_tokens: list[BootstrapToken] = field(default_factory=list)
    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    local_api_endpoint: APIEndpoint = field(default_factory=APIEndpoint, name="localAPIEndpoint")
    certificate_key: str = ""
    skip_phases: list[str] = field(default_factory=list)
    patches: Patches | None = None


class BootstrapTokenDiscovery(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"token"})

    token: str = ""
    api_server_endpoint: str = ""
    ca_cert_hashes: list[str] = field(default_factory=list)
    unsafe_skip_ca_verification: bool = field(default=False, name="unsafeSkipCAVerification")


class FileDiscovery(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"kube_config_path"})

    kube_config_path: str = ""


class Discovery(Object):
    bootstrap_token: BootstrapTokenDiscovery | None = None
    file: FileDiscovery | None = None
    tls_bootstrap_token: str = ""
    timeout: Duration | None = None


class JoinControlPlane(Object):
    local_api_endpoint: APIEndpoint = field(default_factory=APIEndpoint, name="localAPIEndpoint")
    certificate_key: str = ""


class JoinConfiguration(Object):
    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    ca_cert_path: str = ""
    discovery: Discovery = field(default_factory=Discovery)
    control_plane: JoinControlPlane | None = None
    skip_phases: list[str] = field(default_factory=list)
    patches: Patches | None = None


KINDS: dict[str, type[Object]] = {
    "InitConfiguration": InitConfiguration,
    "ClusterConfiguration": ClusterConfiguration,
    "JoinConfiguration": JoinConfiguration,
}
