"""The forms that texts in a configuration must have: names, URLs, tokens, and networks that fit each other.

What is wrong is told with the words that apimachinery and Go have for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.kubeadm.addresses import DNS_SUBDOMAIN, Network, parse_cidrs, parse_host_port, parse_ip
from slipway.api.machinery.fieldpath import FieldError, Path, invalid

if TYPE_CHECKING:
    from slipway.api.kubeadm import internal
    from slipway.api.kubeadm.documents import Warn

_WILDCARD = rf"\*\.{DNS_SUBDOMAIN}"
_DOMAIN = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_DOMAIN}(?:\.{_DOMAIN})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_TOKEN = r"[a-z0-9]{6}\.[a-z0-9]{16}"
_GROUP = r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]"
_MINIMUM_SERVICE_ADDRESSES = 10
_MINIMUM_POD_ADDRESSES = 14
_MAXIMUM_SERVICE_BITS = 20
_MAXIMUM_MASK_DIFFERENCE = 16
_NODE_MASKS = {4: ("node-cidr-mask-size-ipv4", 24), 6: ("node-cidr-mask-size-ipv6", 64)}
_BOTH_FAMILIES = "expected one (IPv4 or IPv6) CIDR or two CIDRs from each family for dual-stack networking"


class URL(NamedTuple):
    """As much of a URL as validation looks at."""

    scheme: str
    host: str


def dns_subdomain_faults(text: str) -> list[str]:
    faults = [] if len(text.encode()) <= 253 else ["must be no more than 253 characters"]
    if not re.fullmatch(DNS_SUBDOMAIN, text):
        faults.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
            f"with an alphanumeric character (e.g. 'example.com', regex used for validation is '{DNS_SUBDOMAIN}')"
        )
    return faults


def wildcard_subdomain_faults(text: str) -> list[str]:
    faults = [] if len(text.encode()) <= 253 else ["must be no more than 253 characters"]
    if not re.fullmatch(_WILDCARD, text):
        faults.append(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
            "alphanumeric characters, '-' or '.' and end with an alphanumeric character "
            f"(e.g. '*.example.com', regex used for validation is '{_WILDCARD}')"
        )
    return faults


def is_token(text: str) -> bool:
    return re.fullmatch(_TOKEN, text) is not None


def group_fault(name: str) -> str:
    """What is wrong with the name of a group for the bearers of a bootstrap token."""
    if re.fullmatch(_GROUP, name):
        return ""
    return f'bootstrap group "{name}" is invalid (must match \\A{_GROUP}\\z)'


def is_image_repository(text: str) -> bool:
    """Whether ``<text>/name:tag`` is a reference to an image."""
    return re.fullmatch(rf"(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*", f"{text}/name") is not None


def hex_fault(text: str) -> str:
    """What Go's hex decoder says of a text; empty for hexadecimal digits in pairs."""
    wrong = re.search(r"[^0-9a-fA-F]", text)
    if wrong is not None:
        # Go counts bytes: of a character outside ASCII it names the first byte.
        byte = wrong.group().encode()[0]
        return f"encoding/hex: invalid byte: U+{byte:04X} '{chr(byte)}'"
    return "encoding/hex: odd length hex string" if len(text) % 2 else ""


def parse_url(text: str) -> URL:
    """Scheme and host of a URL; ValueError where Go's ``url.Parse`` refuses it, with its words."""
    text, _, fragment = text.partition("#")

    def wrong(reason: str) -> ValueError:
        return ValueError(f'parse "{text}": {reason}')

    if re.search(r"[\x00-\x1f\x7f]", text):
        raise wrong("net/url: invalid control character in URL")
    scheme, rest = "", text
    if text.startswith(":"):
        raise wrong("missing protocol scheme")
    match = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*):", text)
    if match is not None:
        scheme, rest = match.group(1).lower(), text[match.end() :]
    rest = rest.partition("?")[0]
    host = ""
    if not rest.startswith("/"):
        if scheme:
            return URL(scheme, "")
        if ":" in rest.partition("/")[0]:
            raise wrong("first path segment in URL cannot contain colon")
    elif rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, at, host = authority.rpartition("@")
        if at and re.search(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]", user):
            raise wrong("net/url: invalid userinfo")
        reason = _host_fault(host)
        if reason:
            raise wrong(reason)
    escape = re.search(r"%(?![0-9a-fA-F]{2}).{0,2}", rest + fragment)
    if escape is not None:
        raise wrong(f'invalid URL escape "{escape.group()}"')
    return URL(scheme, host)


