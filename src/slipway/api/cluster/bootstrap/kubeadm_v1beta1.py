"""The parts of a KubeadmConfig v1beta1 that become kubeadm's own configuration (see ``v1beta1``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import field

from slipway.api.cluster.bootstrap import kubeadm_cluster, kubeadm_node
from slipway.api.cluster.bootstrap.kubeadm_cluster import EnvVar
from slipway.api.cluster.bootstrap.kubeadm_node import Taint
from slipway.api.cluster.meta import Bytes, Int32, Text256, Text512, Time, Type
from slipway.api.machinery.openapi import REQUIRED, between, items, length, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping

# v1beta1 says nothing of an object as a whole.
ANY: Mapping[str, Any] = {}

AlternativeNames = Annotated[list[Annotated[str, length(1, 253)]], items(None, 100)]
SkippedPhases = Annotated[list[Text256], items(None, 50)]
Envs = Annotated[list[EnvVar], items(None, 100)]


class HostPathMount(Type):
    """A directory or file of the host that is mounted into a component."""

    always_printed = frozenset({"name", "host_path", "mount_path"})

    name: Annotated[Text512, REQUIRED] = ""
    """The name of the volume in the pod."""
    host_path: Annotated[Text512, REQUIRED] = ""
    """The path on the host."""
    mount_path: Annotated[Text512, REQUIRED] = ""
    """The path in the pod."""
    read_only: bool = False
    """Whether the component may only read it."""
    path_type: str = ""
    """The type of what is at hostPath, such as File or DirectoryOrCreate."""


class ControlPlaneComponent(Type):
    """Settings of a component of the control plane."""

    extra_args: dict[str, str] = field(default_factory=dict)
    """Flags for the component; they go before kubeadm's own."""
    extra_volumes: Annotated[list[HostPathMount], items(None, 100)] = field(default_factory=list)
    """Volumes of the host that are mounted into the component."""
    extra_envs: Envs = field(default_factory=list)
    """Environment variables for the component; they go before kubeadm's own. From Kubernetes 1.31."""


class APIServer(ControlPlaneComponent):
    """Settings of the API server."""

    cert_sans: AlternativeNames = field(default_factory=list, name="certSANs")
    """More subject alternative names for the API server's certificate."""
    timeout_for_control_plane: str | None = None
    """How long kubeadm waits for the API server, as a duration."""


class DNS(kubeadm_cluster.DNS):
    """The DNS add-on of the cluster."""

    openapi = ANY


class LocalEtcd(Type):
    """An etcd member that kubeadm runs on each control plane node."""

    image_repository: Text512 = ""
    """Where its image is pulled from; without it the cluster's imageRepository."""
    image_tag: Text256 = ""
    """The tag of its image; kubeadm does not upgrade etcd while this is set."""
    data_dir: Text512 = ""
    """Where etcd keeps its data; /var/lib/etcd without it."""
    extra_args: dict[str, str] = field(default_factory=dict)
    """Flags for etcd; they go before kubeadm's own."""
    extra_envs: Envs = field(default_factory=list)
    """Environment variables for etcd; they go before kubeadm's own. From Kubernetes 1.31."""
    server_cert_sans: AlternativeNames = field(default_factory=list, name="serverCertSANs")
    """More subject alternative names for etcd's server certificate."""
    peer_cert_sans: AlternativeNames = field(default_factory=list, name="peerCertSANs")
    """More subject alternative names for etcd's peer certificate."""


class ExternalEtcd(kubeadm_cluster.ExternalEtcd):
    """An etcd cluster that somebody else runs. Its files must be on the hosts already, or be among the files of this configuration."""

    always_printed = frozenset({"ca_file", "cert_file", "key_file"})

    endpoints: Annotated[list[Text512], items(None, 50), REQUIRED] = field(default_factory=list)


class Etcd(Type):
    """The etcd of the cluster: one on the control plane nodes, or one elsewhere."""

    local: LocalEtcd | None = None
    """Settings of the etcd on the control plane nodes; not together with external."""
    external: ExternalEtcd | None = None
    """How to reach an etcd elsewhere; not together with local."""


class Networking(Type):
    """The networks of the cluster. Lost in v1beta2: they come from the Cluster."""

    service_subnet: Annotated[str, length(1, 1024)] = ""
    """The subnets of services, with commas between them."""
    pod_subnet: Annotated[str, length(1, 1024)] = ""
    """The subnets of pods, with commas between them."""
    dns_domain: Annotated[str, length(1, 253)] = ""
    """The DNS domain of services."""


class TypeMeta(Type):
    """kubeadm's own apiVersion and kind, which v1beta1 lets users write. Lost in v1beta2."""

    api_version: str = ""
    """The group and version of kubeadm's type."""
    kind: str = ""
    """The kind of kubeadm's type."""


