"""``elemental.cattle.io/v1beta1``: SeedImage, an image that hosts boot from to register."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.meta import CONDITIONS, Condition, Int32, Int64, ObjectMetadata, ObjectReference, Type
from slipway.api.elemental.inventory import Free
from slipway.api.elemental.names import SEED_IMAGE_STATES
from slipway.api.machinery.openapi import QUANTITY_PATTERN, REQUIRED, at_least, default, length, one_of, schema

ISO, RAW = "iso", "raw"
DEFAULT_CLEANUP_MINUTES = 60
DEFAULT_SIZE = "6Gi"

Quantity = Annotated[int | str, schema(pattern=QUANTITY_PATTERN)]


class BuildContainer(Type):
    """What builds the image, where it is not what the operator has for it."""

    name: str = ""
    """The name of the container."""
    image: str = ""
    """Its image."""
    command: list[str] = field(default_factory=list)
    """Its command."""
    args: list[str] = field(default_factory=list)
    """The arguments of the command."""
    image_pull_policy: str = ""
    """When its image is pulled."""


class SeedImageSpec(Type):
    """What the image is made from."""

    type: Annotated[str, one_of(ISO, RAW), default(ISO)] = ""
    """iso or raw."""
    base_image: Annotated[str, length(None, 1024)] = ""
    """The image that it is made from."""
    registration_ref: Annotated[ObjectReference, REQUIRED] = field(default_factory=ObjectReference)
    """The MachineRegistration at which hosts register that boot it."""
    cleanup_after_minutes: Annotated[Int32, at_least(0), default(DEFAULT_CLEANUP_MINUTES)] = 0
    """How long the image can be downloaded; 0 for ever."""
    cloud_config: Free = field(default_factory=dict, name="cloud-config")
    """The cloud-config of the first boot."""
    size: Annotated[Quantity, default(DEFAULT_SIZE)] = ""
    """How much space its making may take."""
    build_container: BuildContainer | None = None
    """What builds the image."""
    retrigger_build: bool = False
    """Set to have the image made again; the controller takes it back."""
    target_platform: Annotated[str, length(None, 63)] = ""
    """The platform that it is for, such as linux/x86_64."""


class SeedImageStatus(Type):
    """How far the image is."""

    state: Annotated[str, one_of("", *SEED_IMAGE_STATES)] = ""
    """NotStarted, Initialized, Started, Completed or Failed."""
    download_token: str = ""
    """The part of its address that is not to be guessed."""
    download_url: str = field(default="", name="downloadURL")
    """Where the image is."""
    checksum_url: str = field(default="", name="checksumURL")
    """Where its checksum is."""
    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    observed_generation: Annotated[Int64, at_least(0)] = 0
    """The generation that the controller has last worked on to the end."""


class SeedImage(Type):
    """An image that hosts boot from to register."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[SeedImageSpec, REQUIRED] = field(default_factory=SeedImageSpec)
    """What the image is made from."""
    status: SeedImageStatus = field(default_factory=SeedImageStatus)
    """How far the image is."""
