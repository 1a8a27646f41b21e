"""The URLs of the API server, as texts; nothing is resolved or connected to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm.addresses import join_host_port, parse_host_port, parse_ip
from slipway.api.machinery.errors import ConfigurationError

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import APIEndpoint, InitConfiguration


def loopback(advertise_address: str) -> str:
    """The loopback address of the family that a node advertises."""
    address = parse_ip(advertise_address)
    return "::1" if address is not None and address.version == 6 else "127.0.0.1"


def local_api_url(endpoint: APIEndpoint) -> str:
    """The URL of the API server on this node."""
    address = parse_ip(endpoint.advertise_address)
    if address is None:
        raise ConfigurationError(f"invalid value `{endpoint.advertise_address}` given for api.advertiseAddress: it must be an IP address")
    if not 1 <= endpoint.bind_port <= 65535:
        raise ConfigurationError(f'invalid value "{endpoint.bind_port}" given for api.bindPort: it must be between 1 and 65535')
    return f"https://{join_host_port(str(address), endpoint.bind_port)}"


def control_plane_url(config: InitConfiguration) -> str:
    """The URL under which all clients reach the control plane; without a port of its own it has the local one's."""
    local = local_api_url(config.local_api_endpoint)
    if not config.cluster.control_plane_endpoint:
        return local
    host, port = control_plane_host_port(config)
    return f"https://{join_host_port(host, port or config.local_api_endpoint.bind_port)}"


def control_plane_host_port(config: InitConfiguration) -> tuple[str, str]:
    """The two halves of ``controlPlaneEndpoint``, which must be set; the port may be empty."""
    text = config.cluster.control_plane_endpoint
    try:
        return parse_host_port(text)
    except ValueError as error:
        raise ConfigurationError(f'invalid value "{text}" given for controlPlaneEndpoint: {error}') from error


def overrides_bind_port(config: InitConfiguration) -> bool:
    """Whether the control plane's endpoint names another port than the one that this API server listens on."""
    if not config.cluster.control_plane_endpoint:
        return False
    return control_plane_host_port(config)[1] not in ("", str(config.local_api_endpoint.bind_port))
