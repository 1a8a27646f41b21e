"""Elemental's registration protocol: its frames, the version that both sides agree on, and the headers by which a host says who it is.

A host opens a WebSocket at ``<server>/elemental/registration/<token>`` with an ``Authorization`` header.  A TPM is challenged
first, in frames of plain JSON; everything after that is a frame of one byte of type and a payload.  This module only writes
and reads; who is asked what, and when, is said by the agent and by the endpoint.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from enum import IntEnum
from typing import Any

import msgspec

PATH = "/elemental/registration/"
DEADLINE_SECONDS = 10
"""What elemental-operator gives the whole exchange."""

TOKEN_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
TOKEN_LENGTH = 54
TOKEN_PATTERN = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
"""What an operator may choose as ``spec.token``."""

MAX_FRAME = 1 << 20
MAX_HEADER = 16 << 10
_OLDEST = 5
_BEARER = "Bearer "


class ProtocolError(ValueError):
    """What the other side sent cannot be understood, or is more than is taken."""


class Frame(IntEnum):
    """The type of a frame, which is its first byte."""

    READY = 1
    SMBIOS = 2
    LABELS = 3
    GET = 4
    VERSION = 5
    SYSTEM_DATA = 6
    CONFIG = 7
    ERROR = 8
    ANNOTATIONS = 9
    UPDATE = 10
    SYSTEM_DATA_V2 = 11
    NETWORK_CONFIG = 12
    # From here on only the provider's fork of elemental-operator knows them.
    OBSERVED_NETWORK_CONFIG = 13
    OBSERVED_STORAGE_CONFIG = 14
    OBSERVE_STORAGE = 15


VERSION = int(Frame.OBSERVED_NETWORK_CONFIG)
"""The last type that Slipway speaks: volumes are not managed.  It is what both of our sides offer when they agree on a version."""

_LIMITS = {Frame.LABELS: 64 << 10, Frame.ANNOTATIONS: 64 << 10}
_OBJECT_LIMIT = 256 << 10


def encode(frame: Frame, payload: bytes = b"") -> bytes:
    return bytes((frame,)) + payload


def encode_object(frame: Frame, value: Any) -> bytes:
    """A frame whose payload is JSON."""
    return encode(frame, msgspec.json.encode(value))


def decode(message: bytes) -> tuple[Frame, bytes]:
    """The type and the payload of a frame."""
    if not message:
        raise ProtocolError("the message is empty: its first byte must be a type")
    if len(message) > MAX_FRAME:
        raise ProtocolError(f"the message has {len(message)} bytes, more than the {MAX_FRAME} that are taken")
    kind = message[0]
    if not Frame.READY <= kind <= VERSION:
        raise ProtocolError(f"the message has the unknown type {kind}: this side speaks 1 to {VERSION}")
    return Frame(kind), message[1:]


def read_object(frame: Frame, payload: bytes) -> dict[str, Any]:
    """The JSON object in a payload."""
    limit = _LIMITS.get(frame, _OBJECT_LIMIT)
    if len(payload) > limit:
        raise ProtocolError(f"the {frame.name} data has {len(payload)} bytes, more than the {limit} that are taken")
    value = _json(payload, f"the {frame.name} data")
    if not isinstance(value, dict):
        raise ProtocolError(f"the {frame.name} data is no JSON object")
    return value


def read_texts(frame: Frame, payload: bytes) -> dict[str, str]:
    """The JSON object of texts in a payload, as labels and annotations are sent."""
    value = read_object(frame, payload)
    for name, text in value.items():
        if not isinstance(text, str):
            raise ProtocolError(f'the value of "{name[:100]}" in the {frame.name} data is no text')
    return value


def agree(payload: bytes) -> int:
    """The server's part of agreeing on a version: the smaller of both."""
    offered = _version(payload)
    if offered < _OLDEST:
        raise ProtocolError(
            f"the host's program is too old: it speaks version {offered} of the protocol, and {_OLDEST} is the oldest taken"
        )
    return min(offered, VERSION)


def agreed(payload: bytes) -> int:
    """The client's part: what the server made of the version that was offered."""
    version = _version(payload)
    if not _OLDEST <= version <= VERSION:
        raise ProtocolError(f"the server answered with version {version} of the protocol, and this side speaks {_OLDEST} to {VERSION}")
    return version


def _version(payload: bytes) -> int:
    if len(payload) != 1:
        raise ProtocolError(f"a version is one byte, and {len(payload)} were sent")
    return payload[0]


def encode_config(version: int, config: bytes) -> bytes:
    """The last message of an exchange; clients from before there were such frames get the text alone."""
    return encode(Frame.CONFIG, config) if version >= Frame.CONFIG else config


