"""InitConfiguration and JoinConfiguration of a KubeadmConfig v1beta2: how a node starts or joins a cluster."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.bootstrap.kubeadm_cluster import UNIQUE_NAMES, Arg
from slipway.api.cluster.meta import NOT_EMPTY, Bytes, Int32, Text256, Text512, Time, Type
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of, rule, rules

SkippedPhases = Annotated[list[Text256], items(1, 50, atomic=True)]
Seconds = Annotated[Int32, at_least(0)]


class Taint(Type):
    """A mark on a node that keeps pods away that do not tolerate it."""

    always_printed = frozenset({"key", "effect"})

    key: Annotated[str, REQUIRED] = ""
    """The key of the taint."""
    value: str = ""
    """The value of the taint."""
    effect: Annotated[str, REQUIRED] = ""
    """What it does to pods that do not tolerate it: NoSchedule, PreferNoSchedule or NoExecute."""
    time_added: Time | None = None
    """When it was added."""


class NodeRegistrationOptions(Type):
    """How the node registers itself with the cluster."""

    openapi = NOT_EMPTY

    name: Annotated[str, length(1, 253)] = ""
    """The name of the Node; the host's name without it."""
    cri_socket: Text512 = ""
    """The socket of the container runtime."""
    taints: Annotated[list[Taint] | None, items(0, 100)] = None
    """The taints that the Node starts with. Without it a control plane node gets its usual taint; an empty list means none."""
    kubelet_extra_args: Annotated[
        list[Arg], items(1, 100, keys=("name", "value")), rules(rule(UNIQUE_NAMES, "kubeletExtraArgs name must be unique"))
    ] = field(default_factory=list)
    """Flags for the kubelet; they go before kubeadm's own."""
    ignore_preflight_errors: Annotated[list[Text512], items(1, 50, atomic=True)] = field(default_factory=list)
    """Preflight checks whose errors are only warnings; all for every one."""
    image_pull_policy: Annotated[str, one_of("Always", "IfNotPresent", "Never")] = ""
    """When kubeadm pulls images; IfNotPresent without it."""
    image_pull_serial: bool | None = None
    """Whether kubeadm pulls one image after the other; true without it. From Kubernetes 1.31."""


class APIEndpoint(Type):
    """Where the API server of this node listens."""

    openapi = NOT_EMPTY

    advertise_address: Annotated[str, length(1, 39)] = ""
    """The IP address that the API server tells others."""
    bind_port: Annotated[Int32, at_least(1)] = 0
    """The port that the API server listens on; 6443 without it."""


class Patches(Type):
    """Patches for what kubeadm puts in place."""

    openapi = NOT_EMPTY

    directory: Text512 = ""
    """A directory with files named target[suffix][+patchtype].extension, such as kube-apiserver0+merge.yaml."""


class Timeouts(Type):
    """How long kubeadm waits."""

    openapi = NOT_EMPTY

    control_plane_component_health_check_seconds: Seconds | None = None
    """For a component of the control plane to be healthy; 240 without it."""
    kubelet_health_check_seconds: Seconds | None = None
    """For the kubelet to be healthy; 240 without it."""
    kubernetes_api_call_seconds: Seconds | None = field(default=None, name="kubernetesAPICallSeconds")
    """For a request to the API server; 60 without it."""
    etcd_api_call_seconds: Seconds | None = field(default=None, name="etcdAPICallSeconds")
    """For a request to etcd; 120 without it."""
    tls_bootstrap_seconds: Seconds | None = None
    """For the kubelet of a joining node to get its certificate; 300 without it."""
    discovery_seconds: Seconds | None = None
    """For a joining node to make sure who the API server is; 300 without it."""


class BootstrapToken(Type):
    """A bootstrap token that kubeadm init makes."""

    token: Annotated[str, length(1, 23), REQUIRED] = ""
    """The token: six characters, a dot, sixteen characters."""
    description: Text512 = ""
    """What the token is for."""
    ttl_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long the token lives; a day without it. Not together with expires."""
    expires: Time = ""
    """When the token ends. Not together with ttlSeconds."""
    usages: Annotated[list[Text256], items(1, 100, atomic=True)] = field(default_factory=list)
    """What the token may be used for."""
    groups: Annotated[list[Text256], items(1, 100, atomic=True)] = field(default_factory=list)
    """The groups that its user is in."""


class InitConfiguration(Type):
    """Settings of kubeadm init, for the first control plane node."""

    openapi = NOT_EMPTY

    bootstrap_tokens: Annotated[list[BootstrapToken], items(1, 100, atomic=True)] = field(default_factory=list)
    """Bootstrap tokens to make. They are not written to the cluster's kubeadm-config."""
    node_registration: NodeRegistrationOptions = field(default_factory=NodeRegistrationOptions)
    """How the node registers itself; best the same here and in joinConfiguration."""
    local_api_endpoint: APIEndpoint = field(default_factory=APIEndpoint, name="localAPIEndpoint")
    """Where the API server of this node listens. Without it kubeadm takes the address of the default interface."""
    skip_phases: SkippedPhases = field(default_factory=list)
    """Phases of kubeadm init that are left out."""
    patches: Patches = field(default_factory=Patches)
    """Patches for what kubeadm puts in place."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """How long kubeadm waits."""


class BootstrapTokenDiscovery(Type):
    """Finding the cluster by a bootstrap token."""

    openapi = NOT_EMPTY

    token: Text512 = ""
    """The token that the cluster's information is signed with."""
    api_server_endpoint: Text512 = ""
    """The address of the API server to ask."""
    ca_cert_hashes: Annotated[list[Text512], items(1, 100, atomic=True)] = field(default_factory=list)
    """Hashes of public keys, sha256:hex; the cluster's certificate authority must be one of them."""
    unsafe_skip_ca_verification: bool | None = field(default=None, name="unsafeSkipCAVerification")
    """Whether to join without such hashes, at the risk that another node poses as the control plane."""


