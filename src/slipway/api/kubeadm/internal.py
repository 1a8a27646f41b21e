"""The internal form of the kubeadm configuration: what every version converts to and every artefact is made from.

It is never written to a file.  Its shape is that of v1beta4, with the two timeouts that older versions keep elsewhere.
"""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object

field = msgspec.field


class Arg(Object):
    """A flag of a component, without its dashes.  A name may occur more than once."""

    name: str = ""
    value: str = ""


class EnvVar(Object):
    """A container's environment variable; ``value_from`` is kept as the user wrote it."""

    name: str = ""
    value: str = ""
    value_from: dict[str, Any] | None = None


class HostPathMount(Object):
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
    # v1beta3 and older; v1beta4 has timeouts.controlPlaneComponentHealthCheck.
    timeout_for_control_plane: Duration | None = None


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
    image_repository: str = ""
    image_tag: str = ""
    data_dir: str = ""
    extra_args: list[Arg] = field(default_factory=list)
    extra_envs: list[EnvVar] = field(default_factory=list)
    server_cert_sans: list[str] = field(default_factory=list, name="serverCertSANs")
    peer_cert_sans: list[str] = field(default_factory=list, name="peerCertSANs")


class ExternalEtcd(Object):
    endpoints: list[str] = field(default_factory=list)
    http_endpoints: list[str] = field(default_factory=list)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


class Etcd(Object):
    """Exactly one of the two is set once defaults are in."""

    local: LocalEtcd | None = None
    external: ExternalEtcd | None = None


class ComponentConfig(Object):
    """A kubelet or kube-proxy configuration: the typed document, and whether a user wrote it."""

    group: str = ""
    version: str = ""
    kind: str = ""
    value: dict[str, Any] = field(default_factory=dict)
    user_supplied: bool = False


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
    # Never in a file: what was derived from the version, and the other documents of the file, by API group.
    ci_kubernetes_version: str = ""
    ci_image_repository: str = ""
    component_configs: dict[str, ComponentConfig] = field(default_factory=dict)

    @property
    def control_plane_image_repository(self) -> str:
        return self.ci_image_repository or self.image_repository

    @property
    def key_algorithm(self) -> str:
        """The algorithm for new keys: the retired feature gate PublicKeysECDSA, where it is set, beats the field."""
        gate = self.feature_gates.get("PublicKeysECDSA")
        if gate is None:
            return self.encryption_algorithm
        return "ECDSA-P256" if gate else "RSA-2048"


class Taint(Object):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeRegistrationOptions(Object):
    name: str = ""
    cri_socket: str = ""
    # None: the default taint of a control plane.  An empty list: no taint.
    taints: list[Taint] | None = None
    kubelet_extra_args: list[Arg] = field(default_factory=list)
    ignore_preflight_errors: list[str] = field(default_factory=list)
    image_pull_policy: str = ""
    image_pull_serial: bool | None = None


class APIEndpoint(Object):
    advertise_address: str = ""
    bind_port: int = 0


class BootstrapToken(Object):
    """``token`` is the text ``id.secret``; ``expires`` is RFC 3339 and beats ``ttl``."""

    token: str = ""
    description: str = ""
    ttl: Duration | None = None
    expires: str | None = None
    usages: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)

    @property
    def token_id(self) -> str:
        return self.token.partition(".")[0]

    @property
    def token_secret(self) -> str:
        return self.token.partition(".")[2]


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
    """What ``init`` works from; the cluster-wide part is a document of its own in files."""

    cluster: ClusterConfiguration = field(default_factory=ClusterConfiguration)
    bootstrap_tokens: list[BootstrapToken] = field(default_factory=list)
    dry_run: bool = False
    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    local_api_endpoint: APIEndpoint = field(default_factory=APIEndpoint, name="localAPIEndpoint")
    certificate_key: str = ""
    skip_phases: list[str] = field(default_factory=list)
    patches: Patches | None = None
    timeouts: Timeouts = field(default_factory=Timeouts)


class BootstrapTokenDiscovery(Object):
    token: str = ""
    api_server_endpoint: str = ""
    ca_cert_hashes: list[str] = field(default_factory=list)
    unsafe_skip_ca_verification: bool = field(default=False, name="unsafeSkipCAVerification")


class FileDiscovery(Object):
    kube_config_path: str = ""


class Discovery(Object):
    bootstrap_token: BootstrapTokenDiscovery | None = None
    file: FileDiscovery | None = None
    tls_bootstrap_token: str = ""
    # v1beta3 and older; v1beta4 has timeouts.discovery.
    timeout: Duration | None = None


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
    timeouts: Timeouts = field(default_factory=Timeouts)


class ResetConfiguration(Object):
    cleanup_tmp_dir: bool = False
    certificates_dir: str = ""
    cri_socket: str = ""
    dry_run: bool = False
    force: bool = False
    ignore_preflight_errors: list[str] = field(default_factory=list)
    skip_phases: list[str] = field(default_factory=list)
    unmount_flags: list[str] = field(default_factory=list)
    timeouts: Timeouts = field(default_factory=Timeouts)


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
    timeouts: Timeouts = field(default_factory=Timeouts)
