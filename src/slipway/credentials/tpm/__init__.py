"""A host's identity by a TPM 2.0: what its keys are, how a server proves that a host has them, and the TPMs that answer.

The endorsement key (EK) belongs to the TPM for good, and its hash names the host; it can only decrypt.  The attestation key
(AK) signs what the TPM itself says, first of all how the AK was made.  A server checks the AK (:mod:`.attestation`) and
encrypts a secret to the EK so that only the TPM that holds both keys gives it back: the activation of a credential.

Nothing here imports cryptography before a key is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey


class Identity(Protocol):
    """A TPM, of whatever kind: what a host registers with."""

    @property
    def endorsement_pem(self) -> bytes:
        """The certificate of the EK, or its public key."""

    def attestation_key(self) -> dict[str, Any]:
        """The AK with the proof of its creation, as it goes into the header of a registration."""

    def activate(self, credential: bytes, secret: bytes) -> bytes:
        """The server's secret out of its challenge."""

    def close(self) -> None:
        """Leave the TPM to others; nothing can be asked of it any more."""


def tpm_hash(public_key: RSAPublicKey) -> str:
    """The name of a TPM: the SHA-256 of its EK, as Elemental has it."""
    from hashlib import sha256

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return sha256(public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
