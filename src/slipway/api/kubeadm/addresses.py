"""Addresses, ports and networks as the configuration writes them, read as kubeadm reads them, and the URLs of the API server.

Nothing is resolved or connected to.

IPv4 parts may have leading zeros (``010.0.0.1`` is 10.0.0.1), as Go's parsers read them before 1.17.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import ConfigurationError

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import APIEndpoint, InitConfiguration

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_SUBDOMAIN = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
_LEADING_ZEROS = re.compile(r"(^|\.)0+(?=\d)")


def parse_ip(text: str) -> Address | None:
    """An address, or None where the text is not one."""
    if "%" in text or "/" in text:
        return None
    try:
        address = ip_address(_LEADING_ZEROS.sub(r"\1", text))
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def parse_cidrs(text: str) -> list[Network]:
    """A comma-separated list of networks; ValueError where one is not."""
    return [_parse_cidr(part) for part in text.split(",")]


def parse_port(text: str) -> int | None:
    """A TCP port from 1 to 65535, or None."""
    return int(text) if re.fullmatch(r"\+?[0-9]{1,10}", text) and 1 <= int(text) <= 65535 else None


def split_host_port(text: str) -> tuple[str, str]:
    """``host:port`` and ``[ipv6]:port`` apart; ValueError has the words of Go's ``net.SplitHostPort``."""

    def wrong(reason: str) -> ValueError:
        return ValueError(f"address {text}: {reason}" if text else reason)

    colon = text.rfind(":")
    if colon < 0:
        raise wrong("missing port in address")
    if text.startswith("["):
        end = text.find("]")
        if end < 0:
            raise wrong("missing ']' in address")
        if end + 1 == len(text):
            raise wrong("missing port in address")
        if end + 1 != colon:
            raise wrong("too many colons in address" if text[end + 1] == ":" else "missing port in address")
        host, rest_open, rest_close = text[1:end], text[1:], text[end + 1 :]
    else:
        host, rest_open, rest_close = text[:colon], text, text
        if ":" in host:
            raise wrong("too many colons in address")
    if "[" in rest_open:
        raise wrong("unexpected '[' in address")
    if "]" in rest_close:
        raise wrong("unexpected ']' in address")
    return host, text[colon + 1 :]


def join_host_port(host: str, port: int | str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_host_port(text: str) -> tuple[str, str]:
    """A host and its port, empty where there is none; ValueError where either cannot be one."""
    try:
        host, port = split_host_port(text)
    except ValueError:
        host, port = text, ""
    if port and parse_port(port) is None:
        raise ValueError(f"hostport {text}: port {port} must be a valid number between 1 and 65535, inclusive")
    if parse_ip(host) is None and not is_dns_subdomain(host):
        raise ValueError(f"hostport {text}: host '{host}' must be a valid IP address or a valid RFC-1123 DNS subdomain")
    return host, port


def is_dns_subdomain(text: str) -> bool:
    return len(text) <= 253 and re.fullmatch(DNS_SUBDOMAIN, text) is not None


def _parse_cidr(text: str) -> Network:
    address, slash, length = text.partition("/")
    parsed = parse_ip(address)
    if not slash or parsed is None or not re.fullmatch(r"[0-9]{1,3}", length):
        raise ValueError(f"invalid CIDR address: {text}")
    bits = int(length)
    if ":" in address and parsed.version == 4:
        bits -= 96
    if not 0 <= bits <= parsed.max_prefixlen:
        raise ValueError(f"invalid CIDR address: {text}")
    return ip_network((parsed, bits), strict=False)


def is_global_unicast(address: Address) -> bool:
    """As Go's ``IP.IsGlobalUnicast``: private addresses count, link-local and loopback ones do not."""
    broadcast = isinstance(address, IPv4Address) and int(address) == 0xFFFFFFFF
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (broadcast or special)


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
