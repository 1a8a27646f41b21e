"""What a host sends when it registers, before anybody knows who it is: a header, the parts of a TPM's keys, frames, SMBIOS data.

The first letter of an input says what the rest is.  The parts of a TPM's keys stand behind their sizes, so that they are changed
as bytes and not as the base64 that they are sent in.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from functools import cache
from pathlib import Path
from typing import Any

from slipway.api.elemental import placeholders, protocol, smbios, systemdata
from slipway.api.elemental.placeholders import TemplateError
from slipway.api.elemental.protocol import ProtocolError, TpmAuthorization
from slipway.api.elemental.smbios import SmbiosError
from slipway.credentials.tpm import attestation
from slipway.credentials.tpm.attestation import AttestationError

_PARTS = ("Public", "CreateData", "CreateAttestation", "CreateSignature")
_TEMPLATES = {"a": "${System Information/UUID}", "b": "${System Data/Network/eth0/MacAddress}-${Random/Hex/3}"}
_GOLDEN = Path(__file__).parents[1] / "golden/tpm/go-attestation-v0.6.1.json"

DICTIONARY = (
    "Bearer TPM",
    "Bearer PLAIN",
    "System Information",
    "Handle 0x0001, DMI type 1",
    "\tUUID: ",
    '{"EC":{"Credential":"',
    "-----BEGIN",
)


@cache
def _host() -> dict[str, Any]:
    """A host that registered with go-attestation on swtpm."""
    found: dict[str, Any] = json.loads(_GOLDEN.read_text())["registered"]
    return found


def seeds() -> tuple[bytes, ...]:
    host = _host()
    parts = b"".join(struct.pack(">H", len(blob)) + blob for blob in (b64decode(host["AK"][name]) for name in _PARTS))
    return (
        b"H" + TpmAuthorization(host["EK"].encode(), host["AK"]).header().encode(),
        b"HBearer PLAIN02:00:00:00:00:01",
        b"K" + parts,
        b"P" + host["EK"].encode(),
        b'F\x02{"System Information":{"UUID":"069a9e4c-2eec-11b2-a85c-e9c6a8e86998"}}',
        b'F\x0b{"System Data":{"Network":{"Number Interfaces":"1","eth0":{"Name":"eth0","MacAddress":"02:00:00:00:00:01"}}}}',
        b'F\x0b{"Network":{"TotalNICs":"1","NICs":' + b'{"a":' * 400 + b"1" + b"}" * 400 + b'},"Storage":{"Disks":{"sda":{"Size":"1"}}}}',
        b'F\x06{"cpu":{"processors":[{"model":"m"}]},"block":{"disks":[{"name":"sda","removable":true}]}}',
        b'F\x09{"registration-ip":"192.0.2.7"}',
        b"F\x05\x0d",
        b"F\x08message: no\n",
        b'C{"EC":{"Credential":"Yw==","Secret":"cw=="},"Secret":"cw=="}',
        b"S# dmidecode 3.4\n\nHandle 0x0001, DMI type 1, 27 bytes\nSystem Information\n\tUUID: 1\n\tFlags:\n\t\tFPU\n",
    )


def fuzz(data: bytes) -> None:
    kind, rest = data[:1], data[1:]
    try:
        if kind == b"H":
            given = protocol.read_authorization(rest.decode("latin-1"))
            if isinstance(given, TpmAuthorization):
                attestation.verify(given.endorsement_pem, given.attestation_key)
        elif kind == b"K":
            key = {name: b64encode(part).decode() for name, part in zip(_PARTS, _parts(rest), strict=False)}
            endorsement = attestation.verify(_host()["EK"].encode(), key)
            attestation.challenge(endorsement, key, bytes(32))
        elif kind == b"P":
            attestation.read_endorsement(rest)
        elif kind == b"F":
            _frame(rest)
        elif kind == b"C":
            protocol.read_challenge(rest)
            protocol.read_answer(rest)
        elif kind == b"S":
            _named(smbios.parse(rest))
    except (ProtocolError, AttestationError, SmbiosError, TemplateError):
        return


def _parts(data: bytes) -> list[bytes]:
    found: list[bytes] = []
    while len(data) >= 2 and len(found) < len(_PARTS):
        size = int.from_bytes(data[:2], "big")
        found.append(data[2 : 2 + size])
        data = data[2 + size :]
    return found


def _frame(message: bytes) -> None:
    frame, payload = protocol.decode(message)
    if frame is protocol.Frame.VERSION:
        protocol.agree(payload)
        protocol.agreed(payload)
    elif frame is protocol.Frame.ERROR:
        protocol.read_error(payload)
    elif frame in (protocol.Frame.LABELS, protocol.Frame.ANNOTATIONS):
        protocol.read_texts(frame, payload)
    else:
        _named(protocol.read_object(frame, payload))


def _named(values: dict[str, Any]) -> None:
    values = systemdata.completed({**systemdata.from_ghw(values), **values})
    name = placeholders.machine_name("${System Information/UUID}", values)
    assert 0 < len(name) <= 58
    labels = placeholders.fill_labels(_TEMPLATES, values, {})
    assert all(len(label) <= 63 for label in labels.values())
