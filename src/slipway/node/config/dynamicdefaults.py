"""Defaults that depend on the machine: the node's name, its address, its CRI socket, the version that a label means.

They are filled in after the static defaults and before validation, in kubeadm's order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import addresses, defaults, internal
from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.node.config import version

if TYPE_CHECKING:
    from slipway.api.kubeadm.documents import Warn
    from slipway.api.releases import Release
    from slipway.host.interface import Host

CONTROL_PLANE_TAINT = internal.Taint(key="node-role.kubernetes.io/control-plane", effect="NoSchedule")
UNKNOWN_ADDRESS = "0.0.0.0"
_URL_SCHEME = "unix"
KNOWN_CRI_SOCKETS = (
    "unix:///var/run/containerd/containerd.sock",
    "unix:///var/run/crio/crio.sock",
    "unix:///var/run/cri-dockerd.sock",
)


def fill_init(config: internal.InitConfiguration, release: Release, host: Host, warn: Warn, *, skip_cri_detection: bool) -> Release:
    """Fill in an InitConfiguration; the answer is the release to act as, which the version may have decided."""
    for token in config.bootstrap_tokens:
        token.token = token.token or _new_token()
    fill_node_registration(config.node_registration, host, warn, taint=True, skip_cri_detection=skip_cri_detection)
    fill_endpoint(config.local_api_endpoint, host, warn)
    return fill_cluster(config, release, host, warn)


def fill_join(config: internal.JoinConfiguration, host: Host, warn: Warn, *, skip_cri_detection: bool) -> None:
    control_plane = config.control_plane
    fill_node_registration(config.node_registration, host, warn, taint=control_plane is not None, skip_cri_detection=skip_cri_detection)
    if control_plane is not None:
        fill_endpoint(control_plane.local_api_endpoint, host, warn)


def fill_node_registration(
    options: internal.NodeRegistrationOptions, host: Host, warn: Warn, *, taint: bool, skip_cri_detection: bool
) -> None:
    options.name = node_name(options.name, host)
    # An empty list stays: it says that the node has no taint.
    if taint and options.taints is None:
        options.taints = [internal.Taint(key=CONTROL_PLANE_TAINT.key, effect=CONTROL_PLANE_TAINT.effect)]
    options.cri_socket = cri_socket(options.cri_socket, host, warn, skip_detection=skip_cri_detection)


def node_name(given: str, host: Host) -> str:
    """The name of a node as the kubelet would register it: the given one or the hostname, trimmed and in lower case."""
    name = (given or host.hostname()).strip().lower()
    if not name:
        raise ConfigurationError("empty hostname is invalid: name the node with --node-name or nodeRegistration.name")
    return name


def cri_socket(given: str, host: Host, warn: Warn, *, skip_detection: bool) -> str:
    """The CRI endpoint: the given one with its scheme, else the one that exists, else containerd's."""
    if given.startswith(_URL_SCHEME):
        return given
    if given:
        warn(
            "Usage of CRI endpoints without URL scheme is deprecated and can cause kubelet errors in the future. "
            f'Automatically prepending scheme "{_URL_SCHEME}" to the "criSocket" with value "{given}". Please update your configuration!'
        )
        return f"{_URL_SCHEME}://{given}"
    if skip_detection:
        return defaults.CRI_SOCKET
    found = [socket for socket in KNOWN_CRI_SOCKETS if host.exists(socket.removeprefix("unix://"))]
    if len(found) > 1:
        raise ConfigurationError(
            "found multiple CRI endpoints on the host. Please define which one do you wish to use by setting the 'criSocket' field "
            f"in the kubeadm configuration file: {', '.join(found)}"
        )
    return found[0] if found else defaults.CRI_SOCKET


def fill_endpoint(endpoint: internal.APIEndpoint, host: Host, warn: Warn) -> None:
    """Detect the address to advertise where none is given, or where 0.0.0.0, :: or a loopback address stands for 'any'."""
    given = addresses.parse_ip(endpoint.advertise_address)
    if given is None and endpoint.advertise_address:
        raise ConfigurationError(
            f'couldn\'t use "{endpoint.advertise_address}" as "apiserver-advertise-address", must be ipv4 or ipv6 address'
        )
    if given is not None and not given.is_loopback and not given.is_unspecified:
        endpoint.advertise_address = str(given)
        return
    from slipway.host import addresses as network

    if given is not None and given.is_loopback:
        endpoint.advertise_address = str(network.loopback_address(host))
        return
    families = (6, 4) if given is not None and given.version == 6 else (4, 6)
    try:
        endpoint.advertise_address = str(network.host_address(host, families))
    except network.NoDefaultRouteError as error:
        warn(f"WARNING: could not obtain a bind address for the API Server: {error.message}; using: {UNKNOWN_ADDRESS}")
        endpoint.advertise_address = UNKNOWN_ADDRESS


def fill_cluster(config: internal.InitConfiguration, release: Release, host: Host, warn: Warn) -> Release:
    """The version, the port of the control-plane endpoint, and lower case for the API server's names."""
    cluster = config.cluster
    fixed = version.acts_as_one_release(host.environment)
    requested = cluster.kubernetes_version
    cluster.kubernetes_version = version.resolve(requested, release, warn, version.release_server(host))
    release = version.check_supported(cluster.kubernetes_version, release, warn, fixed=fixed)
    if version.is_ci(requested):
        cluster.ci_kubernetes_version = version.CI_PREFIX + cluster.kubernetes_version
        if cluster.image_repository == defaults.IMAGE_REPOSITORY:
            cluster.ci_image_repository = version.CI_IMAGE_REPOSITORY
    if cluster.control_plane_endpoint:
        try:
            name, port = addresses.parse_host_port(cluster.control_plane_endpoint)
        except ValueError as error:
            raise ConfigurationError(f"controlPlaneEndpoint: {error}") from None
        if not port:
            cluster.control_plane_endpoint = addresses.join_host_port(name, config.local_api_endpoint.bind_port)
    cluster.api_server.cert_sans = [name.lower() for name in cluster.api_server.cert_sans]
    return release


def fill_components(config: internal.InitConfiguration, release: Release, host: Host, warn: Warn) -> None:
    """The kubelet's and kube-proxy's configurations, as far as the user left them open."""
    from slipway.api import components

    resolved = _systemd_resolved(host)
    for warning in components.default(
        config.cluster, config.local_api_endpoint, config.node_registration, release, systemd_resolved=resolved
    ):
        warn(warning)


def verify_bind_address(address: str) -> None:
    """OperatorError where the API server could not be reached at an address, such as 0.0.0.0."""
    parsed = addresses.parse_ip(address)
    if parsed is None:
        raise OperatorError(f"cannot parse IP address: {address}")
    if not parsed.is_loopback and not addresses.is_global_unicast(parsed):
        raise OperatorError(
            f'cannot use "{address}" as the bind address for the API Server: '
            "name one with --apiserver-advertise-address or localAPIEndpoint.advertiseAddress"
        )


def _new_token() -> str:
    from slipway.credentials import tokens

    return tokens.generate()


def _systemd_resolved(host: Host) -> bool:
    """Whether systemd-resolved runs here, in which case its own resolv.conf is the kubelet's."""
    if host.which("systemctl") is None:
        return False
    return host.run("systemctl", "is-active", "systemd-resolved").stdout.strip() in ("active", "activating")
