"""A TPM 2.0 as a device: our client drives swtpm, a TPM in a process of its own, as a host does when it registers."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from fleet.inventory.management import SPACE, Management
from support import tpms
from support.swtpm import MISSING, software_device

from slipway.agent import paths
from slipway.agent.machine import RealMachine
from slipway.agent.registration import exchange
from slipway.agent.registration.settings import Settings
from slipway.api.cluster.kinds import MACHINE_INVENTORY
from slipway.credentials.tpm import attestation
from slipway.credentials.tpm.channel import Channel, ResponseError, TPMError
from slipway.credentials.tpm.device import TPMDevice
from slipway.credentials.tpm.structures import sized
from slipway.embedded.server import EmbeddedServer
from slipway.host.real import RealHost
from slipway.kube.aio import AsyncClient

pytestmark = [
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="runs real programs: run it with `make e2e`"),
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.smoke,
]

NV_DEFINE, NV_WRITE, CREATE_PRIMARY, EVICT = 0x12A, 0x137, 0x131, 0x120
PLATFORM, OWNER = 0x4000000C, 0x40000001
CERTIFICATE, PERSISTENT = 0x01C00002, 0x81010001
# ppWrite, ppRead, ownerRead, authRead, noDA and platformCreate, as makers of TPMs define the place of a certificate.
MAKERS = 0x00000001 | 0x00010000 | 0x00020000 | 0x00040000 | 0x02000000 | 0x40000000


def answers(device: TPMDevice) -> bool:
    """Whether the TPM passes a registration as the server asks it."""
    key = attestation.verify(device.endorsement_pem, device.attestation_key())
    secret = attestation.new_secret()
    return attestation.is_answer(secret, device.activate(*attestation.challenge(key, device.attestation_key(), secret)))


def test_a_tpm_registers_and_is_the_same_host_after_a_restart(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        # Nobody has started this TPM: the client does.
        with software_device(tmp_path) as path, TPMDevice(path) as device:
            assert answers(device)
            assert answers(device)
            names.append(attestation.read_endorsement(device.endorsement_pem).hash)
    assert names[0] == names[1]


def test_a_challenge_for_another_key_is_refused_with_a_sentence_and_the_next_is_answered(tmp_path: Path) -> None:
    with software_device(tmp_path) as path, TPMDevice(path) as device:
        key = attestation.read_endorsement(device.endorsement_pem)
        foreign = attestation.challenge(key, tpms.software_tpm().attestation_key(), attestation.new_secret())
        with pytest.raises(ResponseError, match="refused ActivateCredential with code 0x1df: what it was given is not for this TPM"):
            device.activate(*foreign)
        assert answers(device)


def test_a_tpm_is_reached_by_tcp_too(tmp_path: Path) -> None:
    with software_device(tmp_path, tcp=True) as path, TPMDevice(path) as device:
        assert path.startswith("tcp://127.0.0.1:")
        assert answers(device)


def test_nothing_is_left_in_the_tpm(tmp_path: Path) -> None:
    with software_device(tmp_path) as path:
        # A TPM has places for three keys and three sessions; each registration has two and one.
        for _ in range(4):
            with TPMDevice(path) as device:
                assert answers(device)


def test_the_certificate_of_the_maker_is_sent_and_trusted(tmp_path: Path) -> None:
    with software_device(tmp_path) as path:
        with TPMDevice(path) as device:
            key = attestation.read_endorsement(device.endorsement_pem)
        now = datetime.now(UTC)
        maker = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "maker")])
        dates = (now - timedelta(days=1), now + timedelta(days=1))
        builder = x509.CertificateBuilder().issuer_name(maker).serial_number(7).not_valid_before(dates[0]).not_valid_after(dates[1])
        issued = builder.subject_name(x509.Name([])).public_key(key.public_key).sign(tpms.key(0), SHA256())
        authority = builder.subject_name(maker).public_key(tpms.key(0).public_key())
        authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        # Makers fill the place up after the certificate.
        write(path, issued.public_bytes(Encoding.DER) + b"\xff" * 100)
        with TPMDevice(path) as device:
            endorsed = attestation.verify(device.endorsement_pem, device.attestation_key())
            assert endorsed.certificate == issued
            assert endorsed.hash == key.hash
            attestation.check_chain(endorsed, authority.sign(tpms.key(0), SHA256()).public_bytes(Encoding.PEM), now)
            assert answers(device)


def test_a_certificate_of_another_key_is_not_sent(tmp_path: Path) -> None:
    with software_device(tmp_path) as path:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "other")])
        now = datetime.now(UTC)
        other = x509.CertificateBuilder().issuer_name(name).subject_name(name).serial_number(7).public_key(tpms.key(1).public_key())
        signed = other.not_valid_before(now).not_valid_after(now + timedelta(days=1)).sign(tpms.key(1), SHA256())
        write(path, signed.public_bytes(Encoding.DER))
        with TPMDevice(path) as device:
            assert device.endorsement_pem.startswith(b"-----BEGIN PUBLIC KEY-----")
            assert answers(device)


def write(path: str, certificate: bytes) -> None:
    """Put a certificate where its maker does."""
    channel = Channel(path)
    area = struct.pack(">IHI", CERTIFICATE, 0x000B, MAKERS) + sized(b"") + struct.pack(">H", len(certificate))
    channel.run("NV_DefineSpace", NV_DEFINE, (PLATFORM,), sized(b"") + sized(area), (0,))
    for at in range(0, len(certificate), 512):
        channel.run("NV_Write", NV_WRITE, (PLATFORM, CERTIFICATE), sized(certificate[at : at + 512]) + struct.pack(">H", at), (0,))
    channel.close()


def test_an_endorsement_key_that_is_kept_in_the_tpm_is_used(tmp_path: Path) -> None:
    with software_device(tmp_path) as path:
        with TPMDevice(path) as device:
            made = attestation.read_endorsement(device.endorsement_pem).hash
            channel = device._channel
            channel.run("EvictControl", EVICT, (OWNER, device._endorsement[0]), struct.pack(">I", PERSISTENT), (0,))
        with TPMDevice(path) as device:
            assert device._endorsement[0] == PERSISTENT
            assert attestation.read_endorsement(device.endorsement_pem).hash == made
            assert answers(device)


@pytest.mark.asyncio
async def test_the_agent_registers_a_host_by_the_tpm_that_it_has() -> None:
    # The path of a socket has room for 107 characters, which pytest's folders fill.
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        async with EmbeddedServer() as server, AsyncClient(server.connection()) as client, Management(server, client) as management:
            serving = await management.start()
            url = (await management.registration())["status"]["registrationURL"]
            wanted = Settings(url=url, ca=serving.authorities, no_smbios=True)
            with software_device(root, socket=root / "dev/tpmrm0") as path:
                with TPMDevice(path) as device:
                    name = attestation.read_endorsement(device.endorsement_pem).hash
                for _ in range(2):
                    await asyncio.to_thread(exchange.register, RealMachine(RealHost(folder, {})), wanted, log=print)
            found = await client.list(MACHINE_INVENTORY, SPACE)
            # The second time it is known.
            assert [each["spec"]["tpmHash"] for each in found] == [name]
            annotations = found[0]["metadata"]["annotations"]
            assert annotations["elemental.cattle.io/auth"] == "tpm"
            assert annotations["elemental.cattle.io/registration-ip"] == "127.0.0.1"
            told = json.loads((root / paths.CONNECTION.lstrip("/")).read_text())
            assert told["secretName"] == found[0]["metadata"]["name"]
            # Nothing of the identity is on the disk: it is the TPM's.
            assert not (root / paths.KEY.lstrip("/")).exists()


def test_a_tpm_that_is_not_there_or_hangs_up_is_told(tmp_path: Path) -> None:
    with pytest.raises(TPMError, match="the TPM at /nowhere/tpm cannot be opened"):
        TPMDevice("/nowhere/tpm")
    with software_device(tmp_path) as path:
        device = TPMDevice(path)
    with pytest.raises(TPMError, match="did not answer ReadPublic"):
        device.endorsement_pem  # noqa: B018 - it asks the TPM
