"""Pins of public keys: by them a machine knows a certificate authority that it has never seen (RFC 7469 has the form)."""

from __future__ import annotations

import hashlib


def of(certificates_pem: bytes) -> list[str]:
    """``sha256:…`` of the public key of every certificate, as ``--discovery-token-ca-cert-hash`` takes it.

    ValueError where there is no certificate.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    from slipway.credentials import x509

    keys = [certificate.public_key() for certificate in x509.parse(certificates_pem)]
    infos = [key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in keys]
    return [f"sha256:{hashlib.sha256(info).hexdigest()}" for info in infos]
