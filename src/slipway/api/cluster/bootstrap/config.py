"""``bootstrap.cluster.x-k8s.io/v1beta2``: KubeadmConfig and KubeadmConfigTemplate."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.bootstrap.kubeadm_cluster import ClusterConfiguration
from slipway.api.cluster.bootstrap.kubeadm_node import InitConfiguration, JoinConfiguration
from slipway.api.cluster.meta import (
    CONDITIONS,
    NOT_EMPTY,
    Condition,
    DeprecatedCondition,
    Int32,
    Int64,
    ObjectMeta,
    ObjectMetadata,
    Text256,
    Text512,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, at_least, between, items, length, one_of, rule, rules

API_VERSION = "bootstrap.cluster.x-k8s.io/v1beta2"

CLOUD_CONFIG = "cloud-config"
IGNITION = "ignition"

RAW = "Raw"
TEMPLATE = "Template"
# The form of pull request 13433's draft, which upstream does not have.
GO_TEMPLATE = "go-template"

# The names of partition types that are translated; anything else is a GUID.
PARTITION_TYPES = ("Linux", "LinuxSwap", "LinuxRAID", "LVM", "Fat32", "NTFS", "LinuxExtended")
_PARTITION_TYPE = rule(
    f"self.matches('^({'|'.join(PARTITION_TYPES)}|[0-9A-Fa-f]{{8}}(-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}})$')",
    f"partitionType must be one of {', '.join(PARTITION_TYPES)} or a full GPT partition GUID",
)
_LAYOUT = {
    "x-kubernetes-validations": [
        rule(
            "[has(self.layout),has(self.diskLayout)].filter(x,x==true).size() == 1",
            "exactly one of the fields in [layout diskLayout] must be set",
        )
    ]
}

Commands = Annotated[list[Annotated[str, length(1, 10240)]], items(1, 1000, atomic=True)]


class SecretKey(Type):
    """A key of a Secret in the namespace of the object."""

    name: Annotated[str, length(1, 253), REQUIRED] = ""
    """The name of the Secret."""
    key: Annotated[Text256, REQUIRED] = ""
    """The key in its data."""


class FileSource(Type):
    """Where the content of a file comes from."""

    secret: Annotated[SecretKey, REQUIRED] = field(default_factory=SecretKey)
    """A key of a Secret."""


class PasswdSource(Type):
    """Where a password comes from."""

    secret: Annotated[SecretKey, REQUIRED] = field(default_factory=SecretKey)
    """A key of a Secret."""


class File(Type):
    """A file that is written to the host before kubeadm runs."""

    path: Annotated[Text512, REQUIRED] = ""
    """The full path of the file."""
    owner: Text256 = ""
    """Its owner, such as root:root."""
    permissions: Annotated[str, length(1, 16)] = ""
    """Its permissions, such as 0640."""
    encoding: Annotated[str, one_of("base64", "gzip", "gzip+base64")] = ""
    """How content is encoded."""
    append: bool | None = None
    """Whether content is added to the end of a file that is there."""
    content: Annotated[str, length(1, 10240)] = ""
    """What is in the file."""
    content_from: FileSource = field(default_factory=FileSource)
    """Where what is in the file comes from, in place of content."""
    content_format: Annotated[str, one_of(RAW, TEMPLATE, GO_TEMPLATE)] = ""
    """What content, or what contentFrom leads to, is.
    Raw: the text as it is; so too without this field.
    Template: a Go template with the variable .controlPlane.version, the control plane's Kubernetes version such as v1.35.0.
    go-template: a Go template with the variable .KubernetesVersion, the version that the node joins with."""


class User(Type):
    """A user that is made on the host."""

    name: Annotated[Text256, REQUIRED] = ""
    """The name of the user."""
    gecos: Text256 = ""
    """The GECOS field."""
    groups: Text256 = ""
    """More groups that the user is in, with commas between them."""
    home_dir: Text256 = ""
    """The home directory."""
    inactive: bool | None = None
    """Whether the user is inactive."""
    shell: Text256 = ""
    """The login shell."""
    passwd: Text256 = ""
    """The hash of the password."""
    passwd_from: PasswdSource = field(default_factory=PasswdSource)
    """Where the hash of the password comes from, in place of passwd."""
    primary_group: Text256 = ""
    """The primary group."""
    lock_password: bool | None = None
    """Whether logging in with a password is barred."""
    sudo: Text256 = ""
    """A sudo rule."""
    ssh_authorized_keys: Annotated[list[Annotated[str, length(1, 2048)]], items(None, 100, atomic=True)] = field(default_factory=list)
    """Public keys that may log in by ssh."""


class NTP(Type):
    """How the host keeps time."""

    openapi = NOT_EMPTY

    servers: Annotated[list[Text512], items(None, 100, atomic=True)] = field(default_factory=list)
    """The servers to ask."""
    enabled: bool | None = None
    """Whether NTP is on."""


class PartitionSpec(Type):
    """One partition of a disk."""

    percentage: Annotated[Int32, between(1, 100), REQUIRED] = 0
    """How much of the disk it takes."""
    partition_type: Annotated[str, length(1, 36), rules(_PARTITION_TYPE)] = ""
    """Its type: Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended, or a GUID of a GPT partition type."""


class Partition(Type):
    """How a disk is partitioned."""

    openapi = _LAYOUT

    device: Annotated[Text256, REQUIRED] = ""
    """The name of the device."""
    layout: bool | None = None
    """True: one partition over the whole device. False: none, or those that are there. Not together with diskLayout."""
    overwrite: bool | None = None
    """Whether to do so even if there is a partition or a file system on the device. With care: what is there is lost."""
    table_type: Annotated[str, one_of("mbr", "gpt")] = ""
    """The kind of partition table: mbr, so too without this field, or gpt."""
    disk_layout: Annotated[list[PartitionSpec], items(1, 100, atomic=True)] = field(default_factory=list)
    """The partitions in their order; their percentages may not add up to more than 100. Not together with layout."""


class Filesystem(Type):
    """A file system that is made on the host."""

    device: Annotated[Text256, REQUIRED] = ""
    """The name of the device."""
    filesystem: Annotated[str, length(1, 128), REQUIRED] = ""
    """The type of the file system."""
    label: Text512 = ""
    """Its label; None for no label."""
    partition: Annotated[str, length(1, 128)] = ""
    """Which partition to use: auto|any, auto, any, none, or a number."""
    overwrite: bool | None = None
    """Whether a file system that is there is replaced. With care: what is there is lost."""
    replace_fs: Annotated[str, length(1, 128)] = field(default="", name="replaceFS")
    """The type of file system that may be replaced; for Microsoft Azure. Without a label it needs the partition any."""
    extra_opts: Annotated[list[Text256], items(None, 100, atomic=True)] = field(default_factory=list)
    """More options for the command that makes the file system."""


class DiskSetup(Type):
    """Partitions and file systems of the host."""

    openapi = NOT_EMPTY

    partitions: Annotated[list[Partition], items(None, 100, atomic=True)] = field(default_factory=list)
    """How disks are partitioned."""
    filesystems: Annotated[list[Filesystem], items(None, 100, atomic=True)] = field(default_factory=list)
    """File systems that are made."""


class ContainerLinuxConfig(Type):
    """Additions to the Ignition configuration, in the form of Container Linux."""

    openapi = NOT_EMPTY

    additional_config: Annotated[str, length(1, 32768)] = ""
    """A Container Linux configuration that is merged with the one that is made."""
    strict: bool | None = None
    """Whether warnings about additionalConfig are errors."""


class IgnitionSpec(Type):
    """Settings for Ignition alone."""

    openapi = NOT_EMPTY

    container_linux_config: ContainerLinuxConfig = field(default_factory=ContainerLinuxConfig)
    """Additions to the Ignition configuration."""


class KubeadmConfigSpec(Type):
    """What a host becomes a node with: clusterConfiguration and initConfiguration for the first one, joinConfiguration for the others."""

    openapi = NOT_EMPTY

    cluster_configuration: ClusterConfiguration = field(default_factory=ClusterConfiguration)
    """Settings of the whole cluster, for kubeadm init."""
    init_configuration: InitConfiguration = field(default_factory=InitConfiguration)
    """Settings of kubeadm init."""
    join_configuration: JoinConfiguration = field(default_factory=JoinConfiguration)
    """Settings of kubeadm join."""
    files: Annotated[list[File], items(1, 200, atomic=True)] = field(default_factory=list)
    """Files that are written to the host."""
    disk_setup: DiskSetup = field(default_factory=DiskSetup)
    """Partitions and file systems."""
    mounts: Annotated[list[Annotated[list[Text512], items(1, 100)]], items(1, 100, atomic=True)] = field(default_factory=list)
    """What is mounted, each as the fields of a line in fstab."""
    boot_commands: Commands = field(default_factory=list)
    """Commands very early at each boot, by cloud-init's bootcmd. Ignition does not have them."""
    pre_kubeadm_commands: Commands = field(default_factory=list)
    """Commands before kubeadm."""
    post_kubeadm_commands: Commands = field(default_factory=list)
    """Commands after kubeadm."""
    users: Annotated[list[User], items(1, 100, atomic=True)] = field(default_factory=list)
    """Users that are made."""
    ntp: NTP = field(default_factory=NTP)
    """How the host keeps time."""
    format: Annotated[str, one_of(CLOUD_CONFIG, IGNITION)] = ""
    """The form of the bootstrap data; cloud-config without it."""
    verbosity: Int32 | None = None
    """How much kubeadm logs: its flag --v."""
    ignition: IgnitionSpec = field(default_factory=IgnitionSpec)
    """Settings for Ignition."""