class ClusterConfiguration(TypeMeta):
    """Settings of the whole cluster."""

    etcd: Etcd = field(default_factory=Etcd)
    """The etcd of the cluster; one on the control plane nodes without it."""
    networking: Networking = field(default_factory=Networking)
    """The networks of the cluster. Lost in v1beta2: they come from the Cluster."""
    kubernetes_version: Text256 = ""
    """The version of the control plane. Lost in v1beta2: it comes from the Machine."""
    control_plane_endpoint: Text512 = ""
    """The stable address of the control plane, with or without a port: an IP address or a DNS name. Without it the Cluster's endpoint."""
    api_server: APIServer = field(default_factory=APIServer)
    """Settings of the API server."""
    controller_manager: ControlPlaneComponent = field(default_factory=ControlPlaneComponent)
    """Settings of the controller manager."""
    scheduler: ControlPlaneComponent = field(default_factory=ControlPlaneComponent)
    """Settings of the scheduler."""
    dns: DNS = field(default_factory=DNS)
    """The DNS add-on."""
    certificates_dir: Text512 = ""
    """Where certificates are on the hosts; /etc/kubernetes/pki without it."""
    image_repository: Text512 = ""
    """Where images are pulled from; registry.k8s.io without it."""
    feature_gates: dict[str, bool] = field(default_factory=dict)
    """kubeadm's feature gates, on or off."""
    certificate_validity_period_days: Annotated[Int32, between(1, 1095)] = 0
    """How long certificates are valid that kubeadm makes; 365 days without it. From Kubernetes 1.31."""
    ca_certificate_validity_period_days: Annotated[Int32, between(1, 36500)] = 0
    """How long the certificate authorities are valid that Cluster API makes; 3650 days without it. It cannot be changed."""
    encryption_algorithm: Annotated[str, one_of(*kubeadm_cluster.ENCRYPTION_ALGORITHMS)] = ""
    """The kind of key for certificates; RSA-2048 without it."""
    cluster_name: Annotated[str, length(1, 63)] = ""
    """The name of the cluster. Lost in v1beta2: it comes from the Cluster."""


class NodeRegistrationOptions(Type):
    """How the node registers itself with the cluster."""

    name: Annotated[str, length(1, 253)] = ""
    """The name of the Node; the host's name without it."""
    cri_socket: Text512 = ""
    """The socket of the container runtime."""
    # Go's own MarshalJSON keeps an empty list apart from none, as a pointer would.
    taints: Annotated[list[Taint] | None, items(None, 100)] = None
    """The taints that the Node starts with. Without it a control plane node gets its usual taint; an empty list means none."""
    kubelet_extra_args: dict[str, str] = field(default_factory=dict)
    """Flags for the kubelet; they go before kubeadm's own."""
    ignore_preflight_errors: Annotated[list[Text512], items(None, 50)] = field(default_factory=list)
    """Preflight checks whose errors are only warnings; all for every one."""
    image_pull_policy: Annotated[str, one_of("Always", "IfNotPresent", "Never")] = ""
    """When kubeadm pulls images; IfNotPresent without it."""
    image_pull_serial: bool | None = None
    """Whether kubeadm pulls one image after the other; true without it. From Kubernetes 1.31."""


class APIEndpoint(kubeadm_node.APIEndpoint):
    """Where the API server of this node listens."""

    openapi = ANY

    bind_port: Int32 = 0


class Patches(kubeadm_node.Patches):
    """Patches for what kubeadm puts in place."""

    openapi = ANY


class BootstrapToken(Type):
    """A bootstrap token that kubeadm init makes."""

    token: Annotated[str, REQUIRED] = ""
    """The token: six characters, a dot, sixteen characters."""
    description: Text512 = ""
    """What the token is for."""
    ttl: str | None = None
    """How long the token lives, as a duration; a day without it. Not together with expires."""
    expires: Time | None = None
    """When the token ends. Not together with ttl."""
    usages: Annotated[list[Text256], items(None, 100)] = field(default_factory=list)
    """What the token may be used for."""
    groups: Annotated[list[Text256], items(None, 100)] = field(default_factory=list)
    """The groups that its user is in."""


class InitConfiguration(TypeMeta):
    """Settings of kubeadm init, for the first control plane node."""

    bootstrap_tokens: Annotated[list[BootstrapToken], items(None, 100)] = field(default_factory=list)
    """Bootstrap tokens to make. They are not written to the cluster's kubeadm-config."""
    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    """How the node registers itself; best the same here and in joinConfiguration."""
    local_api_endpoint: APIEndpoint = field(default_factory=APIEndpoint, name="localAPIEndpoint")
    """Where the API server of this node listens. Without it kubeadm takes the address of the default interface."""
    skip_phases: SkippedPhases = field(default_factory=list)
    """Phases of kubeadm init that are left out."""
    patches: Patches | None = None
    """Patches for what kubeadm puts in place."""


