"""SPDY/3.1 inside a websocket, as far as a port-forward of client-go needs it: ``SPDY/3.1+portforward.k8s.io``.

Whoever forwards opens a stream for errors and one for the data of a port; the headers of both name the port.  There is no flow control, as
neither side of Kubernetes has any.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PROTOCOL = "SPDY/3.1+portforward.k8s.io"
SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
FIN = 0x01
_CONTROL, _VERSION = 0x8000, 3
_HEADER = 8

# The dictionary of the specification, with which headers are compressed: words with their lengths, then a text.
_WORDS = """
options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization cache-control
connection content-base content-encoding content-language content-length content-location content-md5 content-range content-type date etag
expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma
proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning
www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin
"""
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information"
    "204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error"
    "501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, "
    "Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


class Frame(NamedTuple):
    """``type`` is 0 for data; ``stream`` is the number of a stream, of a PING its own."""

    type: int
    stream: int
    flags: int
    content: bytes


def _sized(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">I", len(encoded)) + encoded


DICTIONARY = b"".join(_sized(word.replace("_", " ")) for word in _WORDS.split()) + _TEXT.encode()


class Connection:
    """One side of a connection: bytes come in as pieces and are frames, headers are compressed in the order of the frames."""

    def __init__(self) -> None:
        self._rest = b""
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def frames(self, piece: bytes) -> Iterator[Frame]:
        """Those that are whole with this piece."""
        self._rest += piece
        while len(self._rest) >= _HEADER:
            first, second, flags, upper, lower = struct.unpack(">HHBBH", self._rest[:_HEADER])
            end = _HEADER + (upper << 16 | lower)
            if len(self._rest) < end:
                return
            content, self._rest = self._rest[_HEADER:end], self._rest[end:]
            if not first & _CONTROL:
                yield Frame(0, (first & 0x7FFF) << 16 | second, flags, content)
            else:
                (stream,) = struct.unpack(">I", content[:4]) if len(content) >= 4 else (0,)
                yield Frame(second, stream & 0x7FFFFFFF, flags, content)

    def headers(self, frame: Frame) -> dict[str, str]:
        """Those of a SYN_STREAM; each has to be read, as the next one's are compressed with what was in it."""
        block = self._inflate.decompress(frame.content[10:])
        (number,) = struct.unpack(">I", block[:4])
        found, at = [], 4
        for _ in range(number * 2):
            (length,) = struct.unpack(">I", block[at : at + 4])
            found.append(block[at + 4 : at + 4 + length].decode())
            at += 4 + length
        return dict(zip(found[::2], found[1::2], strict=True))

    def reply(self, stream: int) -> bytes:
        """The stream is taken."""
        return self._control(SYN_REPLY, 0, struct.pack(">I", stream) + self._packed({}))

    def begin(self, stream: int, headers: dict[str, str]) -> bytes:
        return self._control(SYN_STREAM, 0, struct.pack(">IIH", stream, 0, 0) + self._packed(headers))

    def pong(self, frame: Frame) -> bytes:
        return self._control(PING, 0, frame.content)

    @staticmethod
    def data(stream: int, content: bytes, *, last: bool = False) -> bytes:
        return struct.pack(">IBBH", stream, FIN if last else 0, len(content) >> 16, len(content) & 0xFFFF) + content

    def _packed(self, headers: dict[str, str]) -> bytes:
        block = struct.pack(">I", len(headers)) + b"".join(_sized(name) + _sized(value) for name, value in headers.items())
        return self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    @staticmethod
    def _control(type_: int, flags: int, content: bytes) -> bytes:
        return struct.pack(">HHBBH", _CONTROL | _VERSION, type_, flags, len(content) >> 16, len(content) & 0xFFFF) + content