class KubeadmConfigInitializationStatus(Type):
    """How far the host has come for the first time."""

    openapi = NOT_EMPTY

    data_secret_created: bool | None = None
    """Whether the Secret with the bootstrap data is there. Cluster API's controllers wait for it."""


class KubeadmConfigV1Beta1DeprecatedStatus(Type):
    """What v1beta1 had in its status."""

    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """Conditions in the form of v1beta1."""
    failure_reason: Text256 = ""
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] = ""
    """A sentence about an error that does not go away by itself."""


class KubeadmConfigDeprecatedStatus(Type):
    """What earlier versions had in their status."""

    v1beta1: KubeadmConfigV1Beta1DeprecatedStatus | None = None
    """What v1beta1 had in its status."""


class KubeadmConfigStatus(Type):
    """What the controller has observed and done."""

    openapi = NOT_EMPTY

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects: Ready, DataSecretAvailable, CertificatesAvailable, ControlPlaneKubernetesVersionAvailable, Paused."""
    initialization: KubeadmConfigInitializationStatus = field(default_factory=KubeadmConfigInitializationStatus)
    """How far the host has come for the first time. Cluster API's controllers wait for it."""
    data_secret_name: Annotated[str, length(1, 253)] = ""
    """The name of the Secret with the bootstrap data."""
    observed_generation: Annotated[Int64, at_least(1)] = 0
    """The generation that the controller has last worked on to the end."""
    deprecated: KubeadmConfigDeprecatedStatus | None = None
    """What earlier versions had in their status."""


class KubeadmConfig(Type):
    """The bootstrap configuration of one Machine, or of a pool of them."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: KubeadmConfigSpec = field(default_factory=KubeadmConfigSpec)
    """What the host becomes a node with."""
    status: KubeadmConfigStatus = field(default_factory=KubeadmConfigStatus)
    """What the controller has observed and done."""


class KubeadmConfigTemplateResource(Type):
    """What each KubeadmConfig is made from."""

    openapi = NOT_EMPTY

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations of each KubeadmConfig."""
    spec: KubeadmConfigSpec = field(default_factory=KubeadmConfigSpec)
    """The spec of each KubeadmConfig."""


class KubeadmConfigTemplateSpec(Type):
    """What KubeadmConfigs are made from."""

    template: Annotated[KubeadmConfigTemplateResource, REQUIRED] = field(default_factory=KubeadmConfigTemplateResource)
    """What each KubeadmConfig is made from."""


class KubeadmConfigTemplate(Type):
    """What the KubeadmConfigs of a MachineDeployment or a MachineSet are made from."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: KubeadmConfigTemplateSpec = field(default_factory=KubeadmConfigTemplateSpec)
    """What KubeadmConfigs are made from."""
