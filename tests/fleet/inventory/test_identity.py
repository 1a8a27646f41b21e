"""Who a host is taken for, by its header and by what the registration asks for."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from slipway.api.elemental import protocol
from slipway.api.elemental.protocol import PlainAuthorization, ProtocolError, TpmAuthorization
from slipway.credentials.tpm.software import SoftwareTPM
from slipway.fleet.inventory.registration.identity import challenge, claim

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADDRESS = "52:54:00:12:34:56"
UUID = "4c4c4544-0042-3510-8051-b7c04f4e4a32"


def plain(identity: str) -> str:
    return PlainAuthorization(identity).header()


@pytest.mark.parametrize(
    ("header", "auth", "why"),
    [
        ("", "tpm", "no Authorization header of a host"),
        ("Bearer nothing", "tpm", "neither that of a TPM nor a plain identity"),
        ("Bearer TPM!!!", "tpm", "is no base64"),
        ("Bearer TPM" + "A" * 20_000, "tpm", "more than the 16384"),
        (plain(ADDRESS), "tpm", "the registration asks for a TPM, and the host brings a plain identity"),
        (TpmAuthorization(b"x", {}).header(), "mac", 'the registration asks for the identity "mac", and the host brings a TPM'),
        (TpmAuthorization(b"-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n", {}).header(), "tpm", "the TPM is not believed"),
        (plain(UUID), "mac", "is not a hardware address"),
        (plain(ADDRESS), "sys-uuid", "is not a UUID"),
        (plain("x" * 2000), "mac", "is not a hardware address"),
        (plain("00:00:00:00:00:00"), "mac", "is what many boards have"),
        (plain("00000000-0000-0000-0000-000000000000"), "sys-uuid", "is what many boards have"),
        (plain("ffffffff-ffff-ffff-ffff-ffffffffffff"), "sys-uuid", "is what many boards have"),
        (plain("03000200-0400-0500-0006-000700080009"), "sys-uuid", "is what many boards have"),
    ],
)
def test_who_is_refused(header: str, auth: str, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        claim(header, auth, NOW)


@pytest.mark.parametrize(("auth", "identity"), [("mac", ADDRESS), ("sys-uuid", UUID)])
def test_a_plain_identity_is_its_hash_and_needs_no_proof(auth: str, identity: str) -> None:
    claimed = claim(plain(identity), auth, NOW)
    assert claimed.identity == ("machineHash", hashlib.sha256(identity.encode()).hexdigest(), auth)
    assert challenge(claimed) is None


def test_every_challenge_has_a_secret_of_its_own(tpm: SoftwareTPM) -> None:
    claimed = claim(TpmAuthorization(tpm.endorsement_pem, tpm.attestation_key()).header(), "tpm", NOW)
    first, second = challenge(claimed), challenge(claimed)
    assert first is not None
    assert second is not None
    answer = protocol.encode_answer(tpm.activate(*protocol.read_challenge(first.message)))
    first.check(answer)
    with pytest.raises(ProtocolError, match="the TPM did not answer the challenge"):
        second.check(answer)
