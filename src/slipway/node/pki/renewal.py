"""``certs renew``: a new certificate and a new key that say what the old certificate says."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys
from slipway.credentials.profile import DEFAULT_VALIDITY
from slipway.kube import kubeconfig
from slipway.node import kubeconfigs, paths
from slipway.node.pki import specs, store

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from slipway.credentials.keys import PrivateKey
    from slipway.kube.kubeconfig import Document
    from slipway.node.context import NodeContext


class Renewable(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate that can be renewed: one of the certificate folder, or one inside a kubeconfig file."""

    name: str
    """``apiserver``, ``etcd-peer``, ``admin.conf`` …"""
    description: str
    ca: str
    base_name: str = ""
    """Where its files are; empty for a kubeconfig."""


# The kubelet renews what is in its own kubeconfig by itself.
RENEWABLE: tuple[Renewable, ...] = tuple(
    sorted(
        [
            *(
                Renewable(name=spec.name, description=spec.description, ca=spec.ca, base_name=spec.base_name)
                for spec in specs.CERTIFICATES
                if spec.ca
            ),
            *(
                Renewable(name=file.file_name, description=file.description, ca="ca")
                for file in kubeconfigs.KUBECONFIGS
                if file.name != "kubelet"
            ),
        ],
        key=lambda item: item.name,
    )
)
"""By name, in the order in which they are renewed and listed."""


def renewable(ctx: NodeContext) -> list[Renewable]:
    """What this cluster has: nothing of etcd's where etcd is external."""
    external = ctx.config.cluster.etcd.external is not None
    return [item for item in RENEWABLE if not (external and item.ca == "etcd-ca")]


def renew_all(ctx: NodeContext, directory: str = paths.KUBERNETES_DIR) -> None:
    """``certs renew all``."""
    items = renewable(ctx)
    existing = [item for item in items if exists(ctx, item, directory)]
    ctx.keys.expect(ctx.config.cluster.key_algorithm, sum(not store.is_keyless(ctx, item.ca) for item in existing))
    for item in items:
        _renew(ctx, item, directory)
    ctx.progress.say(
        "\nDone renewing certificates. You must restart the kube-apiserver, kube-controller-manager, kube-scheduler and etcd, "
        "so that they can use the new certificates."
    )


def renew(ctx: NodeContext, name: str, directory: str = paths.KUBERNETES_DIR) -> None:
    """``certs renew NAME``."""
    item = next((item for item in renewable(ctx) if item.name == name), None)
    if item is None:
        raise OperatorError(f"{name} is not a valid certificate for this cluster")
    _renew(ctx, item, directory)


def renew_for_upgrade(ctx: NodeContext, name: str) -> bool:
    """Renew without a word; false where an external authority keeps the key that this would take."""
    item = next(item for item in RENEWABLE if item.name == name)
    if store.externally_managed(ctx, item.ca):
        return False
    _sign(ctx, item, paths.KUBERNETES_DIR)
    return True


def exists(ctx: NodeContext, item: Renewable, directory: str) -> bool:
    path = _location(ctx, item, directory)
    return ctx.host.exists(path) and not ctx.host.is_dir(path)


def load(ctx: NodeContext, item: Renewable, directory: str) -> Certificate:
    """The certificate as it is now."""
    if item.base_name:
        return store.load_chain(ctx, item.base_name)[0]
    path = _location(ctx, item, directory)
    return _client_certificate(_load_kubeconfig(ctx, path), path)


def _renew(ctx: NodeContext, item: Renewable, directory: str) -> None:
    if not exists(ctx, item, directory):
        ctx.progress.say(f"MISSING! {item.description}")
        return
    if store.externally_managed(ctx, item.ca):
        ca = specs.spec_of(item.ca).base_name
        ctx.progress.say(f"Detected external {ca}, {item.description} can't be renewed")
        return
    _sign(ctx, item, directory)
    ctx.progress.say(f"{item.description} renewed")


def _sign(ctx: NodeContext, item: Renewable, directory: str) -> None:
    from slipway.credentials import x509

    wanted = x509.profile_of(load(ctx, item, directory))
    authority = store.load_authority(ctx, item.ca)
    cluster = ctx.config.cluster
    key = ctx.keys.take(cluster.key_algorithm)
    valid = x509.period(ctx.host.now(), cluster.certificate_validity_period or DEFAULT_VALIDITY)
    try:
        certificate = x509.signed(wanted, key.public_key(), authority, valid)
    except OperatorError as error:
        raise OperatorError(f"failed to renew certificate {item.name}: {error.message}") from error
    if item.base_name:
        store.write_pair(ctx, item.base_name, certificate, key)
    else:
        _write_kubeconfig(ctx, _location(ctx, item, directory), certificate, key, authority.certificate)


def _write_kubeconfig(ctx: NodeContext, path: str, certificate: Certificate, key: PrivateKey, ca: Certificate) -> None:
    """Put the new certificate, its key and the CA of today into the file's current context; the rest stays."""
    from slipway.credentials import x509

    existing = _load_kubeconfig(ctx, path)
    _, cluster, user = _current(existing, path)
    cluster["certificate-authority-data"] = kubeconfig.encoded(x509.pem(ca))
    user["client-certificate-data"] = kubeconfig.encoded(x509.pem(certificate))
    user["client-key-data"] = kubeconfig.encoded(keys.private_pem(key))
    ctx.host.write(path, kubeconfig.text(existing, ctx.release).encode())


def _client_certificate(existing: Document, path: str) -> Certificate:
    from slipway.credentials import x509

    _, cluster, user = _current(existing, path)
    if not cluster.get("certificate-authority-data"):
        raise OperatorError(f"kubeConfig file {path} does not have an embedded server certificate")
    if not user.get("client-certificate-data"):
        raise OperatorError(f"kubeConfig file {path} does not have an embedded client certificate")
    try:
        return x509.parse(kubeconfig.decoded(user["client-certificate-data"], f"client-certificate-data of {path}"))[0]
    except ValueError as error:
        raise OperatorError(f"kubeConfig file {path} does not contain a valid client certificate: {error}") from error


def _current(existing: Document, path: str) -> tuple[Document, Document, Document]:
    """The current context of a file, and the cluster and the user that it names."""
    name = existing.get("current-context") or ""
    context = kubeconfig.named(existing, "context", name)
    if context is None:
        raise OperatorError(f'invalid kubeConfig file {path}: missing context "{name}"')
    cluster = kubeconfig.named(existing, "cluster", context.get("cluster") or "")
    if cluster is None:
        raise OperatorError(f'invalid kubeConfig file {path}: missing cluster "{context.get("cluster", "")}"')
    user = kubeconfig.named(existing, "user", context.get("user") or "")
    if user is None:
        raise OperatorError(f'invalid kubeConfig file {path}: missing authInfo "{context.get("user", "")}"')
    return context, cluster, user


def _load_kubeconfig(ctx: NodeContext, path: str) -> Document:
    try:
        return kubeconfig.load(ctx.host.read(path), path)
    except OSError as error:
        raise OperatorError(f"failed to load kubeConfig file {path}: {error.strerror or error}") from error


def _location(ctx: NodeContext, item: Renewable, directory: str) -> str:
    return store.certificate_path(ctx, item.base_name) if item.base_name else posixpath.join(directory, item.name)
