"""Port-forwards as client-go asks for them: SPDY/3.1 in a websocket."""

from __future__ import annotations

import zlib

import pytest

from slipway.simulation.workload import spdy


def test_the_dictionary_is_the_one_of_the_specification() -> None:
    # https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1: 1,423 bytes, whose checksum zlib asks for.
    assert len(spdy.DICTIONARY) == 1423
    assert zlib.adler32(spdy.DICTIONARY) == 0xE3C6A7C2


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_frames_are_found_however_the_bytes_come(size: int) -> None:
    mine, theirs = spdy.Connection(), spdy.Connection()
    told = {"streamtype": "data", "port": "2379", "requestid": "0"}
    sent = mine.begin(1, {**told, "streamtype": "error"}) + mine.begin(3, told) + mine.data(3, b"x" * 70000) + mine.data(3, b"", last=True)
    frames = [frame for at in range(0, len(sent), size) for frame in theirs.frames(sent[at : at + size])]
    assert [(frame.type, frame.stream, frame.flags) for frame in frames] == [(1, 1, 0), (1, 3, 0), (0, 3, 0), (0, 3, spdy.FIN)]
    assert theirs.headers(frames[0])["streamtype"] == "error"
    assert theirs.headers(frames[1]) == told
    assert frames[2].content == b"x" * 70000


def test_a_ping_is_answered_with_itself() -> None:
    ping = bytes.fromhex("8003000600000004" + "00000005")
    (frame,) = spdy.Connection().frames(ping)
    assert spdy.Connection().pong(frame) == ping
