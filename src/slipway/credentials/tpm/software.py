"""A TPM in software, for hosts that have none: its keys follow from a secret of 256 bits that the host keeps.

It says of its keys what a TPM would say, and activates credentials as a TPM does; how safe that is depends on who can read
the secret.  The identity is as unique as the secret, unlike Elemental's emulated TPM, whose seed is a number of 64 bits.
"""

from __future__ import annotations

import os
import struct
from base64 import b64encode
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from slipway.credentials.tpm import structures
from slipway.credentials.tpm.credential import unseal

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

SECRET_BYTES = 32
_ENDORSEMENT_KEY, _ATTESTATION_KEY = "EK", "AK"
_ENDORSEMENT_NAME = struct.pack(">I", structures.ENDORSEMENT)


def generate() -> bytes:
    """The secret of a new identity, to be kept where only root reads it."""
    return os.urandom(SECRET_BYTES)


class SoftwareTPM:
    """The identity that follows from a secret."""

    def __init__(self, key_material: bytes) -> None:
        if len(key_material) != SECRET_BYTES:
            raise ValueError(f"the secret of a software TPM has {len(key_material)} bytes: it must have {SECRET_BYTES}")
        self._key: Callable[[str], RSAPrivateKey] = partial(_derived, key_material)

    @classmethod
    def of_keys(cls, endorsement: RSAPrivateKey, attestation: RSAPrivateKey) -> SoftwareTPM:
        """The TPM of two keys that exist already, which is how simulated hosts by the thousand have one."""
        tpm = cls.__new__(cls)
        tpm._key = {_ENDORSEMENT_KEY: endorsement, _ATTESTATION_KEY: attestation}.__getitem__
        return tpm

    @property
    def endorsement_pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self._endorsement.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def attestation_key(self) -> dict[str, Any]:
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        public = self._public
        created = structures.encode_creation_data(_ENDORSEMENT_NAME, _ENDORSEMENT_NAME)
        attest = structures.CreationAttest(
            structures.GENERATED, self._qualified_name, structures.name_of(public), structures.digest(structures.SHA256, created)
        ).encode()
        signature = structures.Signature(structures.SHA256, self._attestation.sign(attest, PKCS1v15(), SHA256())).encode()
        return {
            "Public": b64encode(public).decode(),
            "UseTCSDActivationFormat": False,
            "CreateData": b64encode(created).decode(),
            "CreateAttestation": b64encode(attest).decode(),
            "CreateSignature": b64encode(signature).decode(),
        }

    def activate(self, credential: bytes, secret: bytes) -> bytes:
        return unseal(self._endorsement, structures.name_of(self._public), credential, secret)

    def close(self) -> None:
        """There is nothing to leave."""

    @cached_property
    def _endorsement(self) -> RSAPrivateKey:
        return self._key(_ENDORSEMENT_KEY)

    @cached_property
    def _attestation(self) -> RSAPrivateKey:
        return self._key(_ATTESTATION_KEY)

    @cached_property
    def _public(self) -> bytes:
        """The public area of the attestation key."""
        modulus = self._attestation.public_key().public_numbers().n
        return structures.attestation_public(modulus.to_bytes(structures.KEY_BITS // 8, "big")).encode()

    @property
    def _qualified_name(self) -> bytes:
        """The name of the attestation key below the endorsement hierarchy."""
        return struct.pack(">H", structures.SHA256) + structures.digest(
            structures.SHA256, _ENDORSEMENT_NAME + structures.name_of(self._public)
        )


def _derived(secret: bytes, label: str) -> RSAPrivateKey:
    from slipway.credentials.tpm.primes import derive_key

    return derive_key(secret, label)