class KubeConfigCluster(Type):
    """The cluster of a kubeconfig."""

    openapi = NOT_EMPTY

    server: Text512 = ""
    """The address of the API server; without it that of the Cluster's controlPlaneEndpoint."""
    tls_server_name: Text512 = ""
    """The name that the server's certificate must have; the host of the address without it."""
    insecure_skip_tls_verify: bool | None = field(default=None, name="insecureSkipTLSVerify")
    """Whether the server's certificate goes unchecked."""
    certificate_authority_data: Annotated[Bytes, length(1, 51200)] = ""
    """The certificate authority, PEM in base64; without it the cluster's."""
    proxy_url: Text512 = field(default="", name="proxyURL")
    """The proxy for all requests: http, https or socks5. Without it the environment decides."""


class KubeConfigAuthProvider(Type):
    """A plugin that gives credentials."""

    name: Annotated[Text256, REQUIRED] = ""
    """The name of the plugin."""
    config: dict[str, str] = field(default_factory=dict)
    """Its settings."""


class KubeConfigAuthExecEnv(Type):
    """An environment variable of a command that gives credentials."""

    name: Annotated[Text512, REQUIRED] = ""
    """The name of the variable."""
    value: Annotated[Text512, REQUIRED] = ""
    """Its value."""


class KubeConfigAuthExec(Type):
    """A command that gives credentials on its standard output."""

    command: Annotated[str, length(1, 1024), REQUIRED] = ""
    """The command."""
    args: Annotated[list[Text512], items(1, 100, atomic=True)] = field(default_factory=list)
    """Its arguments."""
    env: Annotated[list[KubeConfigAuthExecEnv], items(1, 100, atomic=True)] = field(default_factory=list)
    """Environment variables beside those of the host."""
    api_version: Text512 = ""
    """The version of what it reads and writes; client.authentication.k8s.io/v1 without it."""
    provide_cluster_info: bool | None = None
    """Whether it is told about the cluster in KUBERNETES_EXEC_INFO."""


class KubeConfigUser(Type):
    """The user of a kubeconfig: authProvider or exec."""

    openapi = NOT_EMPTY

    auth_provider: KubeConfigAuthProvider = field(default_factory=KubeConfigAuthProvider)
    """A plugin that gives credentials."""
    exec: KubeConfigAuthExec = field(default_factory=KubeConfigAuthExec)
    """A command that gives credentials."""


class FileDiscoveryKubeConfig(Type):
    """A kubeconfig that is written to the host."""

    cluster: KubeConfigCluster = field(default_factory=KubeConfigCluster)
    """The cluster. What is not given comes from the Cluster: its endpoint and its certificate authority."""
    user: Annotated[KubeConfigUser, REQUIRED] = field(default_factory=KubeConfigUser)
    """The user."""


class FileDiscovery(Type):
    """Finding the cluster by a kubeconfig."""

    kube_config_path: Annotated[Text512, REQUIRED] = ""
    """The path or URL of the kubeconfig."""
    kube_config: FileDiscoveryKubeConfig = field(default_factory=FileDiscoveryKubeConfig)
    """What to write to kubeConfigPath."""


class Discovery(Type):
    """How a joining node finds the cluster."""

    openapi = NOT_EMPTY

    bootstrap_token: BootstrapTokenDiscovery = field(default_factory=BootstrapTokenDiscovery)
    """By a bootstrap token; not together with file."""
    file: FileDiscovery = field(default_factory=FileDiscovery)
    """By a kubeconfig; not together with bootstrapToken."""
    tls_bootstrap_token: Text512 = ""
    """The token for the kubelet's first certificate; that of bootstrapToken without it. A kubeconfig without credentials needs it."""


class JoinControlPlane(Type):
    """What makes a joining node one of the control plane."""

    local_api_endpoint: APIEndpoint = field(default_factory=APIEndpoint, name="localAPIEndpoint")
    """Where the API server of this node listens."""

    def __bool__(self) -> bool:
        # A pointer in Go: an empty one says all that matters.
        return True


class JoinConfiguration(Type):
    """Settings of kubeadm join, for every node but the first."""

    openapi = NOT_EMPTY

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
    patches: Patches = field(default_factory=Patches)
    """Patches for what kubeadm puts in place."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """How long kubeadm waits."""
