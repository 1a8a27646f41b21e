"""Our attestation and go-attestation's, held against each other both ways: recorded by tests/oracles/tpm_record.py."""

from __future__ import annotations

import json
from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import tpms

from slipway.credentials.tpm import attestation
from slipway.credentials.tpm.attestation import AttestationError
from slipway.credentials.tpm.credential import CredentialError
from slipway.credentials.tpm.software import SoftwareTPM

pytestmark = pytest.mark.recorded

RECORDED = json.loads((Path(__file__).parents[2] / "golden/tpm/go-attestation-v0.6.1.json").read_text())
JUDGED = {row["name"]: row for row in RECORDED["judged"]}
HOST = RECORDED["registered"]
OTHERS = "the attestation key of another host"


@cache
def tpm(secret: str) -> SoftwareTPM:
    return SoftwareTPM(bytes.fromhex(secret))


def verdict(row: dict[str, Any]) -> str:
    try:
        attestation.verify(tpm(row["secret"]).endorsement_pem, row["AK"])
    except AttestationError as error:
        return str(error)
    return ""


def test_everything_forged_was_judged() -> None:
    assert set(JUDGED) == {"honest", OTHERS, *tpms.FORGERIES, *tpms.STRICTER}


@pytest.mark.parametrize("name", JUDGED)
def test_what_go_attestation_refuses_is_refused_and_what_it_takes_is_taken_but_for_keys_that_no_tpm_makes(name: str) -> None:
    row = JUDGED[name]
    assert bool(verdict(row)) is ("Refused" in row or name in tpms.STRICTER)


def test_our_software_tpm_says_today_what_go_attestation_took() -> None:
    row = JUDGED["honest"]
    assert tpm(row["secret"]).attestation_key() == row["AK"]


def test_our_software_tpm_answers_the_challenge_of_go_attestation() -> None:
    row = JUDGED["honest"]
    challenge = row["EC"]
    assert tpm(row["secret"]).activate(b64decode(challenge["Credential"]), b64decode(challenge["Secret"])) == b64decode(row["Answer"])


def test_our_software_tpm_does_not_answer_the_challenge_about_another_hosts_key() -> None:
    row = JUDGED[OTHERS]
    with pytest.raises(CredentialError, match="not for the attestation key of this host"):
        tpm(row["secret"]).activate(b64decode(row["EC"]["Credential"]), b64decode(row["EC"]["Secret"]))


def test_a_host_by_go_attestation_on_swtpm_is_taken_and_named_as_it_names_itself() -> None:
    assert attestation.verify(HOST["EK"].encode(), HOST["AK"]).hash == HOST["Hash"]


def test_our_device_client_found_the_same_endorsement_key_in_that_tpm() -> None:
    assert HOST["ours"] == HOST["Hash"]


@pytest.mark.parametrize("row", HOST["challenges"], ids=lambda row: str(row["name"]))
def test_that_host_answered_our_challenge_and_no_other(row: dict[str, Any]) -> None:
    assert (row.get("Answer") == row["secret"]) is (row["name"] == "ours")
    assert ("Refused" in row) is (row["name"] != "ours")


@pytest.mark.parametrize("name", ["Public", "CreateData", "CreateAttestation", "CreateSignature"])
def test_a_byte_changed_anywhere_in_what_that_host_sent_is_refused(name: str) -> None:
    blob = bytearray(b64decode(HOST["AK"][name]))
    for at in range(0, len(blob), 7):
        changed = bytes(blob[:at] + bytes([blob[at] ^ 0x10]) + blob[at + 1 :])
        with pytest.raises(AttestationError):
            attestation.verify(HOST["EK"].encode(), {**HOST["AK"], **tpms.blobs(**{name: changed})})