def encode_error(version: int, sentence: str) -> bytes | None:
    """What went wrong, for the person at the host; None where the client does not know such frames."""
    # A JSON text is a YAML text.
    return encode(Frame.ERROR, b"message: " + msgspec.json.encode(sentence) + b"\n") if version >= Frame.ERROR else None


def read_error(payload: bytes) -> str:
    """The sentence of an error frame."""
    from slipway.api.machinery.errors import ConfigurationError
    from slipway.api.machinery.yaml import goyaml

    try:
        text = payload[:65536].decode()
        documents = goyaml.load(text)
    except (UnicodeDecodeError, ConfigurationError) as error:
        raise ProtocolError("the server refused, and its reason cannot be read") from error
    value = documents[0].value if documents else None
    message = value.get("message") if isinstance(value, dict) else None
    return message if isinstance(message, str) and message else text.strip()


# A host says who it is.


class TpmAuthorization(msgspec.Struct, frozen=True):
    """A host with a TPM: its endorsement key or that key's certificate, and an attestation key with the proof of its creation."""

    endorsement_pem: bytes
    attestation_key: dict[str, Any]

    def header(self) -> str:
        document = msgspec.json.encode({"EK": self.endorsement_pem, "AK": self.attestation_key})
        return f"{_BEARER}TPM{b64encode(document).decode()}"


class PlainAuthorization(msgspec.Struct, frozen=True):
    """A host without one: it is believed."""

    identity: str

    def header(self) -> str:
        return f"{_BEARER}PLAIN{self.identity}"


def read_authorization(header: str) -> TpmAuthorization | PlainAuthorization:
    """Who the host says it is; nothing of it is proven yet."""
    if len(header) > MAX_HEADER:
        raise ProtocolError(f"the Authorization header has {len(header)} characters, more than the {MAX_HEADER} that are taken")
    if not header.startswith(_BEARER):
        raise ProtocolError("the request has no Authorization header of a host")
    scheme = header.removeprefix(_BEARER)
    if scheme.startswith("TPM"):
        return _tpm_authorization(scheme.removeprefix("TPM"))
    if scheme.startswith("PLAIN"):
        identity = scheme.removeprefix("PLAIN").strip()
        if not identity:
            raise ProtocolError("the Authorization header names no identity of the host")
        return PlainAuthorization(identity)
    raise ProtocolError("the Authorization header is neither that of a TPM nor a plain identity")


def _tpm_authorization(encoded: str) -> TpmAuthorization:
    what = "the Authorization header of a TPM"
    value = _json(_base64(encoded.strip(), what), what)
    if not isinstance(value, dict) or not isinstance(value.get("EK"), str) or not isinstance(value.get("AK"), dict):
        raise ProtocolError(f"{what} must have an EK and an AK")
    return TpmAuthorization(_base64(value["EK"], "the endorsement key"), value["AK"])


# The challenge: JSON without a byte of type.


def encode_challenge(credential: bytes, secret: bytes) -> bytes:
    return msgspec.json.encode({"EC": {"Credential": credential, "Secret": secret}})


def read_challenge(message: bytes) -> tuple[bytes, bytes]:
    value = _json(message, "the challenge")
    blobs = value.get("EC") if isinstance(value, dict) else None
    if not isinstance(blobs, dict) or not all(isinstance(blobs.get(key), str) for key in ("Credential", "Secret")):
        raise ProtocolError("the challenge must have a Credential and a Secret")
    return _base64(blobs["Credential"], "the challenge's credential"), _base64(blobs["Secret"], "the challenge's secret")


def encode_answer(secret: bytes) -> bytes:
    return msgspec.json.encode({"Secret": secret})


def read_answer(message: bytes) -> bytes:
    value = _json(message, "the answer to the challenge")
    if not isinstance(value, dict) or not isinstance(value.get("Secret"), str):
        raise ProtocolError("the answer to the challenge must have a Secret")
    return _base64(value["Secret"], "the answer to the challenge")


# Tokens.


def generate_token() -> str:
    """A new token; vowels are left out of it, and every character is equally likely."""
    import secrets

    return "".join(secrets.choice(TOKEN_ALPHABET) for _ in range(TOKEN_LENGTH))


def is_token(text: str) -> bool:
    """Whether a registration may have the token."""
    return re.fullmatch(TOKEN_PATTERN, text) is not None


def _json(payload: bytes, what: str) -> Any:
    if len(payload) > MAX_FRAME:
        raise ProtocolError(f"{what} has {len(payload)} bytes, more than the {MAX_FRAME} that are taken")
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"{what} is no JSON: {str(error)[:200]}") from error


def _base64(text: str, what: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise ProtocolError(f"{what} is no base64") from error
