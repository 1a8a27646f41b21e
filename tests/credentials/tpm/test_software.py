"""The TPM in software: its identity follows from its secret, and from nothing else."""

import pytest
from support import tpms

from slipway.credentials.tpm import attestation, software, structures
from slipway.credentials.tpm.primes import derive_key
from slipway.credentials.tpm.software import SoftwareTPM


def test_the_identity_of_a_secret_never_changes() -> None:
    tpm = SoftwareTPM(b"\x0d" * 32)
    # What the first release made of it: hosts are known by it.
    assert attestation.read_endorsement(tpm.endorsement_pem).hash == "8a04adb9764249d73b3df17d92322a7d0a63441483993afc880a15eb5e96e235"


def test_a_derived_key_is_an_rsa_key_of_2048_bits() -> None:
    numbers = derive_key(b"\x16" * 32, "EK").private_numbers()
    assert numbers.public_numbers.n.bit_length() == 2048
    # OpenSSL tests the primes and how the numbers belong together.
    assert numbers.private_key().key_size == 2048


def test_a_secret_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="has 8 bytes: it must have 32"):
        SoftwareTPM(bytes(8))


def test_new_secrets_differ() -> None:
    assert software.generate() != software.generate()
    assert len(software.generate()) == software.SECRET_BYTES


def test_the_attestation_key_is_the_same_each_time() -> None:
    tpm = tpms.software_tpm()
    assert tpm.attestation_key() == tpm.attestation_key()


def test_public_areas_are_read_as_they_are_written() -> None:
    for public in (structures.endorsement_public(b"\x01" * 256), structures.attestation_public(b"\x02" * 256)):
        assert structures.read_public(public.encode()) == public
