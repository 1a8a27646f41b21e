"""The network of a host as cloud-init's network-config, version 2: what was observed of it when it registered."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.yaml.goyaml import dump

if TYPE_CHECKING:
    from collections.abc import Collection

    from slipway.api.elemental.inventory import ObservedInterface, ObservedNetwork

_LOOPBACK = "lo"
_LAST_VLAN = 4094


def network_config(observed: ObservedNetwork | None, *, without: Collection[str] = ()) -> str:
    """The file's text; empty where nothing was observed that could be configured, and cloud-init falls back to DHCP.

    Addresses in ``without`` are not the host's own: a virtual address that it happened to hold.
    """
    if observed is None:
        return ""
    made: dict[str, Any] = {"ethernets": {}, "bonds": {}, "bridges": {}, "vlans": {}}
    masters = {interface.master for interface in observed.interfaces if interface.master}
    vlans = {interface.name: vlan for interface in observed.interfaces if (vlan := _vlan(interface, observed)) is not None}
    used = _used(observed, vlans, without)
    for interface in observed.interfaces:
        if interface.name not in used or interface.name == _LOOPBACK or not interface.mac:
            continue
        addressed = _addressed(interface, own_addresses(interface, without=without), observed)
        if interface.name in masters:
            section = "bridges" if interface.name.startswith("br") else "bonds"
            made[section][interface.name] = _master(interface, section, observed) | addressed
        elif interface.name in vlans:
            link, number = vlans[interface.name]
            made["vlans"][interface.name] = {"link": link, "id": number} | addressed
        else:
            made["ethernets"][interface.name] = _named(interface) | addressed
    return dump({"version": 2, **{section: devices for section, devices in made.items() if devices}}) if any(made.values()) else ""


def _used(observed: ObservedNetwork, vlans: dict[str, tuple[str, int]], without: Collection[str]) -> set[str]:
    """The devices with an address, and all that those stand on: the device under a VLAN, the parts of a bond or a bridge."""
    used = {interface.name for interface in observed.interfaces if own_addresses(interface, without=without)}
    while True:
        more = {link for name, (link, _) in vlans.items() if name in used}
        more |= {interface.name for interface in observed.interfaces if interface.master in used}
        if more <= used:
            return used
        used |= more


def _vlan(interface: ObservedInterface, observed: ObservedNetwork) -> tuple[str, int] | None:
    """The device under a VLAN and its number, as its name says, which is what every distribution calls it: bond0.100."""
    link, dot, number = interface.name.rpartition(".")
    named = dot and number.isascii() and number.isdigit() and 1 <= int(number) <= _LAST_VLAN
    return (link, int(number)) if named and any(each.name == link for each in observed.interfaces) else None


def own_addresses(interface: ObservedInterface, *, without: Collection[str] = ()) -> list[str]:
    """The addresses with their prefix lengths that an interface keeps over a boot: no link-local ones, and none in ``without``."""
    found = []
    for text in interface.addresses:
        try:
            address = ipaddress.ip_interface(text)
        except ValueError:
            continue
        if not address.ip.is_link_local and not address.ip.is_loopback and str(address.ip) not in without:
            found.append(str(address))
    return found


def _named(interface: ObservedInterface) -> dict[str, Any]:
    return {"match": {"macaddress": interface.mac.lower()}, "set-name": interface.name}


def _master(interface: ObservedInterface, section: str, observed: ObservedNetwork) -> dict[str, Any]:
    """A device that is made of others.  How a bond shares its work is not observed: active-backup is what every switch bears."""
    made: dict[str, Any] = {"interfaces": [each.name for each in observed.interfaces if each.master == interface.name]}
    return {**made, "parameters": {"mode": "active-backup"}} if section == "bonds" else made


def _addressed(interface: ObservedInterface, addresses: list[str], observed: ObservedNetwork) -> dict[str, Any]:
    made: dict[str, Any] = {"dhcp4": False, "dhcp6": False}
    if interface.mtu:
        made["mtu"] = interface.mtu
    if not addresses:
        return made
    made["addresses"] = addresses
    routes = [_route(route.destination, route.gateway, route.metric) for route in observed.routes if route.interface == interface.name]
    routes = [route for route in routes if route]
    if routes:
        made["routes"] = routes
    servers = {"addresses": list(observed.dns_servers), "search": list(observed.search_domains)}
    if any(servers.values()):
        made["nameservers"] = {name: values for name, values in servers.items() if values}
    return made


def _route(destination: str, gateway: str, metric: int | None) -> dict[str, Any]:
    """Empty for a route without a gateway: it follows from the address of the interface."""
    if not gateway:
        return {}
    everywhere = "::/0" if ":" in gateway else "0.0.0.0/0"
    made: dict[str, Any] = {"to": everywhere if destination in ("", "default") else destination, "via": gateway}
    return {**made, "metric": metric} if metric else made