class BootstrapTokenDiscovery(Type):
    """Finding the cluster by a bootstrap token."""

    token: Text512 = ""
    """The token that the cluster's information is signed with."""
    api_server_endpoint: Text512 = ""
    """The address of the API server to ask."""
    ca_cert_hashes: Annotated[list[Text512], items(None, 100)] = field(default_factory=list)
    """Hashes of public keys, sha256:hex; the cluster's certificate authority must be one of them."""
    unsafe_skip_ca_verification: bool = field(default=False, name="unsafeSkipCAVerification")
    """Whether to join without such hashes, at the risk that another node poses as the control plane."""


class KubeConfigCluster(Type):
    """The cluster of a kubeconfig."""

    server: Text512 = ""
    """The address of the API server; without it that of the Cluster's controlPlaneEndpoint."""
    tls_server_name: Text512 = ""
    """The name that the server's certificate must have; the host of the address without it."""
    insecure_skip_tls_verify: bool = field(default=False, name="insecureSkipTLSVerify")
    """Whether the server's certificate goes unchecked."""
    certificate_authority_data: Annotated[Bytes, length(1, 51200)] = ""
    """The certificate authority, PEM in base64; without it the cluster's."""
    proxy_url: Text512 = field(default="", name="proxyURL")
    """The proxy for all requests: http, https or socks5. Without it the environment decides."""


class KubeConfigAuthProvider(kubeadm_node.KubeConfigAuthProvider):
    """A plugin that gives credentials."""

    always_printed = frozenset({"name"})


class KubeConfigAuthExecEnv(kubeadm_node.KubeConfigAuthExecEnv):
    """An environment variable of a command that gives credentials."""

    always_printed = frozenset({"name", "value"})


class KubeConfigAuthExec(Type):
    """A command that gives credentials on its standard output."""

    always_printed = frozenset({"command"})

    command: Annotated[str, length(1, 1024), REQUIRED] = ""
    """The command."""
    args: Annotated[list[Text512], items(None, 100)] = field(default_factory=list)
    """Its arguments."""
    env: Annotated[list[KubeConfigAuthExecEnv], items(None, 100)] = field(default_factory=list)
    """Environment variables beside those of the host."""
    api_version: Text512 = ""
    """The version of what it reads and writes; client.authentication.k8s.io/v1 without it."""
    provide_cluster_info: bool = False
    """Whether it is told about the cluster in KUBERNETES_EXEC_INFO."""


class KubeConfigUser(Type):
    """The user of a kubeconfig: authProvider or exec."""

    auth_provider: KubeConfigAuthProvider | None = None
    """A plugin that gives credentials."""
    exec: KubeConfigAuthExec | None = None
    """A command that gives credentials."""


class FileDiscoveryKubeConfig(Type):
    """A kubeconfig that is written to the host."""

    cluster: KubeConfigCluster | None = None
    """The cluster. What is not given comes from the Cluster: its endpoint and its certificate authority."""
    user: Annotated[KubeConfigUser, REQUIRED] = field(default_factory=KubeConfigUser)
    """The user."""


class FileDiscovery(Type):
    """Finding the cluster by a kubeconfig."""

    always_printed = frozenset({"kube_config_path"})

    kube_config_path: Annotated[Text512, REQUIRED] = ""
    """The path or URL of the kubeconfig."""
    kube_config: FileDiscoveryKubeConfig | None = None
    """What to write to kubeConfigPath."""


class Discovery(Type):
    """How a joining node finds the cluster."""

    bootstrap_token: BootstrapTokenDiscovery | None = None
    """By a bootstrap token; not together with file."""
    file: FileDiscovery | None = None
    """By a kubeconfig; not together with bootstrapToken."""
    tls_bootstrap_token: Text512 = ""
    """The token for the kubelet's first certificate; that of bootstrapToken without it."""
    timeout: str | None = None
    """How long kubeadm waits for the kubelet's certificate, as a duration."""


class JoinControlPlane(Type):
    """What makes a joining node one of the control plane."""

    local_api_endpoint: APIEndpoint = field(default_factory=APIEndpoint, name="localAPIEndpoint")
    """Where the API server of this node listens."""


class JoinConfiguration(TypeMeta):
    """Settings of kubeadm join, for every node but the first."""

    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    """How the node registers itself; best the same here and in initConfiguration."""
    ca_cert_path: Text512 = ""
    """Where the certificate authority is on the host; /etc/kubernetes/pki/ca.crt without it."""
    discovery: Discovery = field(default_factory=Discovery)
    """How the node finds the cluster. What is missing is filled in for each Machine."""
    control_plane: JoinControlPlane | None = None
    """What makes the node one of the control plane; a worker without it."""
    skip_phases: SkippedPhases = field(default_factory=list)
    """Phases of kubeadm join that are left out."""
    patches: Patches | None = None
    """Patches for what kubeadm puts in place."""
