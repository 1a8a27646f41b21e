"""``kubeadm.k8s.io/v1beta4``: the version that kubeadm writes, as types of its own.

Only the shape is here: what is printed even when empty, what is a pointer (``| None``) and what a plain value.
Defaults are in defaults.py, the way to the internal form in conversion.py.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object

field = msgspec.field

API_VERSION = "kubeadm.k8s.io/v1beta4"


class Arg(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"name", "value"})

    name: str = ""
    value: str = ""


class FieldRef(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"field_path"})

    api_version: str = ""
    field_path: str = ""


class ResourceFieldRef(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"resource", "divisor"})

    container_name: str = ""
    resource: str = ""
    divisor: Any = None  # a quantity, which may be written as a number


class KeyRef(Object):
    """A key of a ConfigMap or a Secret."""

    always_printed: ClassVar[frozenset[str]] = frozenset({"key"})

    name: str = ""
    key: str = ""
    optional: bool | None = None


class FileKeyRef(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"volume_name", "path", "key"})

    volume_name: str = ""
    path: str = ""
    key: str = ""
    optional: bool | None = None


class EnvVarSource(Object):
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None
    file_key_ref: FileKeyRef | None = None


class EnvVar(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"name"})

    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class HostPathMount(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"name", "host_path", "mount_path"})

    name: str = ""
    host_path: str = ""
    mount_path: str = ""
    read_only: bool = False
    path_type: str = ""


class ControlPlaneComponent(Object):
    extra_args: list[Arg] = field(default_factory=list)
    extra_volumes: list[HostPathMount] = field(default_factory=list)
    extra_envs: list[EnvVar] = field(default_factory=list)


class APIServer(ControlPlaneComponent):
    cert_sans: list[str] = field(default_factory=list, name="certSANs")


class DNS(Object):
    image_repository: str = ""
    image_tag: str = ""
    disabled: bool = False


class Proxy(Object):
    disabled: bool = False


class Networking(Object):
    service_subnet: str = ""
    pod_subnet: str = ""
    dns_domain: str = ""


class LocalEtcd(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"data_dir"})

    image_repository: str = ""
    image_tag: str = ""
    data_dir: str = ""
    extra_args: list[Arg] = field(default_factory=list)
    extra_envs: list[EnvVar] = field(default_factory=list)
    server_cert_sans: list[str] = field(default_factory=list, name="serverCertSANs")
    peer_cert_sans: list[str] = field(default_factory=list, name="peerCertSANs")


class ExternalEtcd(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"endpoints", "ca_file", "cert_file", "key_file"})

    endpoints: list[str] | None = None
    # Since 1.35; documents.py refuses it for older releases.
    http_endpoints: list[str] = field(default_factory=list)
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
    proxy: Proxy = field(default_factory=Proxy)
    certificates_dir: str = ""
    image_repository: str = ""
    feature_gates: dict[str, bool] = field(default_factory=dict)
    cluster_name: str = ""
    encryption_algorithm: str = ""
    certificate_validity_period: Duration | None = None
    ca_certificate_validity_period: Duration | None = None


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
    kubelet_extra_args: list[Arg] = field(default_factory=list)
    ignore_preflight_errors: list[str] = field(default_factory=list)
    image_pull_policy: str = ""
    image_pull_serial: bool | None = None


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


class Timeouts(Object):
    control_plane_component_health_check: Duration | None = None
    kubelet_health_check: Duration | None = None
    kubernetes_api_call: Duration | None = field(default=None, name="kubernetesAPICall")
    etcd_api_call: Duration | None = field(default=None, name="etcdAPICall")
    tls_bootstrap: Duration | None = None
    discovery: Duration | None = None
    upgrade_manifests: Duration | None = None


class InitConfiguration(Object):
    bootstrap_tokens: list[BootstrapToken] = field(default_factory=list)
    dry_run: bool = False
    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    local_api_endpoint: APIEndpoint = field(default_factory=APIEndpoint, name="localAPIEndpoint")
    certificate_key: str = ""
    skip_phases: list[str] = field(default_factory=list)
    patches: Patches | None = None
    timeouts: Timeouts | None = None


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


class JoinControlPlane(Object):
    local_api_endpoint: APIEndpoint = field(default_factory=APIEndpoint, name="localAPIEndpoint")
    certificate_key: str = ""


class JoinConfiguration(Object):
    dry_run: bool = False
    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    ca_cert_path: str = ""
    discovery: Discovery = field(default_factory=Discovery)
    control_plane: JoinControlPlane | None = None
    skip_phases: list[str] = field(default_factory=list)
    patches: Patches | None = None
    timeouts: Timeouts | None = None


class ResetConfiguration(Object):
    cleanup_tmp_dir: bool = False
    certificates_dir: str = ""
    cri_socket: str = ""
    dry_run: bool = False
    force: bool = False
    ignore_preflight_errors: list[str] = field(default_factory=list)
    skip_phases: list[str] = field(default_factory=list)
    unmount_flags: list[str] = field(default_factory=list)
    timeouts: Timeouts | None = None


class UpgradeApplyConfiguration(Object):
    kubernetes_version: str = ""
    allow_experimental_upgrades: bool | None = None
    allow_rc_upgrades: bool | None = field(default=None, name="allowRCUpgrades")
    certificate_renewal: bool | None = None
    dry_run: bool | None = None
    etcd_upgrade: bool | None = None
    force_upgrade: bool | None = None
    ignore_preflight_errors: list[str] = field(default_factory=list)
    patches: Patches | None = None
    print_config: bool | None = None
    skip_phases: list[str] = field(default_factory=list)
    image_pull_policy: str = ""
    image_pull_serial: bool | None = None


class UpgradeDiffConfiguration(Object):
    kubernetes_version: str = ""
    diff_context_lines: int = field(default=0, name="contextLines")


class UpgradeNodeConfiguration(Object):
    certificate_renewal: bool | None = None
    dry_run: bool | None = None
    etcd_upgrade: bool | None = None
    ignore_preflight_errors: list[str] = field(default_factory=list)
    skip_phases: list[str] = field(default_factory=list)
    patches: Patches | None = None
    image_pull_policy: str = ""
    image_pull_serial: bool | None = None


class UpgradePlanConfiguration(Object):
    kubernetes_version: str = ""
    allow_experimental_upgrades: bool | None = None
    allow_rc_upgrades: bool | None = field(default=None, name="allowRCUpgrades")
    dry_run: bool | None = None
    etcd_upgrade: bool | None = None
    ignore_preflight_errors: list[str] = field(default_factory=list)
    print_config: bool | None = None


class UpgradeConfiguration(Object):
    apply: UpgradeApplyConfiguration = field(default_factory=UpgradeApplyConfiguration)
    diff: UpgradeDiffConfiguration = field(default_factory=UpgradeDiffConfiguration)
    node: UpgradeNodeConfiguration = field(default_factory=UpgradeNodeConfiguration)
    plan: UpgradePlanConfiguration = field(default_factory=UpgradePlanConfiguration)
    timeouts: Timeouts | None = None


KINDS: dict[str, type[Object]] = {
    "InitConfiguration": InitConfiguration,
    "ClusterConfiguration": ClusterConfiguration,
    "JoinConfiguration": JoinConfiguration,
    "ResetConfiguration": ResetConfiguration,
    "UpgradeConfiguration": UpgradeConfiguration,
}
