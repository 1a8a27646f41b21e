"""Addresses, ports, names, and the way to the API server."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from slipway.node import paths
from slipway.node.doctor.finding import Check, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.facts import Api, Facts
    from slipway.node.doctor.finding import Finding

_ADDRESS_FIX = (
    "ip address: give the address back to this machine, or set the right one in {where}",
    "where this machine's address has changed for good: slipway reset, and join it again",
)

NOT_HERE = Kind("address-not-here", "error", "{where} says {address}, and this machine does not have that address", _ADDRESS_FIX)
NODE_ADDRESS = Kind(
    "node-address-differs",
    "error",
    "the cluster knows this node by {address}, and this machine does not have that address",
    ("set --node-ip in KUBELET_EXTRA_ARGS (/etc/default/kubelet) to an address of this machine", "systemctl restart kubelet"),
)
PORT_TAKEN = Kind(
    "port-taken",
    "error",
    "the port {port} of {component} is taken by {owner}",
    ("ss -ltnp 'sport = :{port}'", "stop {owner}, or give it another port"),
)
NO_NAMESERVER = Kind(
    "nameserver-missing",
    "warning",
    "no name server is set in {path}: no name can be resolved",
    ("write a line nameserver ADDRESS into {path}",),
)
LOOPBACK_NAMESERVER = Kind(
    "nameserver-loopback",
    "warning",
    "Pods get the name server {address} from {path}, which is each Pod itself: CoreDNS would ask itself without end",
    (
        "set resolvConf in /var/lib/kubelet/config.yaml to a file with the real ones (systemd-resolved: /run/systemd/resolve/resolv.conf)",
        "systemctl restart kubelet",
    ),
)
NO_RESOLV_CONF = Kind(
    "resolv-conf-missing",
    "error",
    "the kubelet cannot read the name servers for Pods from {path}: no Pod starts",
    ("set resolvConf in /var/lib/kubelet/config.yaml to a file that is there", "systemctl restart kubelet"),
)
NO_FORWARDING = Kind(
    "forwarding-off",
    "error",
    "the kernel passes no packets on ({setting}): Pods reach nobody on other nodes",
    ("echo '{setting} = 1' >> /etc/sysctl.d/99-kubernetes.conf", "sysctl --system"),
)
API_NAME = Kind(
    "api-name-unknown",
    "error",
    "the name of the API server {server} cannot be resolved",
    ("getent hosts {host}", "correct the name server, or write the name into /etc/hosts"),
)
API_SILENT = Kind(
    "api-unreachable",
    "error",
    "the API server {server} cannot be reached from here",
    ("curl -k {server}/livez", "look at the control planes, at the load balancer before them, and at firewalls"),
)
API_UNTRUSTED = Kind(
    "api-untrusted",
    "error",
    "what answers at {server} does not prove to be this cluster's API server",
    (
        "timedatectl",
        "slipway certs check-expiration on the control planes",
        "where this node is of another cluster: slipway reset, and join again",
    ),
)
API_REFUSED = Kind(
    "api-refused",
    "error",
    "the API server {server} refuses this node's kubelet",
    (
        "on a control plane: slipway kubeconfig user --org system:nodes --client-name system:node:{node} > kubelet.conf",
        "put it to /etc/kubernetes/kubelet.conf of this node, then systemctl restart kubelet",
    ),
)
API_FAILING = Kind("api-failing", "error", "the API server {server} answers with an error", ("look at the control planes: slipway doctor",))
NODE_MISSING = Kind(
    "node-missing",
    "error",
    "the cluster has no Node {node}",
    ("systemctl restart kubelet (it registers the Node again)", "where that was removed on purpose: slipway reset"),
)
NOT_READY = Kind("node-not-ready", "error", "the Node is not Ready: {reason}", ("kubectl describe node {node}",))
PRESSURE = Kind(
    "node-under-pressure",
    "warning",
    "the Node tells {condition}: the kubelet evicts Pods",
    ("kubectl describe node {node}", "df -h; free -m"),
)
CORDONED = Kind("node-cordoned", "note", "the Node takes no new Pods: somebody has cordoned it", ("kubectl uncordon {node}",))

_TROUBLES = {"name": API_NAME, "unreachable": API_SILENT, "untrusted": API_UNTRUSTED, "refused": API_REFUSED, "failing": API_FAILING}


def find(facts: Facts) -> Iterator[Finding]:
    if facts.is_node:
        here = ", ".join(facts.addresses)
        for where, address in facts.claimed_addresses:
            if facts.addresses and address not in facts.addresses and not _is_anywhere(address):
                yield NOT_HERE.found(f"this machine has {here}", where=where, address=address)
        yield from _forwarding(facts)
    for port in facts.ports:
        # The kernel keeps 15 characters of a program's name.
        if port.owner and port.owner != port.component[:15]:
            yield PORT_TAKEN.found(
                f"{port.owner} listens on port {port.number}", port=port.number, component=port.component, owner=port.owner
            )
    yield from _names(facts)
    if facts.api is not None:
        yield from _api(facts, facts.api)


def _forwarding(facts: Facts) -> Iterator[Finding]:
    for path in facts.forwarding_off:
        setting = path.removeprefix("/proc/sys/").replace("/", ".")
        yield NO_FORWARDING.found(f"{path} is 0", setting=setting)


def _names(facts: Facts) -> Iterator[Finding]:
    path = facts.resolv_conf
    if not path:
        return
    if facts.resolv_conf_problem:
        if facts.is_node:
            yield NO_RESOLV_CONF.found(f"{path}: {facts.resolv_conf_problem}", path=path)
        return
    if not facts.nameservers:
        yield NO_NAMESERVER.found(f"{path} has no line nameserver", path=path)
    for address in facts.nameservers:
        if facts.is_node and _is_loopback(address):
            yield LOOPBACK_NAMESERVER.found(f"nameserver {address} in {path}", address=address, path=path)


def _api(facts: Facts, api: Api) -> Iterator[Finding]:
    node = facts.node or "NAME"
    if api.trouble:
        host = api.server.partition("://")[2].rpartition(":")[0] or api.server
        yield _TROUBLES[api.trouble].found(api.problem, server=api.server, host=host, node=node)
        return
    if not api.asked_for_node:
        return
    if api.node is None:
        yield NODE_MISSING.found(f"{api.server} knows no Node of the name in {paths.KUBELET_CONF}", node=node)
        return
    status, spec = api.node.get("status") or {}, api.node.get("spec") or {}
    for condition in status.get("conditions") or ():
        told = f"{condition.get('type')}={condition.get('status')}: {condition.get('message', '')}"
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            yield NOT_READY.found(told, reason=condition.get("reason", ""), node=node)
        elif str(condition.get("type")).endswith("Pressure") and condition.get("status") == "True":
            yield PRESSURE.found(told, condition=condition["type"], node=node)
    for address in status.get("addresses") or ():
        if address.get("type") == "InternalIP" and facts.addresses and address.get("address") not in facts.addresses:
            yield NODE_ADDRESS.found(f"this machine has {', '.join(facts.addresses)}", address=address.get("address"))
    if spec.get("unschedulable"):
        yield CORDONED.found("spec.unschedulable of the Node is true", node=node)


def _is_anywhere(address: str) -> bool:
    """An address that is no machine's own: every one (0.0.0.0), or this one's loopback."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return True
    return parsed.is_unspecified or parsed.is_loopback


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


CHECK = Check(
    "network",
    "addresses, ports, name servers, the way to the API server, and what it knows of this node",
    (
        NOT_HERE, NODE_ADDRESS, PORT_TAKEN, NO_NAMESERVER, LOOPBACK_NAMESERVER, NO_RESOLV_CONF, NO_FORWARDING, API_NAME, API_SILENT,
        API_UNTRUSTED, API_REFUSED, API_FAILING, NODE_MISSING, NOT_READY, PRESSURE, CORDONED,
    ),
    find,
)  # fmt: skip
