"""Certificates and kubeconfigs that are not quite right, made from right ones.

Recorder and tests bring a machine into the same state, and compare what is then reused, made anew or refused.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

USERS = (
    "--client-name jane",
    "--client-name jane --org dev,ops,dev:leads",
    "--client-name jane@example.com --org R&D --validity-period 24h",
    "--client-name robot --token abc.def",
)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def changes(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """The files that came, went or changed."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.with_suffix(".crt").read_bytes())


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.with_suffix(".key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _resign(
    path: Path,
    authority: Path,
    *,
    starts: timedelta = timedelta(hours=-1),
    ends: timedelta = timedelta(hours=1),
    names: x509.SubjectAlternativeName | None = None,
    chain: bytes = b"",
) -> None:
    """Sign the certificate at ``path`` anew, with another period or other names."""
    old, ca, now = _certificate(path), _certificate(authority), datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(old.subject).issuer_name(ca.subject).public_key(old.public_key())
    builder = builder.serial_number(7).not_valid_before(now + starts).not_valid_after(now + ends)
    for extension in old.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName) and names is not None:
            builder = builder.add_extension(names, critical=False)
        elif not isinstance(extension.value, x509.AuthorityKeyIdentifier):
            builder = builder.add_extension(extension.value, critical=extension.critical)
    signed = builder.sign(_key(authority), hashes.SHA256())
    path.with_suffix(".crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM) + chain)


def _write_authority(path: Path, *, name: str = "kubernetes", authority: bool = True, parent: Path | None = None) -> None:
    """Another CA under the same name, or one below ``parent``, or something that is no CA at all."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signer = (subject, key) if parent is None else (_certificate(parent).subject, _key(parent))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(8)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    path.with_suffix(".crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    path.with_suffix(".key").write_bytes(_pkcs8(key))


def _pkcs8(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _remove(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


def _replace(name: str, content: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return change


def _rewrite(name: str, pattern: str, replacement: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        text, count = re.subn(pattern, replacement, path.read_text())
        assert count, f"{pattern} is not in {name}"
        path.write_text(text)

    return change


def _expired_leaf(folder: Path) -> None:
    _resign(folder / "pki/apiserver", folder / "pki/ca", starts=timedelta(days=-9), ends=timedelta(days=-1))


def _future_leaf(folder: Path) -> None:
    _resign(folder / "pki/apiserver", folder / "pki/ca", starts=timedelta(days=1), ends=timedelta(days=9))


def _expired_authority(folder: Path) -> None:
    _resign(folder / "pki/ca", folder / "pki/ca", starts=timedelta(days=-9), ends=timedelta(days=-1))


def _expired_authority_and_no_leaf(folder: Path) -> None:
    _expired_authority(folder)
    _remove("pki/apiserver.crt", "pki/apiserver.key")(folder)


def _foreign_leaf(folder: Path) -> None:
    _write_authority(folder / "pki/other")
    _resign(folder / "pki/apiserver", folder / "pki/other")
    _remove("pki/other.crt", "pki/other.key")(folder)


def _leaf_of_intermediate(folder: Path) -> None:
    _write_authority(folder / "pki/middle", name="middle", parent=folder / "pki/ca")
    _resign(folder / "pki/apiserver", folder / "pki/middle", chain=(folder / "pki/middle.crt").read_bytes())
    _remove("pki/middle.crt", "pki/middle.key")(folder)


def _leaf_of_intermediate_without_chain(folder: Path) -> None:
    _write_authority(folder / "pki/middle", name="middle", parent=folder / "pki/ca")
    _resign(folder / "pki/apiserver", folder / "pki/middle")
    _remove("pki/middle.crt", "pki/middle.key")(folder)


def _leaf_of_leaf(folder: Path) -> None:
    _write_authority(folder / "pki/middle", name="middle", authority=False, parent=folder / "pki/ca")
    _resign(folder / "pki/apiserver", folder / "pki/middle", chain=(folder / "pki/middle.crt").read_bytes())
    _remove("pki/middle.crt", "pki/middle.key")(folder)


def _fewer_names(folder: Path) -> None:
    _resign(folder / "pki/apiserver", folder / "pki/ca", names=x509.SubjectAlternativeName([x509.DNSName("kubernetes")]))


def _not_an_authority(folder: Path) -> None:
    _write_authority(folder / "pki/ca", authority=False)
    _remove("pki/apiserver.crt", "pki/apiserver.key")(folder)


def _other_key(name: str) -> Callable[[Path], None]:
    return _replace(name, _pkcs8(ec.generate_private_key(ec.SECP256R1())))


def _other_authority_key(folder: Path) -> None:
    _other_key("pki/ca.key")(folder)
    _remove("pki/apiserver.crt", "pki/apiserver.key")(folder)


def _other_authority_key_and_no_kubeconfig(folder: Path) -> None:
    _other_key("pki/ca.key")(folder)
    _remove("admin.conf")(folder)


def _kubeconfig_of_other_cluster(folder: Path) -> None:
    _write_authority(folder / "other")
    data = base64.b64encode((folder / "other.crt").read_bytes()).decode()
    _rewrite("admin.conf", r"certificate-authority-data: \S+", f"certificate-authority-data: {data}")(folder)
    _remove("other.crt", "other.key")(folder)


def _kubeconfig_with_ca_file(folder: Path) -> None:
    _rewrite("admin.conf", r"certificate-authority-data: \S+", "certificate-authority: /etc/kubernetes/pki/ca.crt")(folder)


def _kubeconfig_with_spaces(folder: Path) -> None:
    data = base64.b64encode(b"\n \n" + (folder / "pki/ca.crt").read_bytes() + b"\n\n").decode()
    _rewrite("admin.conf", r"certificate-authority-data: \S+", f"certificate-authority-data: {data}")(folder)


STATES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "leaf expired": ("certs apiserver", _expired_leaf),
    "leaf not yet valid": ("certs apiserver", _future_leaf),
    "leaf signed by another CA": ("certs apiserver", _foreign_leaf),
    "leaf signed through an intermediate CA": ("certs apiserver", _leaf_of_intermediate),
    "leaf without its intermediate CA": ("certs apiserver", _leaf_of_intermediate_without_chain),
    "leaf signed by a leaf": ("certs apiserver", _leaf_of_leaf),
    "leaf with fewer names": ("certs apiserver", _fewer_names),
    "leaf with another key": ("certs apiserver", _other_key("pki/apiserver.key")),
    "leaf without key": ("certs apiserver", _remove("pki/apiserver.key")),
    "leaf's key without certificate": ("certs apiserver", _remove("pki/apiserver.crt")),
    "leaf is not PEM": ("certs apiserver", _replace("pki/apiserver.crt", b"nonsense\n")),
    "leaf missing": ("certs apiserver", _remove("pki/apiserver.crt", "pki/apiserver.key")),
    "leaf missing and CA gone": ("certs apiserver", _remove("pki/apiserver.crt", "pki/apiserver.key", "pki/ca.crt", "pki/ca.key")),
    "leaf there and CA gone": ("certs apiserver", _remove("pki/ca.crt", "pki/ca.key")),
    "leaf missing and CA is not a CA": ("certs apiserver", _not_an_authority),
    "leaf missing and CA has another key": ("certs apiserver", _other_authority_key),
    "leaf missing and CA expired": ("certs apiserver", _expired_authority_and_no_leaf),
    "CA expired": ("certs ca", _expired_authority),
    "CA without key": ("certs ca", _remove("pki/ca.key")),
    "CA's key without certificate": ("certs ca", _remove("pki/ca.crt")),
    "CA is not PEM": ("certs ca", _replace("pki/ca.crt", b"nonsense\n")),
    "CA is not a CA": ("certs ca", _not_an_authority),
    "CA with another key": ("certs ca", _other_key("pki/ca.key")),
    "CA missing": ("certs ca", _remove("pki/ca.crt", "pki/ca.key")),
    "external CA, all there": ("certs all", _remove("pki/ca.key")),
    "external CA, service account key missing": ("certs sa", _remove("pki/ca.key", "pki/sa.key", "pki/sa.pub")),
    "external CA, leaf missing": ("certs all", _remove("pki/ca.key", "pki/apiserver.crt", "pki/apiserver.key")),
    "external CA, leaf's key missing": ("certs all", _remove("pki/ca.key", "pki/apiserver.key")),
    "external CA, kubeconfig missing": ("certs all", _remove("pki/ca.key", "scheduler.conf")),
    "external CA, kubeconfigs": ("kubeconfig all", _remove("pki/ca.key")),
    "external front-proxy CA": ("certs all", _remove("pki/front-proxy-ca.key")),
    "external front-proxy CA, leaf missing": (
        "certs all",
        _remove("pki/front-proxy-ca.key", "pki/front-proxy-client.crt", "pki/front-proxy-client.key"),
    ),
    "external etcd CA, leaf missing": ("certs all", _remove("pki/etcd/ca.key", "pki/etcd/peer.crt", "pki/etcd/peer.key")),
    "service account key missing": ("certs sa", _remove("pki/sa.key")),
    "service account public key missing": ("certs sa", _remove("pki/sa.pub")),
    "service account key is not PEM": ("certs sa", _replace("pki/sa.key", b"nonsense\n")),
    "kubeconfig of another cluster": ("kubeconfig admin", _kubeconfig_of_other_cluster),
    "kubeconfig with another server": ("kubeconfig admin", _rewrite("admin.conf", r"server: \S+", "server: https://10.7.7.7:6443")),
    "kubeconfig with the CA in a file": ("kubeconfig admin", _kubeconfig_with_ca_file),
    "kubeconfig with spaces around the CA": ("kubeconfig admin", _kubeconfig_with_spaces),
    "kubeconfig without a CA": ("kubeconfig admin", _rewrite("admin.conf", r" +certificate-authority-data: \S+\n", "")),
    "kubeconfig without its context": ("kubeconfig admin", _rewrite("admin.conf", r"current-context: \S+", "current-context: other")),
    "kubeconfig without its cluster": ("kubeconfig admin", _rewrite("admin.conf", r"    cluster: \S+", "    cluster: other")),
    "kubeconfig is not YAML": ("kubeconfig admin", _replace("admin.conf", b"{nonsense\n")),
    "kubeconfig is empty": ("kubeconfig admin", _replace("admin.conf", b"")),
    "kubeconfig missing": ("kubeconfig admin", _remove("admin.conf")),
    "kubeconfig missing and CA gone": ("kubeconfig admin", _remove("admin.conf", "pki/ca.crt", "pki/ca.key")),
    "kubeconfig missing and CA has another key": ("kubeconfig admin", _other_authority_key_and_no_kubeconfig),
}
"""What is wrong, by name: the phase of ``init`` that meets it, and how a right machine is brought there."""
