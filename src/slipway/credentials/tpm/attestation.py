"""What a server makes of a host's TPM: whether its attestation key is one, and a challenge that only that TPM can answer.

The checks are go-attestation's, and stricter where nothing that a TPM makes is lost by it.  They prove nothing of the host by
themselves, since whoever heard a registration can send its keys again: only the answer to a fresh challenge does.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.credentials.tpm import structures, tpm_hash
from slipway.credentials.tpm.credential import seal
from slipway.credentials.tpm.structures import Attribute, Public, StructureError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm
    from cryptography.x509 import Certificate

SECRET_BYTES = 32
_MAX_PEM, _MAX_BLOB = 16 << 10, 4 << 10
_MIN_BITS, _MAX_BITS = 2048, 4096
_NEEDED = Attribute.FIXED_TPM | Attribute.FIXED_PARENT | Attribute.SENSITIVE_DATA_ORIGIN | Attribute.RESTRICTED | Attribute.SIGN
_WORDS = {
    Attribute.FIXED_TPM: "could leave its TPM (fixedTPM)",
    Attribute.FIXED_PARENT: "could be moved to another parent (fixedParent)",
    Attribute.SENSITIVE_DATA_ORIGIN: "was not made by its TPM (sensitiveDataOrigin)",
    Attribute.RESTRICTED: "could sign anything (restricted)",
    Attribute.SIGN: "cannot sign (sign)",
}


class AttestationError(ValueError):
    """Keys that are not those of a TPM, or not of one that is trusted; the sentence is for the operator."""


class EndorsementKey(NamedTuple):
    """The key that names a host, and its certificate where the TPM has one."""

    public_key: RSAPublicKey
    certificate: Certificate | None

    @property
    def hash(self) -> str:
        return tpm_hash(self.public_key)


class AttestationKey(NamedTuple):
    """The blobs of go-attestation's AttestationParameters."""

    public: bytes
    create_data: bytes
    create_attestation: bytes
    create_signature: bytes


def verify(endorsement_pem: bytes, attestation_key: dict[str, Any]) -> EndorsementKey:
    """The endorsement key, if the attestation key is one that a TPM made and keeps; the host may be challenged then."""
    key = read_endorsement(endorsement_pem)
    blobs = _blobs(attestation_key)
    try:
        _check(blobs)
    except StructureError as error:
        raise AttestationError(f"the attestation key cannot be read: {error}") from error
    return key


def challenge(endorsement: EndorsementKey, attestation_key: dict[str, Any], secret: bytes) -> tuple[bytes, bytes]:
    """The credential and the encrypted seed for a TPM that has both keys; ``secret`` is what it must answer with."""
    return seal(endorsement.public_key, structures.name_of(_blobs(attestation_key).public), secret)


def new_secret() -> bytes:
    """What one challenge is about; a second one needs a secret of its own."""
    return secrets.token_bytes(SECRET_BYTES)


def is_answer(secret: bytes, answer: bytes) -> bool:
    return hmac.compare_digest(secret, answer)


def read_endorsement(pem: bytes) -> EndorsementKey:
    """The endorsement key in a CERTIFICATE or PUBLIC KEY block."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    if len(pem) > _MAX_PEM:
        raise AttestationError(f"the endorsement key has {len(pem)} bytes, more than the {_MAX_PEM} that are taken")
    certificate = None
    try:
        if b"-----BEGIN CERTIFICATE-----" in pem:
            certificate = load_pem_x509_certificate(pem)
        key = certificate.public_key() if certificate else load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise AttestationError(f"the endorsement key is neither a certificate nor a public key: {str(error)[:200]}") from error
    if not isinstance(key, RSAPublicKey):
        raise AttestationError("the endorsement key is no RSA key: only TPMs with an RSA endorsement key are taken")
    if not _MIN_BITS <= key.key_size <= _MAX_BITS:
        raise AttestationError(f"the endorsement key has {key.key_size} bits: it must have {_MIN_BITS} to {_MAX_BITS}")
    return EndorsementKey(key, certificate)


def check_chain(endorsement: EndorsementKey, authorities_pem: bytes, now: datetime) -> None:
    """Whether one of the authorities issued the endorsement key's certificate.

    Each authority is trusted by itself, a maker's intermediate ones too.  Certificates of EKs are none of the web's: they
    have no host name, and a critical alternative name that no other program knows.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.x509 import load_pem_x509_certificates

    certificate = endorsement.certificate
    if certificate is None:
        raise AttestationError("the TPM has no certificate of its endorsement key, and registrations here must have one of a trusted maker")
    try:
        authorities = load_pem_x509_certificates(authorities_pem)
    except ValueError as error:
        raise AttestationError("the certificates of trusted makers of TPMs cannot be read: they must be PEM") from error
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise AttestationError(
            f"the certificate of the endorsement key is good from {certificate.not_valid_before_utc:%Y-%m-%d} "
            f"to {certificate.not_valid_after_utc:%Y-%m-%d}, not now"
        )
    for authority in authorities:
        if not (authority.not_valid_before_utc <= now <= authority.not_valid_after_utc and _is_authority(authority)):
            continue
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return
    issuer = certificate.issuer.rfc4514_string()[:200]
    raise AttestationError(f'the certificate of the endorsement key was issued by "{issuer}", which is no trusted maker of TPMs')


