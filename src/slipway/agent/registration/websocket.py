"""A WebSocket as a client (RFC 6455), over http.client: as much as an exchange of short binary messages needs."""

from __future__ import annotations

import hashlib
import http.client
import os
import struct
import time
from base64 import b64encode
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls
from slipway.kube import proxies
from slipway.kube.errors import UnreachableError, UntrustedError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_LONGEST = 1 << 20
_SHOWN = 400


class RefusedError(OperatorError):
    """The server answered, and takes no WebSocket of this host; ``status`` is that of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class WebSocket:
    """Messages in both directions until ``deadline``, a time of the monotonic clock."""

    def __init__(self, connection: http.client.HTTPConnection, reader: BinaryIO, deadline: float, shown: str) -> None:
        self._connection = connection
        self._reader = reader
        self._deadline = deadline
        self._shown = shown

    @property
    def local_address(self) -> str:
        """The address of this machine on the way to the server."""
        return str(self._connection.sock.getsockname()[0])

    def send(self, message: bytes) -> None:
        self._send(_BINARY, message)

    def receive(self) -> bytes:
        """The next message."""
        message = bytearray()
        while True:
            final, kind, payload = self._frame()
            if kind == _CLOSE:
                raise UnreachableError(f"{self._shown} ended the exchange{_reason(payload)}")
            if kind == _PING:
                self._send(_PONG, payload)
            elif kind in (_CONTINUATION, _TEXT, _BINARY):
                message += payload
                if len(message) > _LONGEST:
                    raise OperatorError(f"{self._shown} sends a message of more than {_LONGEST} bytes")
                if final:
                    return bytes(message)

    def close(self) -> None:
        try:
            self._send(_CLOSE, struct.pack("!H", 1000))
        except (OSError, UnreachableError):
            # The other side has gone before.
            pass
        finally:
            # Closes the reader, too, which is that of its response.
            self._connection.close()

    def _frame(self) -> tuple[bool, int, bytes]:
        first, second = self._read(2)
        if second & 0x80 or first & 0x70:
            raise OperatorError(f"{self._shown} sends frames that are none of a WebSocket server")
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", self._read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self._read(8))
        if length > _LONGEST:
            raise OperatorError(f"{self._shown} sends a message of {length} bytes, more than the {_LONGEST} that are taken")
        return bool(first & 0x80), first & 0x0F, self._read(length)

    def _read(self, size: int) -> bytes:
        self._hurry()
        try:
            found = self._reader.read(size)
        except TimeoutError:
            raise UnreachableError(f"{self._shown} did not answer in time") from None
        except OSError as error:
            raise UnreachableError(f"the connection to {self._shown} was lost: {error}") from None
        if len(found) < size:
            raise UnreachableError(f"{self._shown} closed the connection in the middle of the exchange")
        return found

    def _send(self, kind: int, payload: bytes) -> None:
        mask = os.urandom(4)
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | length)
        elif length < 1 << 16:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, length)
        self._hurry()
        try:
            self._connection.sock.sendall(head + mask + masked(payload, mask))
        except OSError as error:
            raise UnreachableError(f"the connection to {self._shown} was lost: {error}") from None

    def _hurry(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise UnreachableError(f"the exchange with {self._shown} took too long")
        self._connection.sock.settimeout(left)


def masked(payload: bytes, mask: bytes) -> bytes:
    """As clients must send: each byte with one of the mask's."""
    length = len(payload)
    repeated = (mask * (length // 4 + 1))[:length]
    return (int.from_bytes(payload) ^ int.from_bytes(repeated)).to_bytes(length)


def connect(url: str, *, ca: bytes, headers: Mapping[str, str], environment: Mapping[str, str], timeout: float) -> WebSocket:
    """A WebSocket at an address of the form https://…; without ``ca`` the authorities of the machine are trusted."""
    deadline = time.monotonic() + timeout
    connection, path = dial(url, ca=ca, environment=environment, timeout=timeout)
    key = b64encode(os.urandom(16)).decode()
    fields = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key, **headers}
    shown = proxies.redacted(url)
    response = answer(connection, path, fields, shown)
    if response.status != 101:
        said = response.read(_SHOWN).decode(errors="replace").strip()
        connection.close()
        raise RefusedError(f"{shown} refuses the registration (status {response.status}): {said or response.reason}", response.status)
    expected = b64encode(hashlib.sha1((key + _MAGIC).encode(), usedforsecurity=False).digest()).decode()
    if response.getheader("Sec-WebSocket-Accept", "") != expected:
        connection.close()
        raise OperatorError(f"{shown} does not speak WebSocket: its answer to the handshake is not the right one")
    # What came behind the head of the answer is in the response's buffer, so that everything is read through it.
    return WebSocket(connection, response.fp, deadline, shown)


def dial(url: str, *, ca: bytes, environment: Mapping[str, str], timeout: float) -> tuple[http.client.HTTPConnection, str]:
    """A connection that is not open yet, and the path to ask for."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 443
    except ValueError:
        host, port, parts = "", 0, urlsplit("")
    if parts.scheme not in ("https", "wss") or not host:
        raise OperatorError(f'the registration address "{proxies.redacted(url)}" is not of the form https://host:port/path')
    context = tls.client_context(proxies.redacted(url), ca=ca)
    proxy_url = proxies.proxy_for(host, environment, port)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not proxy_url:
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=context), path
    proxy = proxies.parse(proxy_url, proxies.redacted(url))
    connection = http.client.HTTPSConnection(proxy.host, proxy.port, timeout=timeout, context=context)
    connection.set_tunnel(f"[{host}]" if ":" in host else host, port, headers=proxy.headers)
    return connection, path


def answer(connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str], shown: str) -> http.client.HTTPResponse:
    import ssl

    try:
        connection.request("GET", path, headers=dict(headers))
        return connection.getresponse()
    except ssl.SSLCertVerificationError as error:
        connection.close()
        raise UntrustedError(f"{shown} cannot be trusted: {_distrust(error)}") from None
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise UnreachableError(f"cannot reach {shown}: {getattr(error, 'strerror', '') or error}") from None


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    from slipway.kube.transport import distrust

    return distrust(error)


def _reason(payload: bytes) -> str:
    said = payload[2:].decode(errors="replace").strip()
    return f": {said}" if said else " before it was done"
