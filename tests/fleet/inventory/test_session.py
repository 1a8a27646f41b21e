"""What is answered to a host, message by message: the conversation as a table, without a connection."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.elemental import protocol
from slipway.api.elemental.protocol import Frame
from slipway.api.elemental.registration import MachineRegistration, MachineRegistrationSpec
from slipway.fleet.inventory.registration.draft import Identity
from slipway.fleet.inventory.registration.session import MOST_FRAMES, Commit, Refusal, Reply, Session

WHO = Identity("tpmHash", "a" * 64, "tpm")
KNOWN = {"metadata": {"name": "m-1", "namespace": "hosts"}, "spec": {"tpmHash": "a" * 64}}
VERSION = protocol.encode(Frame.VERSION, b"\x0d")
READY = Reply(protocol.encode(Frame.READY))
NETWORK = {"interfaces": [{"name": "eth0", "mac": "52:54:00:00:00:01", "mtu": 1500, "addresses": ["10.0.0.5/24"]}]}


def session(known: dict[str, Any] | None = None, **spec: Any) -> Session:
    made = MachineRegistration(metadata={"name": "all", "namespace": "hosts"}, spec=MachineRegistrationSpec(**spec))
    return Session(made, WHO, known)


def said(frame: Frame, value: Any) -> bytes:
    return protocol.encode(frame, value) if isinstance(value, bytes) else protocol.encode_object(frame, value)


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [(5, 5), (11, 11), (12, 12), (13, 13), (15, 13), (255, 13)],
)
def test_the_smaller_version_is_agreed_on(offered: int, agreed: int) -> None:
    assert session().heard(protocol.encode(Frame.VERSION, bytes((offered,)))) == Reply(bytes((Frame.VERSION, agreed)))


@pytest.mark.parametrize(
    ("frame", "value"),
    [
        (Frame.SMBIOS, {"System Information": {"UUID": "u"}}),
        (Frame.SYSTEM_DATA, {"Memory": {"Total Physical Bytes": 1}}),
        (Frame.SYSTEM_DATA_V2, {"CPU": {"Model": "x"}}),
        (Frame.ANNOTATIONS, {"elemental.cattle.io/registration-ip": "10.0.0.5"}),
        (Frame.LABELS, {"rack": "7"}),
        (Frame.NETWORK_CONFIG, b""),
        (Frame.OBSERVED_NETWORK_CONFIG, NETWORK),
        (Frame.OBSERVED_NETWORK_CONFIG, {}),
    ],
    ids=lambda value: value.name if isinstance(value, Frame) else "",
)
def test_what_a_host_says_of_itself_is_taken(frame: Frame, value: Any) -> None:
    talk = session()
    talk.heard(VERSION)
    assert talk.heard(said(frame, value)) == READY


def test_a_known_host_may_update() -> None:
    talk = session(KNOWN)
    talk.heard(VERSION)
    assert talk.heard(said(Frame.UPDATE, b"")) == READY
    assert talk.heard(said(Frame.GET, b"")) == Commit(updating=True)


def test_an_update_of_an_inventory_that_is_gone_is_refused_in_elementals_words() -> None:
    talk = session()
    talk.heard(VERSION)
    assert talk.heard(said(Frame.UPDATE, b"")) == Refusal("MachineInventory not found")


@pytest.mark.parametrize(
    ("before", "message", "why"),
    [
        ([], b"", "the message is empty"),
        ([], protocol.encode(Frame.VERSION, b"\x04"), "the host's program is too old"),
        ([], protocol.encode(Frame.VERSION, b""), "a version is one byte"),
        ([], protocol.encode(Frame.GET), "the version of the protocol must be agreed on before GET"),
        ([], protocol.encode_object(Frame.SMBIOS, {}), "must be agreed on before SMBIOS"),
        ([VERSION], VERSION, "was agreed on already"),
        ([VERSION], b"\x0e{}", "unknown type 14"),
        ([VERSION], b"\xff", "unknown type 255"),
        ([protocol.encode(Frame.VERSION, b"\x0b")], protocol.encode_object(Frame.OBSERVED_NETWORK_CONFIG, {}), "not in version 11"),
        ([VERSION], protocol.encode(Frame.READY), "READY is not for a host to say"),
        ([VERSION], protocol.encode(Frame.CONFIG), "CONFIG is not for a host to say"),
        ([VERSION], protocol.encode(Frame.ERROR), "ERROR is not for a host to say"),
        ([VERSION], protocol.encode(Frame.SMBIOS, b"\xff\xfe garbage"), "the SMBIOS data is no JSON"),
        ([VERSION], protocol.encode(Frame.SMBIOS, b"[1]"), "the SMBIOS data is no JSON object"),
        ([VERSION], protocol.encode_object(Frame.SMBIOS, {"x": "y" * 300_000}), "more than the 262144"),
        ([VERSION], protocol.encode(Frame.SMBIOS, b"x" * (2 << 20)), "a registration takes at most"),
        ([VERSION], protocol.encode_object(Frame.LABELS, {"a": 1}), "is no text"),
        ([VERSION], protocol.encode_object(Frame.OBSERVED_NETWORK_CONFIG, {"interfaces": "eth0"}), "the observed network cannot be read"),
        ([VERSION], protocol.encode_object(Frame.OBSERVED_NETWORK_CONFIG, {"interfaces": [{}] * 257}), "more than 256 interfaces"),
        ([VERSION], protocol.encode_object(Frame.OBSERVED_NETWORK_CONFIG, {"dnsServers": ["x" * 257]}), "more than 256 characters"),
    ],
)
def test_what_is_refused(before: list[bytes], message: bytes, why: str) -> None:
    talk = session()
    for each in before:
        assert isinstance(talk.heard(each), Reply)
    refused = talk.heard(message)
    assert isinstance(refused, Refusal)
    assert why in refused.sentence


def test_a_conversation_ends_by_itself() -> None:
    talk = session()
    talk.heard(VERSION)
    for _ in range(MOST_FRAMES - 1):
        assert talk.heard(said(Frame.SMBIOS, {})) == READY
    assert isinstance(talk.heard(said(Frame.SMBIOS, {})), Refusal)


def test_a_registration_that_cannot_name_hosts_is_told() -> None:
    talk = session(machine_name="${Random/Hex/99}")
    refused = talk.manifest(None)
    assert isinstance(refused, Refusal)
    assert refused.sentence.startswith("the MachineRegistration all cannot name this host")