def _is_authority(certificate: Certificate) -> bool:
    from cryptography.x509 import BasicConstraints, ExtensionNotFound

    try:
        return certificate.extensions.get_extension_for_class(BasicConstraints).value.ca
    except (ExtensionNotFound, ValueError):
        return False


def _blobs(attestation_key: dict[str, Any]) -> AttestationKey:
    if attestation_key.get("UseTCSDActivationFormat"):
        raise AttestationError("the host has a TPM 1.2: only TPM 2.0 is taken")
    blobs = []
    for name in ("Public", "CreateData", "CreateAttestation", "CreateSignature"):
        value = attestation_key.get(name)
        if not isinstance(value, str) or not value:
            raise AttestationError(f"the attestation key has no {name}")
        if len(value) > _MAX_BLOB:
            raise AttestationError(
                f"the {name} of the attestation key has {len(value)} characters, more than the {_MAX_BLOB} that are taken"
            )
        try:
            blobs.append(b64decode(value, validate=True))
        except ValueError as error:
            raise AttestationError(f"the {name} of the attestation key is no base64") from error
    return AttestationKey(*blobs)


def _check(key: AttestationKey) -> None:
    public = structures.read_public(key.public)
    if public.scheme is None or public.attributes & _NEEDED != _NEEDED or Attribute.DECRYPT in public.attributes:
        faults = [words for attribute, words in _WORDS.items() if attribute not in public.attributes]
        raise AttestationError(f"the attestation key is not limited to attestation: it {', '.join(faults) or 'is not for signing alone'}")
    structures.check_creation_data(key.create_data)
    attest = structures.read_creation_attest(key.create_attestation)
    if attest.magic != structures.GENERATED:
        raise AttestationError("the attestation was not made by a TPM")
    if attest.creation_hash != structures.digest(public.name_hash, key.create_data):
        raise AttestationError("the attestation is about other creation data")
    if attest.name != structures.name_of(key.public):
        raise AttestationError("the attestation is about another key")
    _check_signature(public, key)


def _check_signature(public: Public, key: AttestationKey) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    signature = structures.read_signature(key.create_signature)
    if signature.hash != public.scheme:
        raise AttestationError("the attestation is signed with another hash than its key is for")
    modulus = int.from_bytes(public.modulus, "big")
    if modulus.bit_length() != public.bits or not _MIN_BITS <= public.bits <= _MAX_BITS:
        raise AttestationError(f"the attestation key has {modulus.bit_length()} bits: it must have {_MIN_BITS} to {_MAX_BITS}")
    try:
        RSAPublicNumbers(public.exponent, modulus).public_key().verify(
            signature.value, key.create_attestation, PKCS1v15(), _hash(signature.hash)
        )
    except (InvalidSignature, ValueError) as error:
        raise AttestationError("the attestation is not signed by the attestation key") from error


def _hash(algorithm: int) -> HashAlgorithm:
    from cryptography.hazmat.primitives import hashes

    known: dict[int, Callable[[], HashAlgorithm]] = {
        structures.SHA256: hashes.SHA256,
        structures.SHA384: hashes.SHA384,
        structures.SHA512: hashes.SHA512,
    }
    if algorithm not in known:
        raise AttestationError(f"the attestation is signed with the hash 0x{algorithm:04x}: it must be SHA-256, SHA-384 or SHA-512")
    return known[algorithm]()
