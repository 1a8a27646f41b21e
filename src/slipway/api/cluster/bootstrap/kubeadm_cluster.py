"""ClusterConfiguration of a KubeadmConfig v1beta2: the components of the control plane, etcd, DNS.

The names and the limits are those of Cluster API 1.14; what they turn into for a Kubernetes version is not decided here.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.meta import NOT_EMPTY, Int32, Text256, Text512, Type
from slipway.api.machinery.openapi import QUANTITY_PATTERN, REQUIRED, between, default, items, length, one_of, pattern, rule, rules

# What environment variables refer to is taken whole by server-side apply.
_WHOLE = {"x-kubernetes-map-type": "atomic"}

AlternativeNames = Annotated[list[Annotated[str, length(1, 253)]], items(1, 100, atomic=True)]
ENCRYPTION_ALGORITHMS = ("ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096")


class Arg(Type):
    """A flag of a component and its value."""

    name: Annotated[str, length(1, 256), REQUIRED] = ""
    """The name of the flag, without dashes in front."""
    value: Annotated[str | None, length(0, 1024), REQUIRED] = None
    """The value of the flag."""


UNIQUE_NAMES = "self.all(x, self.exists_one(y, x.name == y.name))"
Args = Annotated[list[Arg], items(1, 100, keys=("name", "value")), rules(rule(UNIQUE_NAMES, "extraArgs name must be unique"))]


class FieldRef(Type):
    """A field of the pod."""

    openapi = _WHOLE
    always_printed = frozenset({"field_path"})

    api_version: str = ""
    """The version of the schema that fieldPath is written in; v1 without it."""
    field_path: Annotated[str, REQUIRED] = ""
    """The path of the field."""


class ResourceFieldRef(Type):
    """A resource of a container."""

    openapi = _WHOLE
    always_printed = frozenset({"resource"})

    container_name: str = ""
    """The name of the container."""
    resource: Annotated[str, REQUIRED] = ""
    """The resource, such as limits.memory."""
    divisor: Annotated[int | str | None, pattern(QUANTITY_PATTERN)] = None
    """The unit of the result; 1 without it."""


class KeyRef(Type):
    """A key of a ConfigMap or of a Secret."""

    openapi = _WHOLE
    always_printed = frozenset({"key"})

    name: Annotated[str, default("")] = ""
    """The name of the object."""
    key: Annotated[str, REQUIRED] = ""
    """The key in its data."""
    optional: bool | None = None
    """Whether it may be missing."""


class FileKeyRef(Type):
    """A key of a file with environment variables in a volume."""

    openapi = _WHOLE
    always_printed = frozenset({"volume_name", "path", "key"})

    volume_name: Annotated[str, REQUIRED] = ""
    """The name of the volume."""
    path: Annotated[str, REQUIRED] = ""
    """The path of the file in the volume."""
    key: Annotated[str, REQUIRED] = ""
    """The key in the file."""
    optional: Annotated[bool | None, default(False)] = None
    """Whether it may be missing."""


class EnvVarSource(Type):
    """Where the value of an environment variable comes from."""

    field_ref: FieldRef | None = None
    """A field of the pod."""
    resource_field_ref: ResourceFieldRef | None = None
    """A resource of a container."""
    config_map_key_ref: KeyRef | None = None
    """A key of a ConfigMap."""
    secret_key_ref: KeyRef | None = None
    """A key of a Secret in the pod's namespace."""
    file_key_ref: FileKeyRef | None = None
    """A key of a file in a volume."""


class EnvVar(Type):
    """An environment variable of a container."""

    always_printed = frozenset({"name"})

    name: Annotated[str, REQUIRED] = ""
    """The name of the variable."""
    value: str = ""
    """Its value; $(NAME) stands for another variable."""
    value_from: EnvVarSource | None = None
    """Where its value comes from, if value is empty."""


Envs = Annotated[list[EnvVar] | None, items(1, 100, atomic=True)]


class HostPathMount(Type):
    """A directory or file of the host that is mounted into a component."""

    name: Annotated[Text512, REQUIRED] = ""
    """The name of the volume in the pod."""
    host_path: Annotated[Text512, REQUIRED] = ""
    """The path on the host."""
    mount_path: Annotated[Text512, REQUIRED] = ""
    """The path in the pod."""
    read_only: bool | None = None
    """Whether the component may only read it."""
    path_type: str = ""
    """The type of what is at hostPath, such as File or DirectoryOrCreate."""


