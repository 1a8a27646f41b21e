"""Credentials for a TPM: a secret that only the TPM with a certain EK gives back, and only while it holds a key of a certain name.

This is "credential protection" of the TPM 2.0 Library, part 1, section 24: a seed goes to the EK by RSA-OAEP, keys come from
the seed and the name by KDFa, the secret is encrypted by AES-128-CFB and guarded by an HMAC.
"""

from __future__ import annotations

import hmac
import os
import struct
from hashlib import sha256
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.credentials.tpm.structures import Reader, StructureError, sized

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric.padding import OAEP
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

_SEED, _KEY_BITS, _MAC_BITS = 32, 128, 256


class CredentialError(OperatorError):
    """A credential that is not for this TPM, or was changed on its way."""


def seal(endorsement: RSAPublicKey, name: bytes, secret: bytes) -> tuple[bytes, bytes]:
    """The credential and the encrypted seed, each a TPM2B, as TPM2_MakeCredential gives them."""
    seed = os.urandom(_SEED)
    identity = _encrypted(seed, name, sized(secret))
    return sized(sized(_mac(seed, name, identity)) + identity), sized(endorsement.encrypt(seed, _oaep()))


def unseal(endorsement: RSAPrivateKey, name: bytes, credential: bytes, encrypted_seed: bytes) -> bytes:
    """The secret, as TPM2_ActivateCredential gives it for the key of that name."""
    try:
        seed = endorsement.decrypt(_whole(encrypted_seed, "the encrypted seed"), _oaep())
    except ValueError as error:
        raise CredentialError("the challenge is not for the endorsement key of this host") from error
    reader = Reader(_whole(credential, "the credential"), "the credential")
    try:
        mac = reader.sized()
        identity = reader.rest()
    except StructureError as error:
        raise CredentialError(str(error)) from error
    if not hmac.compare_digest(mac, _mac(seed, name, identity)):
        raise CredentialError("the challenge is not for the attestation key of this host, or was changed")
    return _whole(_decrypted(seed, name, identity), "the secret of the challenge")


def kdfa(key: bytes, label: str, context: bytes, bits: int) -> bytes:
    """Up to 256 bits from a key: NIST SP 800-108 in counter mode with HMAC-SHA-256, and the label closed by a zero."""
    message = struct.pack(">I", 1) + label.encode() + b"\0" + context + struct.pack(">I", bits)
    return hmac.digest(key, message, "sha256")[: bits // 8]


def _whole(data: bytes, what: str) -> bytes:
    """What is in a TPM2B that has nothing after it."""
    reader = Reader(data, what)
    try:
        inner = reader.sized()
        reader.end()
    except StructureError as error:
        raise CredentialError(str(error)) from error
    return inner


def _mac(seed: bytes, name: bytes, identity: bytes) -> bytes:
    return hmac.new(kdfa(seed, "INTEGRITY", b"", _MAC_BITS), identity + name, sha256).digest()


def _encrypted(seed: bytes, name: bytes, text: bytes) -> bytes:
    """AES-128-CFB of a few blocks; the key is for this one message, so the vector is zero.  (cryptography gives CFB up.)"""
    block, last, out = _block(seed, name), bytes(16), b""
    for start in range(0, len(text), 16):
        last = _xor(block(last), text[start : start + 16])
        out += last
    return out


def _decrypted(seed: bytes, name: bytes, ciphered: bytes) -> bytes:
    block, last, out = _block(seed, name), bytes(16), b""
    for start in range(0, len(ciphered), 16):
        following = ciphered[start : start + 16]
        out += _xor(block(last), following)
        last = following
    return out


def _block(seed: bytes, name: bytes) -> Callable[[bytes], bytes]:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    return Cipher(AES(kdfa(seed, "STORAGE", name, _KEY_BITS)), ECB()).encryptor().update


def _xor(stream: bytes, text: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(stream, text, strict=False))


def _oaep() -> OAEP:
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
    from cryptography.hazmat.primitives.hashes import SHA256

    return OAEP(MGF1(SHA256()), SHA256(), b"IDENTITY\0")
