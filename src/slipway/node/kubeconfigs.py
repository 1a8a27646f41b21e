"""Kubeconfig files: those of a control plane and those of additional users.

A file that is there already is reused if it trusts the cluster's CA, and refused with the reason otherwise.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.kubeadm import addresses
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys
from slipway.credentials.profile import CLIENT_AUTH, DEFAULT_VALIDITY, Profile
from slipway.kube import kubeconfig
from slipway.kube.proxies import redacted
from slipway.node import paths
from slipway.node.pki import store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.x509 import Certificate

    from slipway.api.kubeadm.internal import InitConfiguration
    from slipway.api.machinery.duration import Duration
    from slipway.api.releases import Release
    from slipway.credentials.x509 import Authority
    from slipway.host.interface import Host
    from slipway.node.context import NodeContext


class Destination(NamedTuple):
    """A cluster, as a kubeconfig names it."""

    server: str
    ca: bytes


class KubeconfigSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A kubeconfig file of a control plane: whom it lets in, and where it leads."""

    name: str
    description: str
    client_name: str
    organization: str = ""
    local: bool = False
    """Whether it leads to the API server of this node, rather than to the cluster's endpoint."""

    @property
    def file_name(self) -> str:
        return f"{self.name}.conf"


KUBECONFIGS: tuple[KubeconfigSpec, ...] = (
    KubeconfigSpec(
        name="admin",
        description="certificate embedded in the kubeconfig file for the admin to use and for kubeadm itself",
        client_name="kubernetes-admin",
        organization="kubeadm:cluster-admins",
    ),
    KubeconfigSpec(
        name="super-admin",
        description="certificate embedded in the kubeconfig file for the super-admin",
        client_name="kubernetes-super-admin",
        organization="system:masters",
    ),
    KubeconfigSpec(
        name="kubelet",
        description="certificate embedded in the kubeconfig file for the kubelet to use",
        client_name="system:node:",
        organization="system:nodes",
    ),
    KubeconfigSpec(
        name="controller-manager",
        description="certificate embedded in the kubeconfig file for the controller manager to use",
        client_name="system:kube-controller-manager",
        local=True,
    ),
    KubeconfigSpec(
        name="scheduler",
        description="certificate embedded in the kubeconfig file for the scheduler manager to use",
        client_name="system:kube-scheduler",
        local=True,
    ),
)

_BY_NAME = {spec.name: spec for spec in KUBECONFIGS}
_JOIN = ("admin", "controller-manager", "scheduler")


def profile(spec: KubeconfigSpec, config: InitConfiguration) -> Profile:
    """The client certificate of a file."""
    node = config.node_registration.name if spec.name == "kubelet" else ""
    return Profile(
        common_name=spec.client_name + node,
        organizations=(spec.organization,) if spec.organization else (),
        usages=(CLIENT_AUTH,),
    )


def server(spec: KubeconfigSpec, config: InitConfiguration, release: Release) -> str:
    """The URL that a file leads to: the kubelet's is local, unless ControlPlaneKubeletLocalMode is off."""
    kubelet_stays_local = release.gate(config.cluster.feature_gates, "ControlPlaneKubeletLocalMode")
    if spec.local or (spec.name == "kubelet" and kubelet_stays_local):
        return addresses.local_api_url(config.local_api_endpoint)
    return addresses.control_plane_url(config)


def announce_folder(ctx: NodeContext, directory: str = paths.KUBERNETES_DIR) -> None:
    ctx.progress.say(f'[kubeconfig] Using kubeconfig folder "{ctx.host.shown(directory)}"')


def missing(ctx: NodeContext, names: Iterable[str], directory: str = paths.KUBERNETES_DIR) -> int:
    """How many of the files will have to be made, and so how many keys they need."""
    if store.is_keyless(ctx, "ca"):
        return 0
    return sum(not ctx.host.exists(posixpath.join(directory, _BY_NAME[name].file_name)) for name in names)


def ensure(ctx: NodeContext, name: str, directory: str = paths.KUBERNETES_DIR) -> None:
    """One step of ``init``: the file is there and can be used, or it says why not."""
    spec = _BY_NAME[name]
    path = posixpath.join(directory, spec.file_name)
    if store.is_keyless(ctx, "ca"):
        ctx.progress.say(f"[kubeconfig] External CA mode: Using user provided {spec.file_name}")
        ctx.host.include(path)
        return
    _ensure(ctx, spec, path, server(spec, ctx.config, ctx.release))


