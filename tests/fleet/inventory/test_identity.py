"""Who a host is: every attestation key that no TPM vouches for is refused before the host is talked to, and a challenge is good once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from support import tpms

from slipway.api.elemental import protocol
from slipway.api.elemental.protocol import TpmAuthorization
from slipway.fleet.inventory.registration import identity
from slipway.fleet.inventory.registration.identity import UnauthenticatedError

NOW = datetime(2026, 1, 2, tzinfo=UTC)


FORGED = tpms.FORGERIES | tpms.STRICTER


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_attestation_key_is_refused(name: str) -> None:
    forged = FORGED[name]()
    header = TpmAuthorization(tpms.software_tpm().endorsement_pem, forged).header()
    with pytest.raises(UnauthenticatedError, match="the TPM is not believed: the "):
        identity.claim(header, "tpm", NOW)


def test_the_answer_to_an_earlier_challenge_answers_no_other() -> None:
    tpm = tpms.software_tpm()
    claim = identity.claim(TpmAuthorization(tpm.endorsement_pem, tpm.attestation_key()).header(), "tpm", NOW)
    first, second = identity.challenge(claim), identity.challenge(claim)
    assert first is not None
    assert second is not None
    answer = protocol.encode_answer(tpm.activate(*protocol.read_challenge(first.message)))
    first.check(answer)
    with pytest.raises(UnauthenticatedError, match="did not answer the challenge"):
        second.check(answer)
