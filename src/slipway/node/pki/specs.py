"""Which certificates a control plane has, and what each of them says, as a function of the configuration.

Pure values: nothing is signed, read or written here, and cryptography is not needed to know them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.kubeadm import addresses
from slipway.api.kubeadm.addresses import parse_ip
from slipway.api.machinery.errors import ConfigurationError
from slipway.credentials.profile import CLIENT_AUTH, SERVER_AUTH, Profile

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import InitConfiguration
    from slipway.api.releases import Release


class CertificateSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate of the tree: its name, its files and its signer."""

    name: str
    base_name: str
    """The path of its files below the certificate folder, without ``.crt`` and ``.key``."""
    ca: str = ""
    """The name of the authority that signs it; empty for an authority."""
    description: str
    common_name: str = ""
    """Empty where the node's name is taken."""
    usages: tuple[str, ...] = ()


CERTIFICATES: tuple[CertificateSpec, ...] = (
    CertificateSpec(
        name="ca",
        base_name="ca",
        description="self-signed Kubernetes CA to provision identities for other Kubernetes components",
        common_name="kubernetes",
    ),
    CertificateSpec(
        name="apiserver",
        base_name="apiserver",
        ca="ca",
        description="certificate for serving the Kubernetes API",
        common_name="kube-apiserver",
        usages=(SERVER_AUTH,),
    ),
    CertificateSpec(
        name="apiserver-kubelet-client",
        base_name="apiserver-kubelet-client",
        ca="ca",
        description="certificate for the API server to connect to kubelet",
        common_name="kube-apiserver-kubelet-client",
        usages=(CLIENT_AUTH,),
    ),
    CertificateSpec(
        name="front-proxy-ca",
        base_name="front-proxy-ca",
        description="self-signed CA to provision identities for front proxy",
        common_name="front-proxy-ca",
    ),
    CertificateSpec(
        name="front-proxy-client",
        base_name="front-proxy-client",
        ca="front-proxy-ca",
        description="certificate for the front proxy client",
        common_name="front-proxy-client",
        usages=(CLIENT_AUTH,),
    ),
    CertificateSpec(
        name="etcd-ca",
        base_name="etcd/ca",
        description="self-signed CA to provision identities for etcd",
        common_name="etcd-ca",
    ),
    # etcd checks its own serving certificate as a client certificate too (etcd-io/etcd#9785).
    CertificateSpec(
        name="etcd-server",
        base_name="etcd/server",
        ca="etcd-ca",
        description="certificate for serving etcd",
        usages=(SERVER_AUTH, CLIENT_AUTH),
    ),
    CertificateSpec(
        name="etcd-peer",
        base_name="etcd/peer",
        ca="etcd-ca",
        description="certificate for etcd nodes to communicate with each other",
        usages=(SERVER_AUTH, CLIENT_AUTH),
    ),
    CertificateSpec(
        name="etcd-healthcheck-client",
        base_name="etcd/healthcheck-client",
        ca="etcd-ca",
        description="certificate for liveness probes to healthcheck etcd",
        common_name="kube-etcd-healthcheck-client",
        usages=(CLIENT_AUTH,),
    ),
    CertificateSpec(
        name="apiserver-etcd-client",
        base_name="apiserver-etcd-client",
        ca="etcd-ca",
        description="certificate the apiserver uses to access etcd",
        common_name="kube-apiserver-etcd-client",
        usages=(CLIENT_AUTH,),
    ),
)
"""Every certificate, an authority before what it signs, in the order in which ``init`` makes them."""

_BY_NAME = {spec.name: spec for spec in CERTIFICATES}


def spec_of(name: str) -> CertificateSpec:
    return _BY_NAME[name]


def required(config: InitConfiguration) -> tuple[CertificateSpec, ...]:
    """The certificates that this cluster has: those of etcd only where etcd is ours."""
    if config.cluster.etcd.external is None:
        return CERTIFICATES
    return tuple(spec for spec in CERTIFICATES if not of_etcd(spec))


def of_etcd(spec: CertificateSpec) -> bool:
    """Whether a certificate is one of etcd's own tree, which an external etcd brings itself."""
    return "etcd-ca" in (spec.name, spec.ca)


def profile(spec: CertificateSpec, config: InitConfiguration, release: Release) -> Profile:
    """What the certificate says in this configuration."""
    names = [(name, parse_ip(name)) for name in _alternative_names(spec, config)]
    organization = release.kubelet_client_organization if spec.name == "apiserver-kubelet-client" else ""
    common_name = spec.common_name or config.node_registration.name
    if not common_name:
        raise ConfigurationError(f"the {spec.name} certificate needs a node name: nodeRegistration.name is empty")
    return Profile(
        common_name=common_name,
        organizations=(organization,) if organization else (),
        usages=spec.usages,
        dns_names=tuple(sorted({name for name, address in names if address is None})),
        addresses=tuple(dict.fromkeys(str(address) for _, address in names if address is not None)),
    )


def _alternative_names(spec: CertificateSpec, config: InitConfiguration) -> list[str]:
    """The names and addresses that a serving certificate must cover, before sorting."""
    node = [config.node_registration.name] if config.node_registration.name else []
    local = config.cluster.etcd.local
    if spec.name == "apiserver":
        return [*node, *_apiserver_names(config), *config.cluster.api_server.cert_sans]
    if spec.name == "etcd-server":
        return [*node, *_etcd_names(config), *(local.server_cert_sans if local else [])]
    if spec.name == "etcd-peer":
        return [*node, *_etcd_names(config), *(local.peer_cert_sans if local else [])]
    return []


def _apiserver_names(config: InitConfiguration) -> list[str]:
    cluster = config.cluster
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    if cluster.networking.dns_domain:
        names.append(f"kubernetes.default.svc.{cluster.networking.dns_domain}")
    names += [_apiserver_service_address(cluster.networking.service_subnet), _advertise_address(config)]
    if cluster.control_plane_endpoint:
        names.append(addresses.control_plane_host_port(config)[0])
    return names


def _etcd_names(config: InitConfiguration) -> list[str]:
    return ["localhost", _advertise_address(config), "127.0.0.1", "::1"]


def _advertise_address(config: InitConfiguration) -> str:
    text = config.local_api_endpoint.advertise_address
    address = parse_ip(text)
    if address is None:
        raise ConfigurationError(f'localAPIEndpoint.advertiseAddress "{text}" is not a valid textual representation of an IP address')
    return str(address)


def _apiserver_service_address(service_subnets: str) -> str:
    """The address of the Service ``kubernetes``: the first one of the first subnet."""
    from ipaddress import ip_network

    subnet = service_subnets.split(",")[0].strip()
    try:
        return str(ip_network(subnet, strict=False)[1])
    except (ValueError, IndexError) as error:
        raise ConfigurationError(f'networking.serviceSubnet "{service_subnets}" has no address for the API server: {error}') from error
