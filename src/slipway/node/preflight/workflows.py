"""Which checks a command runs, in kubeadm's order."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from slipway.api.kubeadm.addresses import parse_host_port
from slipway.api.machinery.version import Version
from slipway.node import paths
from slipway.node.preflight import externaletcd, extraargs, machine, runtime
from slipway.node.preflight.resume import CONTROLLER_MANAGER_PORT, ETCD_PORTS, KUBELET_PORT, NOTHING, SCHEDULER_PORT, Earlier

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.kubeadm.internal import ExternalEtcd, InitConfiguration, JoinConfiguration, NodeRegistrationOptions
    from slipway.api.releases import Release
    from slipway.node.preflight.check import Check


def init_checks(
    config: InitConfiguration,
    release: Release,
    *,
    joining: bool = False,
    certificates_follow: bool = False,
    earlier: Earlier = NOTHING,
) -> list[Check]:
    """Those of a control plane; one that joins has run the checks of every node before."""
    cluster, endpoint = config.cluster, config.local_api_endpoint
    version = Version.parse(cluster.kubernetes_version)
    manifests = [f"{paths.MANIFESTS_DIR}/{name}.yaml" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")]
    subnets = [*cluster.networking.service_subnet.split(","), *cluster.networking.pod_subnet.split(",")]
    checks = [
        machine.cpus(),
        machine.memory(),
        machine.kubernetes_version(version, release.version),
        machine.firewalld(endpoint.bind_port, KUBELET_PORT),
        *_ports((endpoint.bind_port, SCHEDULER_PORT, CONTROLLER_MANAGER_PORT), earlier),
        *(machine.file_available(path) for path in manifests if path not in earlier.files),
        machine.direct(endpoint.advertise_address),
        *(machine.direct_subnet(subnet) for subnet in subnets),
        *extraargs.authorization_files(cluster.api_server),
        *extraargs.control_plane_flags(cluster, release),
    ]
    if not joining:
        checks += _node_checks(config.node_registration, version, release, earlier)
        checks += _forwarding([*subnets, endpoint.advertise_address])
        if cluster.etcd.external is not None:
            checks.append(externaletcd.version(cluster.etcd.external, _answering_endpoints(cluster.etcd.external, release)))
    if cluster.etcd.local is not None:
        checks += _ports(ETCD_PORTS, earlier)
        if cluster.etcd.local.data_dir not in earlier.folders:
            checks.append(machine.directory_available(cluster.etcd.local.data_dir))
    if cluster.etcd.external is not None and not (joining and certificates_follow):
        checks += _external_etcd_files(cluster.etcd.external)
    return checks


def join_checks(config: JoinConfiguration, release: Release, *, earlier: Earlier = NOTHING) -> list[Check]:
    """Those of every node that joins."""
    files = (paths.KUBELET_CONF, paths.BOOTSTRAP_KUBELET_CONF)
    checks = [machine.file_available(path) for path in files if path not in earlier.files]
    checks += _node_checks(config.node_registration, None, release, earlier)
    if config.control_plane is None and config.ca_cert_path not in earlier.files:
        checks.append(machine.file_available(config.ca_cert_path))
    if config.discovery.bootstrap_token is not None:
        host, port = parse_host_port(config.discovery.bootstrap_token.api_server_endpoint)
        if port:
            checks.append(machine.direct(host))
            checks += _forwarding([host])
    return checks


def upgrade_checks(config: InitConfiguration, release: Release, *, control_plane: bool = True) -> list[Check]:
    """Those of a node that is upgraded; the kubelet that is there is the one that will be replaced."""
    verification = runtime.system_verification(machine.InstalledKubelet(), release, upgrade=True)
    checks = [verification, *_runtime_version(config.node_registration.cri_socket, release)]
    return [*checks, *extraargs.control_plane_flags(config.cluster, release)] if control_plane else checks


def _node_checks(node: NodeRegistrationOptions, version: Version | None, release: Release, earlier: Earlier) -> list[Check]:
    kubelet = machine.InstalledKubelet()
    return [
        runtime.runs(node.cri_socket),
        *_runtime_version(node.cri_socket, release),
        machine.swap(),
        *(machine.program(name) for name in ("losetup", "mount", "cp")),
        runtime.system_verification(kubelet, release),
        machine.hostname(node.name),
        machine.kubelet_version(version, release.version, kubelet),
        machine.kubelet_service(release.kubelet_service_check),
        *_ports((KUBELET_PORT,), earlier),
        *extraargs.kubelet_flags(node.kubelet_extra_args, kubelet, release),
    ]


def _ports(numbers: Iterable[int], earlier: Earlier) -> list[Check]:
    return [machine.port(number, earlier.ports.get(number, "")) for number in numbers]


def _runtime_version(socket: str, release: Release) -> list[Check]:
    return [runtime.tells_cgroup_driver(socket, release)] if release.cgroup_driver_fallback_ends else []


def _answering_endpoints(etcd: ExternalEtcd, release: Release) -> list[str]:
    """Those that answer in plain HTTP requests: some etcds have gRPC and HTTP on ports of their own."""
    return etcd.http_endpoints if release.http_etcd_endpoints else etcd.endpoints


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