def missing_for_join(ctx: NodeContext) -> int:
    """How many files one more control plane will have to make."""
    return missing(ctx, _JOIN)


def ensure_for_join(ctx: NodeContext, directory: str = paths.KUBERNETES_DIR) -> None:
    """The files of one more control plane; the kubelet's comes from its TLS bootstrap."""
    for name in _JOIN:
        spec = _BY_NAME[name]
        if ctx.host.exists(store.key_path(ctx, "ca")):
            _ensure(ctx, spec, posixpath.join(directory, spec.file_name), server(spec, ctx.config, ctx.release))
        else:
            ctx.progress.say(f"[kubeconfig] External CA mode: Using user provided {spec.file_name}")


def validate_external_ca(ctx: NodeContext, directory: str = paths.KUBERNETES_DIR) -> None:
    """With an external CA all five files must be there and trust it, because they cannot be made here."""
    chain = store.load_chain(ctx, "ca")
    for certificate in chain:
        store.warn_about_period(ctx, "ca", certificate)
    for spec in sorted(KUBECONFIGS, key=lambda spec: not spec.local):
        expected = addresses.local_api_url(ctx.config.local_api_endpoint) if spec.local else addresses.control_plane_url(ctx.config)
        try:
            _check_existing(ctx, posixpath.join(directory, spec.file_name), chain, expected)
        except OperatorError as error:
            raise OperatorError(f"the {spec.file_name} file does not exists or it is not valid: {error.message}") from error


def leads_to(host: Host, path: str) -> Destination:
    """Where the current context of a kubeconfig leads."""
    try:
        config = kubeconfig.load(host.read(path), path)
    except OSError as error:
        raise OperatorError(f"failed to load the kubeconfig {host.location(path)}: {error.strerror or error}") from error
    context = kubeconfig.named(config, "context", config.get("current-context") or "") or {}
    cluster = kubeconfig.named(config, "cluster", context.get("cluster") or "")
    if cluster is None:
        raise OperatorError(f"malformed kubeconfig file: {path}: its current context leads to no cluster")
    ca = kubeconfig.decoded(cluster.get("certificate-authority-data"), f"certificate-authority-data of {path}")
    return Destination(str(cluster.get("server", "")), ca)


def require(host: Host, path: str) -> None:
    """A kubeconfig that an earlier phase wrote must be there and lead to a cluster; OperatorError says what is wrong."""
    leads_to(host, path)


def user(
    ctx: NodeContext,
    *,
    client_name: str,
    organizations: tuple[str, ...] = (),
    token: str = "",
    validity: Duration = DEFAULT_VALIDITY,
) -> str:
    """``kubeconfig user``: the text of a kubeconfig for an additional user, with a token or a new client certificate."""
    if validity > DEFAULT_VALIDITY:
        ctx.progress.warn(
            f"WARNING: the specified certificate validity period {validity} is longer than the default duration "
            f"{DEFAULT_VALIDITY}, this may increase security risks."
        )
    authority = _authority(ctx, "couldn't create a kubeconfig; the CA files couldn't be loaded")
    _warn_about_port(ctx)
    if token:
        credentials = {"token": token}
    else:
        wanted = Profile(common_name=client_name, organizations=organizations, usages=(CLIENT_AUTH,))
        credentials = _client_certificate(ctx, wanted, authority, validity)
    return kubeconfig.text(
        _document(ctx, addresses.control_plane_url(ctx.config), client_name, authority.certificate, credentials), ctx.release
    )


def _ensure(ctx: NodeContext, spec: KubeconfigSpec, path: str, url: str) -> None:
    authority = _authority(ctx, "couldn't create a kubeconfig; the CA files couldn't be loaded")
    _warn_about_port(ctx)
    if ctx.host.exists(path):
        _check_existing(ctx, path, [authority.certificate], url)
        ctx.progress.say(f'[kubeconfig] Using existing kubeconfig file: "{ctx.host.shown(path)}"')
        return
    wanted = profile(spec, ctx.config)
    validity = ctx.config.cluster.certificate_validity_period or DEFAULT_VALIDITY
    credentials = _client_certificate(ctx, wanted, authority, validity)
    made = _document(ctx, url, wanted.common_name, authority.certificate, credentials)
    ctx.progress.say(f'[kubeconfig] Writing "{spec.file_name}" kubeconfig file')
    ctx.host.write(path, kubeconfig.text(made, ctx.release).encode())


