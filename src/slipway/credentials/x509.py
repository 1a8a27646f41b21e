"""X.509 as kubeadm and Go's crypto/x509 make and judge it: signing, certificate requests, chains, names, periods.

Everything here is a function of its arguments and the random serial number.  Importing this module imports
cryptography, so other modules do it in the functions that need it.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from slipway.api.machinery.errors import OperatorError
from slipway.credentials.profile import BACKDATE, Profile

if TYPE_CHECKING:
    from slipway.api.machinery.duration import Duration
    from slipway.credentials.keys import PrivateKey, PublicKey

# kubeadm puts node names of up to 253 characters into common names, and cryptography grumbles about more than 64.
warnings.filterwarnings("ignore", message="Attribute's length must be", category=UserWarning)
# The CAs that Cluster API makes have the serial number zero.
warnings.filterwarnings("ignore", message="Parsed a serial number which wasn't positive", category=CryptographyDeprecationWarning)

Extension = TypeVar("Extension", bound=x509.ExtensionType)

_PRINTABLE = re.compile(r"[A-Za-z0-9'()+,\-./ :=?]*")


class Authority(NamedTuple):
    """A certificate and the key with which it signs."""

    certificate: x509.Certificate
    key: PrivateKey


class Period(NamedTuple):
    """When a certificate is valid."""

    not_before: datetime
    not_after: datetime


def period(start: datetime, validity: Duration) -> Period:
    """From a little before ``start`` until ``validity`` after it, in whole seconds."""
    start = start.replace(microsecond=0)
    return Period(start - timedelta(seconds=BACKDATE.seconds), start + timedelta(seconds=int(validity.seconds)))


def self_signed(profile: Profile, key: PrivateKey, valid: Period, *, sha256_key_id: bool) -> x509.Certificate:
    """A certificate authority.  Its own name is its one alternative name."""
    subject = _name(profile)
    builder = _builder(subject, subject, key.public_key(), valid)
    builder = builder.add_extension(_key_usage(authority=True), critical=True)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier(_key_id(key.public_key(), sha256=sha256_key_id)), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(profile.common_name)]), critical=False)
    return builder.sign(key, _digest(key))


def signed(profile: Profile, public_key: PublicKey, authority: Authority, valid: Period) -> x509.Certificate:
    """A certificate for ``public_key``, signed by ``authority``."""
    if not profile.usages:
        raise OperatorError("a certificate needs a purpose: must specify at least one ExtKeyUsage")
    issuer, subject = authority.certificate.subject, _name(profile)
    builder = _builder(subject, issuer, public_key, valid)
    builder = builder.add_extension(_key_usage(authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ObjectIdentifier(usage) for usage in profile.usages]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    key_id = _extension(authority.certificate, x509.SubjectKeyIdentifier)
    if key_id is not None and subject != issuer:
        builder = builder.add_extension(x509.AuthorityKeyIdentifier(key_id.digest, None, None), critical=False)
    if profile.dns_names or profile.addresses:
        builder = builder.add_extension(_alternative_names(profile), critical=False)
    certificate = builder.sign(authority.key, _digest(authority.key))
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except InvalidSignature as error:
        raise OperatorError(f"the private key of {issuer.rfc4514_string()} is damaged: what it signs cannot be verified") from error
    return certificate


def request(profile: Profile, key: PrivateKey) -> x509.CertificateSigningRequest:
    """A request for a certificate; what it is to be used for is left to who signs it."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(profile))
    if profile.dns_names or profile.addresses:
        builder = builder.add_extension(_alternative_names(profile), critical=False)
    return builder.sign(key, _digest(key))


def pem(item: x509.Certificate | x509.CertificateSigningRequest) -> bytes:
    return item.public_bytes(Encoding.PEM)


def public_key_pins(data: bytes) -> list[str]:
    """``sha256:…`` of the public key of every certificate, as ``--discovery-token-ca-cert-hash`` takes it."""
    keys = (certificate.public_key() for certificate in parse(data))
    infos = (key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in keys)
    return [f"sha256:{hashlib.sha256(info).hexdigest()}" for info in infos]


def parse(data: bytes) -> list[x509.Certificate]:
    """All certificates of a PEM file, the holder's own first; ValueError where there is none or one is damaged."""
    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise ValueError("data does not contain any valid RSA or ECDSA certificates")
    return x509.load_pem_x509_certificates(data)


def is_authority(certificate: x509.Certificate) -> bool:
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def belongs_to(certificate: x509.Certificate, key: PrivateKey) -> bool:
    """Whether ``key`` is the private half of the certificate's key."""
    return certificate.public_key() == key.public_key()


def period_problem(certificate: x509.Certificate, now: datetime) -> str:
    """What is wrong with the time at which the certificate is used; empty if nothing is."""
    bounds = f"NotBefore: {_shown(certificate.not_valid_before_utc)}, NotAfter: {_shown(certificate.not_valid_after_utc)}"
    if now < certificate.not_valid_before_utc:
        return f"the certificate is not valid yet: {bounds}"
    if now > certificate.not_valid_after_utc:
        return f"the certificate has expired: {bounds}"
    return ""