def _host_fault(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            return "missing ']' in host"
        port = host[end + 1 :]
    elif host.rfind("[") > 0:
        return "invalid IP-literal"
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    if port and not re.fullmatch(r":[0-9]*", port):
        return f'invalid port "{port}" after host'
    strange = re.search(r"[ \"<>\\^`{|}]", host)
    if strange is not None:
        return f'invalid character "{_quoted(strange.group())}" in host name'
    return ""


def _quoted(character: str) -> str:
    return {'"': '\\"', "\\": "\\\\"}.get(character, character)


def validate_networking(cluster: internal.ClusterConfiguration, path: Path, warn: Warn) -> list[FieldError]:
    networking = cluster.networking
    errors = [invalid(path.child("dnsDomain"), networking.dns_domain, fault) for fault in dns_subdomain_faults(networking.dns_domain)]
    if networking.service_subnet:
        service_path = path.child("serviceSubnet")
        errors += validate_subnets(networking.service_subnet, _MINIMUM_SERVICE_ADDRESSES, service_path, warn)
        errors += _service_subnet_size(networking.service_subnet, service_path)
    if networking.pod_subnet:
        pod_path = path.child("podSubnet")
        errors += validate_subnets(networking.pod_subnet, _MINIMUM_POD_ADDRESSES, pod_path, warn)
        if _last_value(cluster.controller_manager.extra_args, "allocate-node-cidrs") != "false":
            errors += validate_pod_subnet_node_mask(networking.pod_subnet, cluster, pod_path)
    return errors


def validate_subnets(text: str, minimum: int, path: Path, warn: Warn) -> list[FieldError]:
    """One network, or one of each family, each with at least so many addresses."""
    try:
        subnets = parse_cidrs(text)
    except ValueError:
        return [invalid(path, text, "couldn't parse subnet")]
    errors = []
    if len(subnets) > 2 or (len(subnets) == 2 and subnets[0].version == subnets[1].version):
        errors.append(invalid(path, text, _BOTH_FAMILIES))
    for subnet in subnets:
        size = _range_size(subnet)
        if size < minimum:
            errors.append(invalid(path, str(subnet), f"subnet with {size} address(es) is too small, the minimum is {minimum}"))
        if subnet.version == 6 and _overlaps_site_local(subnet):
            warn(f"the subnet {subnet} contains IPv6 site-local addresses that belong to fec0::/10 which has been deprecated by rfc3879")
    return errors


def validate_pod_subnet_node_mask(text: str, cluster: internal.ClusterConfiguration, path: Path) -> list[FieldError]:
    """The Pod network must hold at least one node's network, and not so many that the controller manager cannot count them."""
    errors = []
    for subnet in _parsed(text):
        flag, mask = _NODE_MASKS[subnet.version]
        given = _last_value(cluster.controller_manager.extra_args, flag)
        if given:
            try:
                mask = _atoi(given)
            except ValueError as error:
                reason = f"could not parse the value of the kube-controller-manager flag {flag} as an integer: {error}"
                errors.append(invalid(path, str(subnet), reason))
                continue
        length = subnet.prefixlen
        if length > mask:
            reason = f"the size of pod subnet with mask {length} is smaller than the size of node subnet with mask {mask}"
            errors.append(invalid(path, str(subnet), reason))
        elif mask - length > _MAXIMUM_MASK_DIFFERENCE:
            reason = f"pod subnet mask ({length}) and node-mask ({mask}) difference is greater than {_MAXIMUM_MASK_DIFFERENCE}"
            errors.append(invalid(path, str(subnet), reason))
    return errors


def validate_endpoint(endpoint: internal.APIEndpoint, path: Path) -> list[FieldError]:
    errors = validate_ip(endpoint.advertise_address, path.child("advertiseAddress"))
    if not 1 <= endpoint.bind_port <= 65535:
        errors.append(invalid(path.child("bindPort"), endpoint.bind_port, "port number is not valid"))
    return errors


def validate_ip(text: str, path: Path) -> list[FieldError]:
    return [] if parse_ip(text) is not None else [invalid(path, text, "ip address is not valid")]


def validate_host_port(text: str, path: Path) -> list[FieldError]:
    if text:
        try:
            parse_host_port(text)
        except ValueError:
            return [invalid(path, text, "endpoint is not valid")]
    return []


def _service_subnet_size(text: str, path: Path) -> list[FieldError]:
    errors = []
    for subnet in _parsed(text):
        bits = subnet.max_prefixlen
        if bits - subnet.prefixlen > _MAXIMUM_SERVICE_BITS:
            reason = f"specified service subnet is too large; for {bits}-bit addresses, the mask must be >= {bits - _MAXIMUM_SERVICE_BITS}"
            errors.append(invalid(path, str(subnet), reason))
    return errors


def _parsed(text: str) -> list[Network]:
    """The networks of a text that was checked before: none where it was found wrong."""
    try:
        return parse_cidrs(text)
    except ValueError:
        return []


def _range_size(subnet: Network) -> int:
    """How many addresses Kubernetes counts in a network: none in the two largest, as its arithmetic would overflow."""
    bits = subnet.max_prefixlen - subnet.prefixlen
    return 0 if bits >= subnet.max_prefixlen - 1 else min(1 << bits, (1 << 63) - 1)


def _overlaps_site_local(subnet: Network) -> bool:
    first = int(subnet.network_address)
    site_local, size = 0xFEC0 << 112, 1 << 118
    return site_local <= first < site_local + size or first <= site_local <= int(subnet.broadcast_address)


def _last_value(arguments: list[internal.Arg], name: str) -> str:
    return next((argument.value for argument in reversed(arguments) if argument.name == name), "")


def _atoi(text: str) -> int:
    digits = text[1:] if text[:1] in "+-" else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    significant = digits.lstrip("0") or "0"
    # int() refuses very long numbers.
    number = int(significant) if len(significant) <= 19 else 2**63
    if number >= 2**63 + (text[0] == "-"):
        raise ValueError(f'strconv.Atoi: parsing "{text}": value out of range')
    return -number if text[0] == "-" else number
