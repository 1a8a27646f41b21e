"""Elemental's registration protocol: frames, versions, headers and challenges, with what cannot be understood refused in a sentence."""

import json
from base64 import b64decode, b64encode

import pytest

from slipway.api.elemental import protocol
from slipway.api.elemental.protocol import Frame, PlainAuthorization, ProtocolError, TpmAuthorization


def test_the_types_of_frames_have_the_numbers_of_elemental_operator_and_of_the_provider() -> None:
    assert {frame.name: frame.value for frame in Frame} == {
        "READY": 1,
        "SMBIOS": 2,
        "LABELS": 3,
        "GET": 4,
        "VERSION": 5,
        "SYSTEM_DATA": 6,
        "CONFIG": 7,
        "ERROR": 8,
        "ANNOTATIONS": 9,
        "UPDATE": 10,
        "SYSTEM_DATA_V2": 11,
        "NETWORK_CONFIG": 12,
        "OBSERVED_NETWORK_CONFIG": 13,
        "OBSERVED_STORAGE_CONFIG": 14,
        "OBSERVE_STORAGE": 15,
    }


def test_a_frame_is_its_type_and_its_payload() -> None:
    assert protocol.encode(Frame.ANNOTATIONS, b'{"a":"b"}') == b'\x09{"a":"b"}'
    assert protocol.decode(b'\x09{"a":"b"}') == (Frame.ANNOTATIONS, b'{"a":"b"}')
    assert protocol.encode(Frame.READY) == b"\x01"


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b"", "empty"),
        (b"\x00", "unknown type 0"),
        (b"\x0e{}", "unknown type 14: this side speaks 1 to 13"),
        (b"\xff", "unknown type 255"),
        (b"\x02" + bytes(protocol.MAX_FRAME), "1048577 bytes"),
    ],
    ids=["empty", "zero", "volumes", "unknown", "huge"],
)
def test_a_frame_that_is_not_understood_is_refused(message: bytes, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        protocol.decode(message)


@pytest.mark.parametrize(("offered", "agreed"), [(5, 5), (12, 12), (13, 13), (15, 13), (255, 13)])
def test_the_server_agrees_on_the_smaller_version(offered: int, agreed: int) -> None:
    assert protocol.agree(bytes([offered])) == agreed


@pytest.mark.parametrize("offered", range(5))
def test_a_client_from_before_versions_is_refused(offered: int) -> None:
    with pytest.raises(ProtocolError, match=f"too old: it speaks version {offered}"):
        protocol.agree(bytes([offered]))


@pytest.mark.parametrize("payload", [b"", b"\x0c\x0c"])
def test_a_version_is_one_byte(payload: bytes) -> None:
    with pytest.raises(ProtocolError, match="one byte"):
        protocol.agree(payload)


def test_the_client_takes_what_the_server_made_of_its_offer() -> None:
    assert protocol.agreed(b"\x0c") == 12
    with pytest.raises(ProtocolError, match="version 14"):
        protocol.agreed(b"\x0e")


def test_the_configuration_goes_without_a_type_to_clients_that_know_none_for_it() -> None:
    assert protocol.encode_config(7, b"elemental: {}\n") == b"\x07elemental: {}\n"
    assert protocol.encode_config(6, b"elemental: {}\n") == b"elemental: {}\n"


def test_an_error_is_yaml_and_comes_back_as_it_was() -> None:
    sentence = 'the "name": no\n- such # host\'s ü'
    message = protocol.encode_error(8, sentence)
    assert message is not None
    frame, payload = protocol.decode(message)
    assert (frame, protocol.read_error(payload)) == (Frame.ERROR, sentence)


def test_a_client_that_knows_no_errors_is_sent_none() -> None:
    assert protocol.encode_error(7, "no") is None


def test_an_error_of_elemental_operator_is_read() -> None:
    assert protocol.read_error(b"message: MachineInventory not found\n") == "MachineInventory not found"


def test_an_error_without_a_message_is_shown_as_it_is() -> None:
    assert protocol.read_error(b"- a list\n") == "- a list"


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        (b"", "is no JSON"),
        (b"[1]", "no JSON object"),
        (b"{", "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"a": "' + b"x" * (256 << 10) + b'"}', "more than the 262144"),
    ],
    ids=["empty", "list", "cut", "binary", "deep", "huge"],
)
def test_data_that_is_no_json_object_is_refused(payload: bytes, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        protocol.read_object(Frame.SMBIOS, payload)


def test_labels_and_annotations_are_texts() -> None:
    assert protocol.read_texts(Frame.ANNOTATIONS, b'{"registration-ip": "192.0.2.7"}\n') == {"registration-ip": "192.0.2.7"}
    with pytest.raises(ProtocolError, match='"a" in the LABELS data is no text'):
        protocol.read_texts(Frame.LABELS, b'{"a": 1}')


def test_the_header_of_a_tpm_is_what_elemental_register_sends() -> None:
    ak = {"Public": "AAE=", "UseTCSDActivationFormat": False, "CreateData": "AA==", "CreateAttestation": "AA==", "CreateSignature": "AA=="}
    header = TpmAuthorization(b"-----BEGIN PUBLIC KEY-----\n", ak).header()
    assert header.startswith("Bearer TPM")
    document = json.loads(b64decode(header.removeprefix("Bearer TPM")))
    assert document == {"EK": b64encode(b"-----BEGIN PUBLIC KEY-----\n").decode(), "AK": ak}
    assert protocol.read_authorization(header) == TpmAuthorization(b"-----BEGIN PUBLIC KEY-----\n", ak)


def test_a_plain_identity_has_no_space_before_it() -> None:
    assert PlainAuthorization("02:00:00:00:00:01").header() == "Bearer PLAIN02:00:00:00:00:01"
    assert protocol.read_authorization("Bearer PLAIN02:00:00:00:00:01") == PlainAuthorization("02:00:00:00:00:01")


def tpm(document: object) -> str:
    return "Bearer TPM" + b64encode(json.dumps(document).encode()).decode()


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("", "no Authorization header"),
        ("Basic dTpw", "no Authorization header"),
        ("Bearer eyJhbGciOi", "neither that of a TPM nor a plain"),
        ("Bearer PLAIN ", "names no identity"),
        ("Bearer TPM%%%", "is no base64"),
        ("Bearer TPMe30x", "is no JSON"),
        (tpm([]), "must have an EK and an AK"),
        (tpm({"EK": "AA=="}), "must have an EK and an AK"),
        (tpm({"EK": 1, "AK": {}}), "must have an EK and an AK"),
        (tpm({"EK": "!", "AK": {}}), "the endorsement key is no base64"),
        ("Bearer TPM" + "A" * protocol.MAX_HEADER, "more than the 16384"),
    ],
)
def test_a_header_that_names_no_host_is_refused(header: str, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        protocol.read_authorization(header)


def test_a_challenge_and_its_answer_come_back_as_they_were() -> None:
    assert protocol.encode_challenge(b"c", b"s") == b'{"EC":{"Credential":"Yw==","Secret":"cw=="}}'
    assert protocol.read_challenge(b'{"EC":{"Credential":"Yw==","Secret":"cw=="}}\n') == (b"c", b"s")
    assert protocol.encode_answer(b"s") == b'{"Secret":"cw=="}'
    assert protocol.read_answer(b'{"Secret":"cw=="}\n') == b"s"


@pytest.mark.parametrize("message", [b"", b"{}", b'{"EC":null}', b'{"EC":{"Credential":"Yw=="}}', b'{"EC":{"Credential":"!","Secret":""}}'])
def test_a_challenge_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(ProtocolError):
        protocol.read_challenge(message)


@pytest.mark.parametrize("message", [b"", b"[]", b'{"Secret":7}', b'{"Secret":"~"}'])
def test_an_answer_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(ProtocolError):
        protocol.read_answer(message)


def test_a_new_token_has_54_characters_without_vowels() -> None:
    token = protocol.generate_token()
    assert len(token) == 54
    assert set(token) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert token != protocol.generate_token()


@pytest.mark.parametrize(
    ("text", "taken"), [("rack-7", True), ("a", True), ("", False), ("-a", False), ("a-", False), ("A", False), ("a\n", False)]
)
def test_an_operator_chooses_a_token_of_small_letters_digits_and_dashes(text: str, taken: bool) -> None:
    assert protocol.is_token(text) is taken
