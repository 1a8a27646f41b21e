"""The TPMs of simulated hosts: as many names as hosts, and real answers to real challenges."""

from slipway.credentials.tpm import attestation
from slipway.simulation.tpms import SimulatedTPMs


def test_every_host_has_a_tpm_of_its_own_that_answers() -> None:
    tpms = SimulatedTPMs()
    names = set()
    for _ in range(12):
        tpm = tpms.take()
        key = attestation.verify(tpm.endorsement_pem, tpm.attestation_key())
        secret = attestation.new_secret()
        assert tpm.activate(*attestation.challenge(key, tpm.attestation_key(), secret)) == secret
        names.add(key.hash)
    assert len(names) == 12


def test_the_keys_of_hosts_have_all_of_their_bits() -> None:
    tpms = SimulatedTPMs()
    assert {attestation.read_endorsement(tpms.take().endorsement_pem).public_key.key_size for _ in range(12)} == {2048}
