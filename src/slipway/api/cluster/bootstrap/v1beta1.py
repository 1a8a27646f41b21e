"""``bootstrap.cluster.x-k8s.io/v1beta1``: KubeadmConfig and KubeadmConfigTemplate before v1beta2; converted, never worked with.

What is as in v1beta2 comes from there, words included.  The server was told less then: lists have no type and objects may
be empty.  Structs that Go holds by value are printed even when empty (``machinery.encode``), as v1beta1 has no ``omitzero``.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.bootstrap import config as v1beta2
from slipway.api.cluster.bootstrap.kubeadm_v1beta1 import ANY, ClusterConfiguration, InitConfiguration, JoinConfiguration
from slipway.api.cluster.meta import (
    CONDITIONS,
    Condition,
    DeprecatedCondition,
    Int32,
    Int64,
    ObjectMetadata,
    TemplateMeta,
    Text256,
    Text512,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, items, length, one_of

API_VERSION = "bootstrap.cluster.x-k8s.io/v1beta1"

Commands = Annotated[list[Annotated[str, length(1, 10240)]], items(None, 1000)]


class SecretKey(v1beta2.SecretKey):
    """A key of a Secret in the namespace of the object."""

    always_printed = frozenset({"name", "key"})


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

    always_printed = frozenset({"path"})

    path: Annotated[Text512, REQUIRED] = ""
    """The full path of the file."""
    owner: Text256 = ""
    """Its owner, such as root:root."""
    permissions: Annotated[str, length(1, 16)] = ""
    """Its permissions, such as 0640."""
    encoding: Annotated[str, one_of("base64", "gzip", "gzip+base64")] = ""
    """How content is encoded."""
    append: bool = False
    """Whether content is added to the end of a file that is there."""
    content: Annotated[str, length(1, 10240)] = ""
    """What is in the file."""
    content_from: FileSource | None = None
    """Where what is in the file comes from, in place of content."""
    content_format: Annotated[str, one_of(v1beta2.RAW, v1beta2.TEMPLATE, v1beta2.GO_TEMPLATE)] = ""
    """What content is: Raw, Template or go-template, as in v1beta2."""


class User(Type):
    """A user that is made on the host."""

    always_printed = frozenset({"name"})

    name: Annotated[Text256, REQUIRED] = ""
    """The name of the user."""
    gecos: Text256 | None = None
    """The GECOS field."""
    groups: Text256 | None = None
    """More groups that the user is in, with commas between them."""
    home_dir: Text256 | None = None
    """The home directory."""
    inactive: bool | None = None
    """Whether the user is inactive."""
    shell: Text256 | None = None
    """The login shell."""
    passwd: Text256 | None = None
    """The hash of the password."""
    passwd_from: PasswdSource | None = None
    """Where the hash of the password comes from, in place of passwd."""
    primary_group: Text256 | None = None
    """The primary group."""
    lock_password: bool | None = None
    """Whether logging in with a password is barred."""
    sudo: Text256 | None = None
    """A sudo rule."""
    ssh_authorized_keys: Annotated[list[Annotated[str, length(1, 2048)]], items(None, 100)] = field(default_factory=list)
    """Public keys that may log in by ssh."""


class NTP(v1beta2.NTP):
    """How the host keeps time."""

    openapi = ANY

    servers: Annotated[list[Text512], items(None, 100)] = field(default_factory=list)


class Partition(Type):
    """How a disk is partitioned."""

    always_printed = frozenset({"device", "layout"})

    device: Annotated[Text256, REQUIRED] = ""
    """The name of the device."""
    layout: Annotated[bool, REQUIRED] = False
    """Whether there is one partition over the whole device. False: none, or those of diskLayout."""
    overwrite: bool | None = None
    """Whether to do so even if there is a partition or a file system on the device. With care: what is there is lost."""
    table_type: Annotated[str, one_of("mbr", "gpt")] | None = None
    """The kind of partition table: mbr, so too without this field, or gpt."""
    disk_layout: Annotated[list[v1beta2.PartitionSpec], items(1, 100)] = field(default_factory=list)
    """The partitions in their order; their percentages may not add up to more than 100."""


class Filesystem(Type):
    """A file system that is made on the host."""

    always_printed = frozenset({"device", "filesystem"})

    device: Annotated[Text256, REQUIRED] = ""
    """The name of the device."""
    filesystem: Annotated[str, length(1, 128), REQUIRED] = ""
    """The type of the file system."""
    label: Text512 = ""
    """Its label; None for no label."""
    partition: Annotated[str, length(1, 128)] | None = None
    """Which partition to use: auto|any, auto, any, none, or a number."""
    overwrite: bool | None = None
    """Whether a file system that is there is replaced. With care: what is there is lost."""
    replace_fs: Annotated[str, length(1, 128)] | None = field(default=None, name="replaceFS")
    """The type of file system that may be replaced; for Microsoft Azure. Without a label it needs the partition any."""
    extra_opts: Annotated[list[Text256], items(None, 100)] = field(default_factory=list)
    """More options for the command that makes the file system."""


class DiskSetup(Type):
    """Partitions and file systems of the host."""

    partitions: Annotated[list[Partition], items(None, 100)] = field(default_factory=list)
    """How disks are partitioned."""
    filesystems: Annotated[list[Filesystem], items(None, 100)] = field(default_factory=list)
    """File systems that are made."""


class ContainerLinuxConfig(Type):
    """Additions to the Ignition configuration, in the form of Container Linux."""

    additional_config: Annotated[str, length(1, 32768)] = ""
    """A Container Linux configuration that is merged with the one that is made."""
    strict: bool = False
    """Whether warnings about additionalConfig are errors."""


class IgnitionSpec(Type):
    """Settings for Ignition alone."""

    container_linux_config: ContainerLinuxConfig | None = None
    """Additions to the Ignition configuration."""


class KubeadmConfigSpec(Type):
    """What a host becomes a node with: clusterConfiguration and initConfiguration for the first one, joinConfiguration for the others."""

    cluster_configuration: ClusterConfiguration | None = None
    """Settings of the whole cluster, for kubeadm init."""
    init_configuration: InitConfiguration | None = None
    """Settings of kubeadm init."""
    join_configuration: JoinConfiguration | None = None
    """Settings of kubeadm join."""
    files: Annotated[list[File], items(None, 200)] = field(default_factory=list)
    """Files that are written to the host."""
    disk_setup: DiskSetup | None = None
    """Partitions and file systems."""
    mounts: Annotated[list[list[Text512]], items(None, 100)] = field(default_factory=list)
    """What is mounted, each as the fields of a line in fstab."""
    boot_commands: Commands = field(default_factory=list)
    """Commands very early at each boot, by cloud-init's bootcmd. Ignition does not have them."""
    pre_kubeadm_commands: Commands = field(default_factory=list)
    """Commands before kubeadm."""
    post_kubeadm_commands: Commands = field(default_factory=list)
    """Commands after kubeadm."""
    users: Annotated[list[User], items(None, 100)] = field(default_factory=list)
    """Users that are made."""
    ntp: NTP | None = None
    """How the host keeps time."""
    format: Annotated[str, one_of(v1beta2.CLOUD_CONFIG, v1beta2.IGNITION)] = ""
    """The form of the bootstrap data; cloud-config without it."""
    verbosity: Int32 | None = None
    """How much kubeadm logs: its flag --v."""
    use_experimental_retry_join: bool = False
    """Without effect, and lost in v1beta2."""
    ignition: IgnitionSpec | None = None
    """Settings for Ignition."""