Volumes = Annotated[list[HostPathMount], items(1, 100, atomic=True)]


class ControlPlaneComponent(Type):
    """Settings of a component of the control plane."""

    openapi = NOT_EMPTY

    extra_args: Args = field(default_factory=list)
    """Flags for the component; they go before kubeadm's own."""
    extra_volumes: Volumes = field(default_factory=list)
    """Volumes of the host that are mounted into the component."""
    extra_envs: Envs = None
    """Environment variables for the component; they go before kubeadm's own. From Kubernetes 1.31."""


class APIServer(ControlPlaneComponent):
    """Settings of the API server."""

    cert_sans: AlternativeNames = field(default_factory=list, name="certSANs")
    """More subject alternative names for the API server's certificate."""


class ControllerManager(ControlPlaneComponent):
    """Settings of the controller manager."""


class Scheduler(ControlPlaneComponent):
    """Settings of the scheduler."""


class DNS(Type):
    """The DNS add-on of the cluster."""

    openapi = NOT_EMPTY

    image_repository: Text512 = ""
    """Where its image is pulled from; without it the cluster's imageRepository."""
    image_tag: Text256 = ""
    """The tag of its image; kubeadm does not upgrade the add-on while this is set."""


class LocalEtcd(Type):
    """An etcd member that kubeadm runs on each control plane node."""

    openapi = NOT_EMPTY

    image_repository: Text512 = ""
    """Where its image is pulled from; without it the cluster's imageRepository."""
    image_tag: Text256 = ""
    """The tag of its image; kubeadm does not upgrade etcd while this is set."""
    data_dir: Text512 = ""
    """Where etcd keeps its data; /var/lib/etcd without it."""
    extra_args: Args = field(default_factory=list)
    """Flags for etcd; they go before kubeadm's own."""
    extra_envs: Envs = None
    """Environment variables for etcd; they go before kubeadm's own. From Kubernetes 1.31."""
    server_cert_sans: AlternativeNames = field(default_factory=list, name="serverCertSANs")
    """More subject alternative names for etcd's server certificate."""
    peer_cert_sans: AlternativeNames = field(default_factory=list, name="peerCertSANs")
    """More subject alternative names for etcd's peer certificate."""


class ExternalEtcd(Type):
    """An etcd cluster that somebody else runs. Its files must be on the hosts already, or be among the files of this configuration."""

    endpoints: Annotated[list[Text512], items(1, 50, atomic=True), REQUIRED] = field(default_factory=list)
    """The addresses of etcd's members."""
    ca_file: Annotated[Text512, REQUIRED] = ""
    """The file with the certificate authority of etcd."""
    cert_file: Annotated[Text512, REQUIRED] = ""
    """The file with the client certificate."""
    key_file: Annotated[Text512, REQUIRED] = ""
    """The file with the client's key."""


class Etcd(Type):
    """The etcd of the cluster: one on the control plane nodes, or one elsewhere."""

    openapi = NOT_EMPTY

    local: LocalEtcd = field(default_factory=LocalEtcd)
    """Settings of the etcd on the control plane nodes; not together with external."""
    external: ExternalEtcd = field(default_factory=ExternalEtcd)
    """How to reach an etcd elsewhere; not together with local."""


class ClusterConfiguration(Type):
    """Settings of the whole cluster."""

    openapi = NOT_EMPTY

    etcd: Etcd = field(default_factory=Etcd)
    """The etcd of the cluster; one on the control plane nodes without it."""
    control_plane_endpoint: Text512 = ""
    """The stable address of the control plane, with or without a port: an IP address or a DNS name. Without it the Cluster's endpoint."""
    api_server: APIServer = field(default_factory=APIServer)
    """Settings of the API server."""
    controller_manager: ControllerManager = field(default_factory=ControllerManager)
    """Settings of the controller manager."""
    scheduler: Scheduler = field(default_factory=Scheduler)
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
    encryption_algorithm: Annotated[str, one_of(*ENCRYPTION_ALGORITHMS)] = ""
    """The kind of key for certificates; RSA-2048 without it. From Kubernetes 1.31, ECDSA-P384 from 1.34.
    A change concerns what is made after it: authorities and service account keys stay as they are."""
