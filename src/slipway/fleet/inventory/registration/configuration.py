"""What a host is told, as values: how to register, and once it has, where its Secret is and by which account it may read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.meta import manifest
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from slipway.api.elemental.registration import MachineRegistration
    from slipway.api.machinery.objects import Manifest


class ApiServer(NamedTuple):
    """The management cluster as hosts reach it."""

    url: str
    ca: bytes


class Access(NamedTuple):
    """How a host comes to its Secret."""

    server: ApiServer
    namespace: str
    secret: str
    token: str


def client_config(registration: MachineRegistration, authorities: bytes) -> Manifest:
    """How a host registers: what anybody may read who knows the token."""
    wanted = registration.spec.config.elemental.registration
    told: Manifest = {
        **manifest(wanted),
        "url": registration.status.registration_url,
        "ca-cert": authorities.decode(),
        "auth": wanted.auth or "tpm",
    }
    return {"elemental": {"registration": told}}


def host_config(registration: MachineRegistration, authorities: bytes, access: Access) -> Manifest:
    """What a host gets when it has registered.

    elemental-register trusts one bundle for both servers, so that it has the authorities of both; ours reads that of the API server apart.
    """
    config = registration.spec.config
    both = authorities if access.server.ca in authorities else authorities.rstrip() + b"\n" + access.server.ca
    told = client_config(registration, both)["elemental"]
    told["system-agent"] = {
        "url": access.server.url,
        "ca-cert": access.server.ca.decode(),
        "token": access.token,
        "secret-name": access.secret,
        "secret-namespace": access.namespace,
    }
    for name, section in (("install", config.elemental.install), ("reset", config.elemental.reset)):
        if section:
            told[name] = manifest(section)
    made: Manifest = {"elemental": told}
    if config.cloud_config:
        made["cloud-config"] = config.cloud_config
    if config.network:
        made["network"] = manifest(config.network)
    return made


def as_yaml(config: Manifest) -> bytes:
    return goyaml.dump(config).encode()
