"""``elemental.cattle.io/v1beta1``: MachineRegistration, by which hosts register and what they are told then."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.meta import CONDITIONS, Condition, Int64, ObjectMetadata, ObjectReference, Type
from slipway.api.elemental.inventory import Free
from slipway.api.elemental.names import AUTH_TPM, AUTHS, CONFIGURATORS
from slipway.api.machinery.openapi import at_least, default, length, one_of, pattern

TOKEN = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"


class Install(Type):
    """How the operating system is installed."""

    firmware: str = ""
    """The firmware to install for, such as efi."""
    device: str = ""
    """The disk to install to."""
    device_selector: list[Free] = field(default_factory=list, name="device-selector")
    """How the disk is found, where it is not named."""
    no_format: bool = field(default=False, name="no-format")
    """Whether the disk is used as it is."""
    config_urls: list[str] = field(default_factory=list, name="config-urls")
    """More cloud-configs."""
    iso: str = ""
    """The image to install from, where it is not the one that is running."""
    system_uri: str = field(default="", name="system-uri")
    """The image to install."""
    debug: bool = False
    """Whether everything is printed."""
    tty: str = ""
    """The console of the system."""
    poweroff: bool = False
    """Whether the host is turned off after it."""
    reboot: bool = False
    """Whether the host is started anew after it."""
    eject_cd: bool = field(default=False, name="eject-cd")
    """Whether the medium is given out."""
    disable_boot_entry: bool = field(default=False, name="disable-boot-entry")
    """Whether the firmware gets no entry for it."""
    config_dir: str = field(default="", name="config-dir")
    """The folder of more configuration."""
    snapshotter: Free = field(default_factory=dict)
    """How the images of the system are kept."""


class Reset(Type):
    """How a host is reset."""

    enabled: bool = False
    """Whether a host is reset when its inventory is deleted."""
    reset_persistent: Annotated[bool, default(True)] = field(default=False, name="reset-persistent")
    """Whether the partition for data is formatted."""
    reset_oem: Annotated[bool, default(True)] = field(default=False, name="reset-oem")
    """Whether the partition for configuration is formatted."""
    config_urls: list[str] = field(default_factory=list, name="config-urls")
    """More cloud-configs."""
    system_uri: str = field(default="", name="system-uri")
    """The image to install."""
    debug: bool = False
    """Whether everything is printed."""
    poweroff: bool = False
    """Whether the host is turned off after it."""
    reboot: Annotated[bool, default(True)] = False
    """Whether the host is started anew after it."""
    disable_boot_entry: bool = field(default=False, name="disable-boot-entry")
    """Whether the firmware gets no entry for it."""


class Registration(Type):
    """How a host registers."""

    url: str = ""
    """Where; filled in by the operator."""
    ca_cert: str = field(default="", name="ca-cert")
    """Whom the host trusts there; filled in by the operator."""
    auth: Annotated[str, one_of(*AUTHS), default(AUTH_TPM)] = ""
    """How the host proves who it is: tpm, mac (its lowest hardware address) or sys-uuid (the board's)."""
    emulate_tpm: bool = field(default=False, name="emulate-tpm")
    """Whether the host may use a TPM in software, where it has none."""
    emulated_tpm_seed: Int64 = field(default=0, name="emulated-tpm-seed")
    """What Elemental's agent makes that TPM from; Slipway's keeps a key of its own on the host."""
    no_smbios: bool = field(default=False, name="no-smbios")
    """Whether the host does not tell what its board says."""
    no_toolkit: bool = field(default=False, name="no-toolkit")
    """Whether the host is not installed by Elemental's toolkit."""


class SystemAgent(Type):
    """What Elemental's agent on a host is told; Slipway's has no need of it."""

    url: str = ""
    """Where the agent asks."""
    token: str = ""
    """How it says who it is."""
    secret_name: str = field(default="", name="secret-name")
    """The Secret that it reads."""
    secret_namespace: str = field(default="", name="secret-namespace")
    """The namespace of the Secret."""


class Elemental(Type):
    """The configuration of Elemental on a host."""

    install: Install = field(default_factory=Install)
    """How the operating system is installed."""
    reset: Reset = field(default_factory=Reset)
    """How the host is reset."""
    registration: Registration = field(default_factory=Registration)
    """How the host registers."""
    system_agent: SystemAgent = field(default_factory=SystemAgent, name="system-agent")
    """What Elemental's agent is told."""


class NetworkTemplate(Type):
    """How the network of registered hosts is to be configured."""

    configurator: Annotated[str, one_of(*CONFIGURATORS)] = ""
    """Who writes the configuration on the host: none, nmc, nmstate or nmconnections."""
    ip_addresses: dict[str, Free] = field(default_factory=dict)
    """Where addresses come from, by the names that the configuration has for them."""
    config: Free = field(default_factory=dict)
    """The configuration, as the configurator understands it."""


class RegistrationConfig(Type):
    """What a host is told when it registers."""

    cloud_config: Free = field(default_factory=dict, name="cloud-config")
    """The host's cloud-config."""
    elemental: Elemental = field(default_factory=Elemental)
    """The configuration of Elemental."""
    network: NetworkTemplate = field(default_factory=NetworkTemplate)
    """How the network is to be configured."""


class MachineRegistrationSpec(Type):
    """How hosts register, and what their inventories are like."""

    token: Annotated[str, length(None, 63), pattern(rf"^$|{TOKEN}")] = ""
    """The last part of the address at which hosts register; a random one without it."""
    machine_name: Annotated[str, length(None, 1024)] = ""
    """The name of each inventory, with placeholders such as ${System Information/UUID}; m- and a UUID without it."""
    machine_inventory_labels: dict[str, str] = field(default_factory=dict)
    """Labels of each inventory, with placeholders."""
    machine_inventory_annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of each inventory, with placeholders."""
    config: RegistrationConfig = field(default_factory=RegistrationConfig)
    """What a host is told."""


class MachineRegistrationStatus(Type):
    """Where hosts register."""

    registration_url: str = field(default="", name="registrationURL")
    """The address at which hosts register."""
    registration_token: str = ""
    """The last part of it."""
    service_account_ref: ObjectReference | None = None
    """The account that Elemental's operator made for all hosts; Slipway makes one for each."""
    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    observed_generation: Annotated[Int64, at_least(0)] = 0
    """The generation that the controller has last worked on to the end."""


class MachineRegistration(Type):
    """Where hosts register, and what they are told then."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: MachineRegistrationSpec = field(default_factory=MachineRegistrationSpec)
    """How hosts register, and what their inventories are like."""
    status: MachineRegistrationStatus = field(default_factory=MachineRegistrationStatus)
    """Where hosts register."""
