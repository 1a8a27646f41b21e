"""The certificates that control planes share, encrypted in the Secret ``kubeadm-certs`` for those that join."""

from __future__ import annotations

import posixpath
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING

from slipway.api.kubeadm.internal import BootstrapToken
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys, tokens
from slipway.node.pki import store
from slipway.workload import roles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.api.kubeadm.internal import ClusterConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext


SECRET_NAME = "kubeadm-certs"
NAMESPACE = "kube-system"
_KEY_BYTES, _NONCE_BYTES = 32, 12
_LIFETIME = Duration.of(hours=2)


def new_certificate_key() -> str:
    """A random AES-256 key, as 64 hexadecimal digits."""
    import secrets

    return secrets.token_hex(_KEY_BYTES)


def files(cluster: ClusterConfiguration) -> dict[str, str]:
    """The path of every shared file, by its name in the Secret."""
    names = ["ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.pub", "sa.key"]
    external = cluster.etcd.external
    if external is None:
        names += ["etcd/ca.crt", "etcd/ca.key"]
    found = {name.replace("/", "-"): posixpath.join(cluster.certificates_dir, name) for name in names}
    if external is not None:
        found["external-etcd-ca.crt"] = external.ca_file
        found["external-etcd.crt"] = external.cert_file
        found["external-etcd.key"] = external.key_file
    return found


def secret(ctx: NodeContext, certificate_key: str, *, owner_name: str, owner_uid: str) -> Manifest:
    """The Secret with every shared file that is there, encrypted.

    It is owned by the Secret of a short-lived token, so that both go together.
    """
    key = _decoded_key(certificate_key)
    data = {name: _encrypted_file(ctx, path, key) for name, path in files(ctx.config.cluster).items()}
    return _secret(data, owner_name, owner_uid)


def _secret(data: Mapping[str, str | None], owner_name: str, owner_uid: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": SECRET_NAME,
            "namespace": NAMESPACE,
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "name": owner_name,
                    "uid": owner_uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "data": data,
    }


def upload(ctx: NodeContext, cluster: Cluster, certificate_key: str) -> None:
    """Keep the certificates in a Secret that is deleted together with a token that can do nothing."""
    owner = _announced_owner(ctx)
    earlier = owners(cluster.get("v1", "Secret", SECRET_NAME, NAMESPACE) or {})
    uid = _create_owner(ctx, cluster, owner)
    name = tokens.secret_name(owner.token_id)
    cluster.apply_all([secret(ctx, certificate_key, owner_name=name, owner_uid=uid), *_access()])
    # The token of an upload that this one replaces has nothing left to look after.
    for token in earlier:
        cluster.delete("v1", "Secret", token, NAMESPACE)


def would_upload(ctx: NodeContext, cluster: Cluster, certificate_key: str) -> None:
    """What kubeadm asks for is part of what a dry run shows.

    Nothing is encrypted: kubeadm looks for the files in the real folder, where a dry run does not put them, and nobody could
    use them.
    """
    owner = _announced_owner(ctx)
    name = tokens.secret_name(owner.token_id)
    cluster.get("v1", "Secret", name, NAMESPACE)
    uid = _create_owner(ctx, cluster, owner)
    _decoded_key(certificate_key)
    cluster.apply_all([_secret(dict.fromkeys(files(ctx.config.cluster)), name, uid), *_access()])


def _announced_owner(ctx: NodeContext) -> BootstrapToken:
    ctx.progress.say(f'[upload-certs] Storing the certificates in Secret "{SECRET_NAME}" in the "{NAMESPACE}" Namespace')
    return BootstrapToken(token=tokens.generate(), description="Proxy for managing TTL for the kubeadm-certs secret", ttl=_LIFETIME)


def _create_owner(ctx: NodeContext, cluster: Cluster, owner: BootstrapToken) -> str:
    """The uid of the token's Secret."""
    cluster.apply(tokens.secret(owner, ctx.host.now()))
    created = cluster.get("v1", "Secret", tokens.secret_name(owner.token_id), NAMESPACE) or {}
    return str(created.get("metadata", {}).get("uid", ""))


def _access() -> list[Manifest]:
    return roles.reading("kubeadm:kubeadm-certs", NAMESPACE, "secrets", SECRET_NAME, roles.group(roles.JOINING_NODES))


def owners(secret: Manifest) -> list[str]:
    """The tokens with which the uploaded certificates go."""
    references = (secret.get("metadata") or {}).get("ownerReferences") or []
    return [owner["name"] for owner in references if owner.get("kind") == "Secret" and owner["name"].startswith("bootstrap-token-")]


def save(ctx: NodeContext, found: Manifest, certificate_key: str) -> None:
    """Decrypt the Secret that a joining control plane found, and write its files.

    Everything is decrypted before anything is written, so a wrong key leaves no trace.
    """
    key = _decoded_key(certificate_key)
    data = found.get("data") or {}
    wanted = files(ctx.config.cluster)
    contents: dict[str, bytes] = {}
    for name, path in wanted.items():
        if name not in data:
            raise OperatorError(f"the Secret does not include the required certificate or key - name: {name}, path: {path}")
        contents[name] = _decrypted(name, data[name], key)
    modes = {name: _mode(name, content) for name, content in contents.items() if content}
    ctx.progress.say(f'[download-certs] Saving the certificates to the folder: "{store.shown_folder(ctx)}"')
    for name, mode in modes.items():
        ctx.host.make_dir(posixpath.dirname(wanted[name]), 0o755)
        ctx.host.write(wanted[name], contents[name], mode)


def encrypt(content: bytes, key: bytes) -> bytes:
    """The nonce, then what AES-GCM makes of the content."""
    import os

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, content, None)


def decrypt(sealed: bytes, key: bytes) -> bytes:
    """The content of what :func:`encrypt` made; ValueError where the key is another or the text was changed."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(sealed) < _NONCE_BYTES:
        raise ValueError("size of data is less than the nonce")
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
    except InvalidTag as error:
        raise ValueError("message authentication failed: this is not the key that it was encrypted with") from error


def _decoded_key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError as error:
        raise OperatorError(f"error decoding certificate key: it must be hexadecimal: {error}") from error
    if len(key) not in (16, 24, 32):
        raise OperatorError(f"invalid certificate key: it has {len(key)} bytes, and an AES key has 32")
    return key


def _encrypted_file(ctx: NodeContext, path: str, key: bytes) -> str | None:
    """None where there is no such file, as with an external CA or an etcd without TLS."""
    if not path or not ctx.host.exists(path):
        return None
    return b64encode(encrypt(ctx.host.read(path), key)).decode()


def _decrypted(name: str, value: object, key: bytes) -> bytes:
    """The content of an entry; nothing for an entry without any."""
    if not value:
        return b""
    try:
        return decrypt(b64decode(str(value), validate=True), key)
    except (ValueError, Base64Error) as error:
        raise OperatorError(f"error decoding secret data with provided key: {name}: {error}") from error


def _mode(name: str, content: bytes) -> int:
    """Private keys are for root's eyes only; what is neither a key nor a certificate is not written."""
    if _parses(keys.parse_private, content):
        return 0o600
    from slipway.credentials import x509

    if _parses(keys.parse_public, content) or _parses(x509.parse, content):
        return 0o644
    raise OperatorError(f"unknown data found in Secret entry {name}: it is neither a key nor a certificate")


def _parses(parse: Callable[[bytes], object], content: bytes) -> bool:
    try:
        parse(content)
    except ValueError:
        return False
    return True