def _authority(ctx: NodeContext, complaint: str) -> Authority:
    if not ctx.host.exists(store.certificate_path(ctx, "ca")):
        path = store.certificate_path(ctx, "ca")
        raise OperatorError(f"{path} does not exist: the CA files do not exist, please run `kubeadm init phase certs ca` to generate it")
    try:
        return store.load_authority(ctx, "ca")
    except OperatorError as error:
        raise OperatorError(f"{complaint}: {error.message}") from error


def _client_certificate(ctx: NodeContext, wanted: Profile, authority: Authority, validity: Duration) -> dict[str, str]:
    """A new client certificate; as kubeadm's, it becomes valid when the CA did."""
    from slipway.credentials import x509

    key = ctx.keys.take(ctx.config.cluster.key_algorithm)
    until = x509.period(ctx.host.now(), validity).not_after
    valid = x509.Period(authority.certificate.not_valid_before_utc, until)
    certificate = x509.signed(wanted, key.public_key(), authority, valid)
    return {
        "client-certificate-data": kubeconfig.encoded(x509.pem(certificate)),
        "client-key-data": kubeconfig.encoded(keys.private_pem(key)),
    }


def _document(ctx: NodeContext, url: str, client_name: str, ca: Certificate, credentials: dict[str, str]) -> kubeconfig.Document:
    from slipway.credentials import x509

    return kubeconfig.document(
        server=url, cluster=ctx.config.cluster.cluster_name, user=client_name, ca=x509.pem(ca), credentials=credentials
    )


def _check_existing(ctx: NodeContext, path: str, trusted: list[Certificate], url: str) -> None:
    """The file's current context must trust one of the ``trusted`` certificates; another server is only warned of."""
    existing = kubeconfig.load(_read(ctx, path), path)
    context = kubeconfig.named(existing, "context", existing.get("current-context") or "")
    if context is None:
        raise OperatorError(f"failed to find CurrentContext in Contexts of the kubeconfig file {path}")
    cluster = kubeconfig.named(existing, "cluster", context.get("cluster") or "")
    if cluster is None:
        raise OperatorError(f"failed to find the given CurrentContext Cluster in Clusters of the kubeconfig file {path}")
    found = _embedded_authorities(ctx, cluster, path)
    if found[0] not in trusted:
        raise OperatorError(
            f'a kubeconfig file "{path}" exists but does not contain a trusted CA in its current context\'s cluster. '
            f"Total CA certificates found: {len(found)}"
        )
    if cluster.get("server") != url:
        actual = redacted(str(cluster.get("server", "")))
        ctx.warn_once(f'a kubeconfig file "{path}" exists already but has an unexpected API Server URL: expected: {url}, got: {actual}')


def _embedded_authorities(ctx: NodeContext, cluster: kubeconfig.Document, path: str) -> list[Certificate]:
    from slipway.credentials import x509

    data = kubeconfig.decoded(cluster.get("certificate-authority-data"), f"certificate-authority-data of the kubeconfig file {path}")
    reference = cluster.get("certificate-authority")
    if not data.strip() and reference:
        try:
            data = ctx.host.read(str(reference))
        except OSError as error:
            ctx.warn_once(f'failed to load CA cert from "{reference}" for kubeconfig "{path}", {error.strerror or error}')
    try:
        return x509.parse(data)
    except ValueError as error:
        raise OperatorError(f'the kubeconfig file "{path}" contains an invalid CA cert: {error}') from error


def _read(ctx: NodeContext, path: str) -> bytes:
    try:
        return ctx.host.read(path)
    except OSError as error:
        raise OperatorError(f"failed to load kubeconfig file {path}: {error.strerror or error}") from error


def _warn_about_port(ctx: NodeContext) -> None:
    if addresses.overrides_bind_port(ctx.config):
        ctx.warn_once("[endpoint] WARNING: port specified in controlPlaneEndpoint overrides bindPort in the controlplane address")
