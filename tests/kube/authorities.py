"""Certificate authorities and servers' certificates in the shapes that kubeadm, Cluster API and others have made over the years.

Some of them cryptography does not make, so the finished certificate is changed and signed again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Key = ec.EllipticCurvePrivateKey

_ADDRESS = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
_SERVER = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
_IS_CA = x509.BasicConstraints(ca=True, path_length=None)
# One byte, so that it can be replaced in the finished certificate.
_SERIAL = 1


class Case:
    """What a client trusts, and what a server shows to it."""

    def __init__(self, trusted: bytes, shown: bytes, key: Key) -> None:
        self.trusted, self.shown = trusted, shown
        self.key = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )


def cluster_api() -> Case:
    """NewSelfSignedCACert of Cluster API and of client-go before 1.26: the serial number is 0."""
    ca = _key()
    usages = _usages(signing=True)
    extensions = ((usages, True), (x509.BasicConstraints(ca=True, path_length=0), True), (_key_id(ca), False))
    authority = _renumbered(_certificate("kubernetes", ca, None, *extensions), ca)
    return _served(authority, ca, (_usages(signing=False), True), (_SERVER, False), (_names(ca), False), (_ADDRESS, False))


def without_key_identifiers() -> Case:
    """What kubeadm made while Go added no key identifiers to certificates (before Go 1.15)."""
    ca = _key()
    authority = _certificate("kubernetes", ca, None, (_usages(signing=True), True), (_IS_CA, True))
    return _served(authority, ca, (_usages(signing=False), True), (_SERVER, False), (_ADDRESS, False))


def without_key_usages() -> Case:
    """``openssl req -x509``, as guides for a CA of one's own have it."""
    ca = _key()
    authority = _certificate("kubernetes", ca, None, (_IS_CA, False), (_key_id(ca), False))
    return _served(authority, ca, (_ADDRESS, False))


def intermediate() -> Case:
    """An authority below another one, and only the lower one is trusted, as a ca.crt without its chain."""
    root, ca = _key(), _key()
    above = _certificate("company", root, None, (_IS_CA, True), (_key_id(root), False))
    authority = _certificate("kubernetes", ca, (above, root), (_IS_CA, True), (_key_id(ca), False), (_names(root), False))
    return _served(authority, ca, (_names(ca), False), (_ADDRESS, False))


def trusted_itself() -> Case:
    """A server that signs its own certificate, which is no authority, as kubelets do."""
    key = _key()
    certificate = _certificate("node@1", key, None, (x509.BasicConstraints(ca=False, path_length=None), True), (_ADDRESS, False))
    return Case(_pem(certificate), _pem(certificate), key)


def another_key_identifier() -> Case:
    """A CA whose certificate was renewed with the same key by a Go that makes key identifiers with SHA-256 (from 1.25)."""
    ca = _key()
    authority = _certificate("kubernetes", ca, None, (_IS_CA, True), (x509.SubjectKeyIdentifier(b"\1" * 20), False))
    return _served(authority, ca, (_names(ca), False), (_ADDRESS, False))


def renewed_with_the_same_name() -> Case:
    """A bundle of two authorities of one name, the server's one second, and no key identifiers to tell them apart."""
    old, new = _key(), _key()
    first = _certificate("kubernetes", old, None, (_IS_CA, True))
    second = _certificate("kubernetes", new, None, (_IS_CA, True))
    made = _served(second, new, (_ADDRESS, False))
    made.trusted = _pem(first) + made.trusted
    return made


def named_by_common_name() -> Case:
    ca = _key()
    authority = _certificate("kubernetes", ca, None, (_IS_CA, True), (_key_id(ca), False))
    return _served(authority, ca, (_names(ca), False), name="localhost")


def for_clients_only() -> Case:
    ca = _key()
    authority = _certificate("kubernetes", ca, None, (_IS_CA, True), (_key_id(ca), False))
    return _served(authority, ca, (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False), (_ADDRESS, False))


def not_an_authority() -> Case:
    ca = _key()
    authority = _certificate("kubernetes", ca, None, (x509.BasicConstraints(ca=False, path_length=None), True), (_key_id(ca), False))
    return _served(authority, ca, (_names(ca), False), (_ADDRESS, False))


def _served(authority: x509.Certificate, ca: Key, *extensions: tuple[x509.ExtensionType, bool], name: str = "kube-apiserver") -> Case:
    key = _key()
    return Case(_pem(authority), _pem(_certificate(name, key, (authority, ca), *extensions)), key)


def _certificate(
    name: str, key: Key, issuer: tuple[x509.Certificate, Key] | None, *extensions: tuple[x509.ExtensionType, bool]
) -> x509.Certificate:
    subject, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), datetime.now(UTC)
    builder = x509.CertificateBuilder(
        issuer[0].subject if issuer else subject, subject, key.public_key(), _SERIAL if issuer is None else x509.random_serial_number()
    )
    builder = builder.not_valid_before(now - timedelta(minutes=5)).not_valid_after(now + timedelta(days=1))
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256())


def _renumbered(certificate: x509.Certificate, key: Key) -> x509.Certificate:
    """The same with the serial number 0, which is a byte of the same length."""
    body = certificate.tbs_certificate_bytes.replace(b"\x02\x01\x01", b"\x02\x01\x00", 1)
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")  # ecdsa-with-SHA256
    signature = _der(3, b"\0" + key.sign(body, ec.ECDSA(hashes.SHA256())))
    return x509.load_der_x509_certificate(_der(0x30, body + algorithm + signature))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x81, size]) if size < 256 else b"\x82" + size.to_bytes(2)
    return bytes([tag]) + length + content


def _usages(*, signing: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=True, data_encipherment=False, key_agreement=False,
        key_cert_sign=signing, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _key_id(key: Key) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _names(ca: Key) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key())


def _key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