class KubeadmConfigV1Beta2Status(Type):
    """The conditions that v1beta2 has."""

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""


class KubeadmConfigStatus(Type):
    """What the controller has observed and done."""

    always_printed = frozenset({"ready"})

    ready: bool = False
    """Whether the Secret with the bootstrap data is there."""
    data_secret_name: Annotated[str, length(1, 253)] | None = None
    """The name of the Secret with the bootstrap data."""
    failure_reason: Text256 = ""
    """A word for an error that does not go away by itself."""
    failure_message: Annotated[str, length(1, 10240)] = ""
    """A sentence about an error that does not go away by itself."""
    observed_generation: Int64 = 0
    """The generation that the controller has last worked on to the end."""
    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects, in the form of v1beta1."""
    v1beta2: KubeadmConfigV1Beta2Status | None = None
    """The conditions that v1beta2 has."""


class KubeadmConfig(Type):
    """The bootstrap configuration of one Machine, or of a pool of them. Use v1beta2."""

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

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of each KubeadmConfig."""
    spec: KubeadmConfigSpec = field(default_factory=KubeadmConfigSpec)
    """The spec of each KubeadmConfig."""


class KubeadmConfigTemplateSpec(Type):
    """What KubeadmConfigs are made from."""

    template: Annotated[KubeadmConfigTemplateResource, REQUIRED] = field(default_factory=KubeadmConfigTemplateResource)
    """What each KubeadmConfig is made from."""


class KubeadmConfigTemplate(Type):
    """What the KubeadmConfigs of a MachineDeployment or a MachineSet are made from. Use v1beta2."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: KubeadmConfigTemplateSpec = field(default_factory=KubeadmConfigTemplateSpec)
    """What KubeadmConfigs are made from."""