def chain_problem(certificate: x509.Certificate, intermediates: list[x509.Certificate], root: x509.Certificate, now: datetime) -> str:
    """Why ``root`` does not vouch for ``certificate``, directly or through ``intermediates``; empty if it does."""
    expired = period_problem(certificate, now)
    if expired:
        return expired
    if certificate == root:
        return ""
    reason = f"it was issued by {certificate.issuer.rfc4514_string()}, and {root.subject.rfc4514_string()} did not sign it"
    for issuer in (root, *intermediates):
        if certificate.issuer != issuer.subject or issuer == certificate:
            continue
        reason = _signature_problem(certificate, issuer)
        if not reason:
            above = chain_problem(issuer, [other for other in intermediates if other != issuer], root, now)
            if not above:
                return ""
            reason = f"{issuer.subject.rfc4514_string()} does not vouch for it: {above}"
    return reason


def missing_names(certificate: x509.Certificate, profile: Profile) -> list[str]:
    """The names and addresses of ``profile`` that the certificate does not cover."""
    dns_names, addresses = _alternative_names_of(certificate)
    missing = [name for name in profile.dns_names if not any(_covers(pattern, name) for pattern in dns_names)]
    return missing + [address for address in profile.addresses if address not in addresses]


def profile_of(certificate: x509.Certificate) -> Profile:
    """What an existing certificate says, so that its successor can say the same."""
    dns_names, addresses = _alternative_names_of(certificate)
    usages = _extension(certificate, x509.ExtendedKeyUsage)
    common_names = _values(certificate.subject, NameOID.COMMON_NAME)
    return Profile(
        common_name=common_names[-1] if common_names else "",
        organizations=tuple(_values(certificate.subject, NameOID.ORGANIZATION_NAME)),
        usages=tuple(usage.dotted_string for usage in usages) if usages is not None else (),
        dns_names=tuple(sorted(set(dns_names))),
        addresses=tuple(dict.fromkeys(addresses)),
    )


def _builder(subject: x509.Name, issuer: x509.Name, public_key: PublicKey, valid: Period) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(1 + int.from_bytes(os.urandom(16)) % ((1 << 63) - 2))
        .not_valid_before(valid.not_before)
        .not_valid_after(valid.not_after)
    )


def _name(profile: Profile) -> x509.Name:
    """Organizations in one set, then the common name, as Go writes a subject."""
    if not profile.common_name:
        raise OperatorError("a certificate needs a name: must specify a CommonName")
    organizations = [_attribute(NameOID.ORGANIZATION_NAME, value) for value in dict.fromkeys(profile.organizations)]
    names = [x509.RelativeDistinguishedName(organizations)] if organizations else []
    return x509.Name([*names, x509.RelativeDistinguishedName([_attribute(NameOID.COMMON_NAME, profile.common_name)])])


def _attribute(oid: ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
    """Go writes PrintableString where the text allows it, and names are compared byte by byte."""
    kind = _ASN1Type.PrintableString if _PRINTABLE.fullmatch(value) else _ASN1Type.UTF8String
    return x509.NameAttribute(oid, value, kind, _validate=False)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=True,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative_names(profile: Profile) -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in profile.dns_names]
    return x509.SubjectAlternativeName([*names, *(x509.IPAddress(ip_address(address)) for address in profile.addresses)])


def _alternative_names_of(certificate: x509.Certificate) -> tuple[list[str], list[str]]:
    """The DNS names and the addresses of a certificate."""
    names = _extension(certificate, x509.SubjectAlternativeName)
    if names is None:
        return [], []
    return names.get_values_for_type(x509.DNSName), [str(address) for address in names.get_values_for_type(x509.IPAddress)]


def _key_id(key: PublicKey, *, sha256: bool) -> bytes:
    """Go hashes the bit string of the public key: with SHA-1, since Go 1.25 with SHA-256 cut to the same length."""
    if isinstance(key, RSAPublicKey):
        bits = key.public_bytes(Encoding.DER, PublicFormat.PKCS1)
    else:
        bits = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    # cryptography's digests: importing hashlib would load a second OpenSSL.
    digest = hashes.Hash(hashes.SHA256() if sha256 else hashes.SHA1())
    digest.update(bits)
    return digest.finalize()[:20]


def _digest(key: PrivateKey) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512:
    """The digest that Go picks for a signing key."""
    if not isinstance(key, EllipticCurvePrivateKey) or key.curve.key_size <= 256:
        return hashes.SHA256()
    return hashes.SHA384() if key.curve.key_size <= 384 else hashes.SHA512()


def _signature_problem(certificate: x509.Certificate, issuer: x509.Certificate) -> str:
    usage = _extension(issuer, x509.KeyUsage)
    if not is_authority(issuer) or (usage is not None and not usage.key_cert_sign):
        return f"{issuer.subject.rfc4514_string()} is not a certificate authority"
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return f"its signature is not that of {issuer.subject.rfc4514_string()}"
    return ""


def _covers(pattern: str, name: str) -> bool:
    """Whether a name of a certificate matches; ``*`` stands for the whole first label."""
    wanted, offered = name.lower().removesuffix(".").split("."), pattern.lower().split(".")
    return len(wanted) == len(offered) and offered[1:] == wanted[1:] and offered[0] in ("*", wanted[0])


def _extension(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _values(name: x509.Name, oid: ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in name.get_attributes_for_oid(oid)]


def _shown(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} +0000 UTC"
