"""Which checks a command runs, in kubeadm's order.

Checks that ask the container runtime or an external etcd are not among them yet.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from slipway.api.kubeadm.addresses import parse_host_port
from slipway.api.machinery.version import Version
from slipway.node import paths
from slipway.node.preflight import machine, proxies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.kubeadm.internal import ExternalEtcd, InitConfiguration, JoinConfiguration
    from slipway.api.releases import Release
    from slipway.node.preflight.check import Check

_SCHEDULER_PORT, _CONTROLLER_MANAGER_PORT = 10259, 10257
_ETCD_PORTS = (2379, 2380)


def init_checks(config: InitConfiguration, release: Release, *, joining: bool = False, certificates_follow: bool = False) -> list[Check]:
    """Those of a control plane; one that joins has run the checks of every node before."""
    cluster, endpoint = config.cluster, config.local_api_endpoint
    version = Version.parse(cluster.kubernetes_version)
    manifests = [f"{paths.MANIFESTS_DIR}/{name}.yaml" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")]
    subnets = [*cluster.networking.service_subnet.split(","), *cluster.networking.pod_subnet.split(",")]
    checks = [
        machine.cpus(),
        machine.memory(),
        machine.kubernetes_version(version, release.version),
        machine.firewalld(endpoint.bind_port, machine.KUBELET_PORT),
        *(machine.port(number) for number in (endpoint.bind_port, _SCHEDULER_PORT, _CONTROLLER_MANAGER_PORT)),
        *(machine.file_available(path) for path in manifests),
        proxies.direct(endpoint.advertise_address),
        *(proxies.direct_subnet(subnet) for subnet in subnets),
    ]
    if not joining:
        checks += _node_checks(config.node_registration.name, version, release)
        checks += _forwarding([*subnets, endpoint.advertise_address])
    if cluster.etcd.local is not None:
        checks += [machine.port(number) for number in _ETCD_PORTS]
        checks.append(machine.directory_available(cluster.etcd.local.data_dir))
    if cluster.etcd.external is not None and not (joining and certificates_follow):
        checks += _external_etcd_files(cluster.etcd.external)
    return checks


def join_checks(config: JoinConfiguration, release: Release) -> list[Check]:
    """Those of every node that joins."""
    checks = [machine.file_available(path) for path in (paths.KUBELET_CONF, paths.BOOTSTRAP_KUBELET_CONF)]
    checks += _node_checks(config.node_registration.name, None, release)
    if config.control_plane is None:
        checks.append(machine.file_available(config.ca_cert_path))
    if config.discovery.bootstrap_token is not None:
        host, port = parse_host_port(config.discovery.bootstrap_token.api_server_endpoint)
        if port:
            checks.append(proxies.direct(host))
            checks += _forwarding([host])
    return checks


def _node_checks(node_name: str, version: Version | None, release: Release) -> list[Check]:
    return [
        machine.swap(),
        *(machine.program(name) for name in ("losetup", "mount", "cp")),
        machine.hostname(node_name),
        machine.kubelet_version(version, release.version),
        machine.kubelet_service(),
        machine.port(machine.KUBELET_PORT),
    ]


def _forwarding(networks: Iterable[str]) -> list[Check]:
    """The kernel must forward packets of the families that are used."""
    families = {_family(network) for network in networks}
    settings = ((4, machine.IPV4_FORWARDING), (6, machine.IPV6_FORWARDING))
    return [machine.switched_on(path) for family, path in settings if family in families]


def _family(network: str) -> int:
    """4 or 6 for a subnet or an address; 0 for anything else, such as a host name."""
    try:
        return ip_network(network, strict=False).version if "/" in network else ip_address(network).version
    except ValueError:
        return 0


def _external_etcd_files(etcd: ExternalEtcd) -> list[Check]:
    files = (etcd.ca_file, etcd.cert_file, etcd.key_file)
    return [machine.file_existing(path, "ExternalEtcdClientCertificates") for path in files if path]
