"""The client of a TPM 2.0 device: what it makes of a TPM that is busy, speaks nonsense or hangs up.  On swtpm it is tried end to end."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from slipway.credentials.tpm.channel import Channel, ResponseError, TPMError, open_stream
from slipway.credentials.tpm.device import TPMDevice

STARTUP, READ_PUBLIC = 0x144, 0x173


def response(code: int, body: bytes = b"") -> bytes:
    return struct.pack(">HII", 0x8001, 10 + len(body), code) + body


@pytest.fixture
def tpm(tmp_path: Path) -> Callable[..., tuple[str, list[int]]]:
    """A TPM that gives these responses, whatever it is asked: its path, and the commands that it was given."""

    def made(*responses: bytes) -> tuple[str, list[int]]:
        path, asked = str(tmp_path / "tpm.sock"), list[int]()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with listener, connection:
                for each in responses:
                    asked.append(int.from_bytes(connection.recv(4096)[6:10], "big"))
                    connection.sendall(each)

        threading.Thread(target=serve, daemon=True).start()
        return path, asked

    return made


def test_a_busy_tpm_is_asked_again(tpm: Callable[..., tuple[str, list[int]]]) -> None:
    path, asked = tpm(response(0x922), response(0x90A), response(0, b"key"))
    assert Channel(path).run("ReadPublic", READ_PUBLIC, (1,)) == b"key"
    assert asked == [READ_PUBLIC] * 3


def test_a_tpm_that_nobody_started_is_started(tpm: Callable[..., tuple[str, list[int]]]) -> None:
    path, asked = tpm(response(0x100), response(0), response(0, b"key"))
    assert Channel(path).run("ReadPublic", READ_PUBLIC, (1,)) == b"key"
    assert asked == [READ_PUBLIC, STARTUP, READ_PUBLIC]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (0x98E, "refused ReadPublic with code 0x98e: a hierarchy has a password"),
        (0x921, "it is locked after wrong passwords"),
        (0x1C4, "refused ReadPublic with code 0x1c4$"),
    ],
)
def test_a_refusal_says_what_to_do(tpm: Callable[..., tuple[str, list[int]]], code: int, sentence: str) -> None:
    path, _ = tpm(response(code))
    with pytest.raises(ResponseError, match=sentence):
        Channel(path).run("ReadPublic", READ_PUBLIC, (1,))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [(b"", "closed in the middle"), (b"\x80\x01\0\0", "closed in the middle"), (b"\x80\x01\0\0\0\1\0\0\0\0", "no response of a TPM")],
    ids=["nothing", "cut", "wrong size"],
)
def test_a_tpm_that_speaks_nonsense_is_told(tpm: Callable[..., tuple[str, list[int]]], answer: bytes, sentence: str) -> None:
    path, _ = tpm(answer)
    with pytest.raises(TPMError, match=f"did not answer ReadPublic: .*{sentence}"):
        Channel(path).run("ReadPublic", READ_PUBLIC, (1,))


def test_a_response_that_is_too_short_for_its_command_is_told(tpm: Callable[..., tuple[str, list[int]]]) -> None:
    path, _ = tpm(response(0x18B), response(0x18B), response(0, b"\x80\0\0\0\0\0\0\x09"))
    with pytest.raises(TPMError, match="the TPM's response to CreatePrimary is cut short"):
        TPMDevice(path).endorsement_pem  # noqa: B018 - it asks the TPM


@pytest.mark.parametrize("path", ["/nowhere/tpmrm0", "tcp://127.0.0.1", "tcp://127.0.0.1:port"])
def test_a_tpm_that_is_not_there_is_told_with_its_path(path: str) -> None:
    with pytest.raises(TPMError, match=f"the TPM at {path} cannot be opened"):
        open_stream(path)
