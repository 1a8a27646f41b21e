"""Who a host is: what its Authorization header says, judged by what the registration asks for, and the challenge that a TPM must answer.

Every challenge has a secret of its own, so that what was recorded of an earlier one answers nothing.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.elemental import names, protocol
from slipway.api.elemental.protocol import PlainAuthorization, ProtocolError, TpmAuthorization
from slipway.credentials.tpm import attestation
from slipway.fleet.inventory import hosts
from slipway.fleet.inventory.registration.draft import Identity

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from slipway.credentials.tpm.attestation import EndorsementKey

_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# What boards have that nobody gave an identity; all hosts with it would be one.
_NO_UUIDS = frozenset({"03000200-0400-0500-0006-000700080009", "12345678-1234-5678-90ab-cddeefaabbcc"})
_SHAPES = {names.AUTH_MAC: (_MAC, "a hardware address"), names.AUTH_SYSTEM_UUID: (_UUID, "a UUID")}


class UnauthenticatedError(ProtocolError):
    """The host did not prove who it is."""


class Claim(NamedTuple):
    """Who a host says it is; a TPM has yet to prove it."""

    identity: Identity
    endorsement: EndorsementKey | None = None
    attestation_key: dict[str, Any] | None = None


class Challenge(NamedTuple):
    """What is sent to a TPM, and what must come back."""

    message: bytes
    secret: bytes

    def check(self, answer: bytes) -> None:
        if not attestation.is_answer(self.secret, protocol.read_answer(answer)):
            raise UnauthenticatedError("the TPM did not answer the challenge: it does not hold the endorsement key and the attestation key")


def claim(header: str, auth: str, now: datetime, authorities: bytes = b"") -> Claim:
    """Who the host says it is, in the way that the registration asks for; ``authorities`` are those that vouch for TPMs, if it matters."""
    given = protocol.read_authorization(header)
    if auth == names.AUTH_TPM:
        if not isinstance(given, TpmAuthorization):
            raise UnauthenticatedError("the registration asks for a TPM, and the host brings a plain identity")
        return _tpm(given, now, authorities)
    if not isinstance(given, PlainAuthorization):
        raise UnauthenticatedError(f'the registration asks for the identity "{auth}", and the host brings a TPM')
    return Claim(Identity(hosts.MACHINE_HASH, _plain(given.identity, auth), auth))


def challenge(claimed: Claim) -> Challenge | None:
    """What a TPM must answer; nothing where the host is believed."""
    if claimed.endorsement is None or claimed.attestation_key is None:
        return None
    secret = attestation.new_secret()
    credential, blob = attestation.challenge(claimed.endorsement, claimed.attestation_key, secret)
    return Challenge(protocol.encode_challenge(credential, blob), secret)


def _tpm(given: TpmAuthorization, now: datetime, authorities: bytes) -> Claim:
    try:
        endorsement = attestation.verify(given.endorsement_pem, given.attestation_key)
        if authorities:
            attestation.check_chain(endorsement, authorities, now)
    except attestation.AttestationError as error:
        raise UnauthenticatedError(f"the TPM is not believed: {error}") from None
    return Claim(Identity(hosts.TPM_HASH, endorsement.hash, names.AUTH_TPM), endorsement, given.attestation_key)


def _plain(identity: str, auth: str) -> str:
    shape, what = _SHAPES[auth]
    if not shape.fullmatch(identity):
        raise UnauthenticatedError(f'"{identity[:64]}" is not {what}, which the registration asks for')
    digits = set(re.sub(r"[-:]", "", identity.lower()))
    if len(digits) == 1 or identity.lower() in _NO_UUIDS:
        raise UnauthenticatedError(f'"{identity}" is what many boards have: register this host by a TPM or by its hardware address')
    return hashlib.sha256(identity.encode()).hexdigest()
