"""HTTP to one API server: TLS, proxies, keep-alive connections that several threads share, and what failures mean.

http.client and ssl take a while to import, so everything that needs them imports this module late.
"""

from __future__ import annotations

import http.client
import os
import select
import socket
import ssl
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from slipway import __version__
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls
from slipway.kube import proxies
from slipway.kube.errors import UnreachableError, UntrustedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.kube.connection import Connection

# More would not make anything faster: phases write about thirty objects at once.
_IDLE_CONNECTIONS = 8
# Bytes of an answer of somebody who was not verified, and may send without end: more than any object can have.
_FROM_STRANGERS = 4 << 20
_LOST = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ConnectionAbortedError, ssl.SSLEOFError)


class Answer:
    """A response whose body is still to be read."""

    def __init__(self, wire: _Wire, response: http.client.HTTPResponse) -> None:
        self.wire = wire
        self.response = response
        self.status = response.status


class Transport:
    """Sends requests to the server of a connection."""

    def __init__(self, connection: Connection, *, timeout: float, environment: Mapping[str, str] | None = None, program: str = "") -> None:
        self._connection = connection
        self._timeout = timeout
        try:
            address = urlsplit(connection.server if "://" in connection.server else f"https://{connection.server}")
            self._port = address.port or 443
        except ValueError:
            raise OperatorError(
                f'the server "{connection.shown}" is not an address of the form https://host:port, port 1 to 65535'
            ) from None
        self._host = address.hostname or ""
        self._prefix = address.path.rstrip("/")
        if address.scheme != "https" or not self._host:
            raise OperatorError(f'the server "{connection.shown}" is not an address of the form https://host:port')
        environment = os.environ if environment is None else environment
        proxy_url = connection.proxy_url or proxies.proxy_for(self._host, environment, self._port)
        self._proxy = proxies.parse(proxy_url, connection.shown) if proxy_url else None
        self._context = tls.client_context(
            connection.shown,
            ca=connection.ca,
            certificate=connection.client_certificate,
            key=connection.client_key,
            insecure=connection.insecure,
        )
        # What stands before the slash becomes the manager of the fields that are written: the same as with the real kubeadm.
        self._headers = {"Accept": "application/json", "User-Agent": f"{program or 'kubeadm'}/{__version__} slipway"}
        if connection.token:
            self._headers["Authorization"] = f"Bearer {connection.token}"
        self._idle: list[_Wire] = []
        self._lock = threading.Lock()

    def request(self, method: str, path: str, body: bytes | None, content_type: str, timeout: float | None) -> tuple[int, bytes]:
        """The status and the whole body of the answer."""
        answer = self.open(method, path, body, content_type, timeout)
        try:
            content = answer.response.read(_FROM_STRANGERS + 1) if self._connection.insecure else answer.response.read()
        except (OSError, http.client.HTTPException) as error:
            answer.wire.close()
            raise self._failure(error, f"{method} {path}", timeout) from None
        if self._connection.insecure and len(content) > _FROM_STRANGERS:
            answer.wire.close()
            raise OperatorError(
                f"{self._connection.shown} answers with more than {_FROM_STRANGERS >> 20} MiB, and it was not verified who it is"
            )
        self._keep(answer)
        return answer.status, content

    def open(self, method: str, path: str, body: bytes | None, content_type: str, timeout: float | None) -> Answer:
        """Send a request and read the head of its answer."""
        headers = {**self._headers, "Content-Type": content_type} if body is not None else self._headers
        while True:
            wire, reused = self._wire(timeout)
            try:
                wire.request(method, self._prefix + path, body=body, headers=headers)
                return Answer(wire, wire.getresponse())
            except _LOST as error:
                wire.close()
                # The server may close a connection that was idle just when a request is on its way.  Asking again is safe for a
                # question; whether a change was made is not known.
                if not reused or method != "GET":
                    raise self._failure(error, f"{method} {path}", timeout) from None
            except (OSError, http.client.HTTPException) as error:
                wire.close()
                raise self._failure(error, f"{method} {path}", timeout) from None

    def lost(self, error: Exception, what: str) -> OperatorError:
        return self._failure(error, what, None)

    def close(self) -> None:
        with self._lock:
            wires, self._idle = self._idle, []
        for wire in wires:
            wire.close()

    def _wire(self, timeout: float | None) -> tuple[_Wire, bool]:
        """A connection that nobody uses, and whether it was used before."""
        seconds = self._timeout if timeout is None else timeout
        while True:
            with self._lock:
                wire = self._idle.pop() if self._idle else None
            if wire is None:
                break
            if wire.sock is not None and not _readable(wire.sock):
                wire.sock.settimeout(seconds)
                return wire, True
            # Nothing was asked, so what there is to read is the server's farewell.
            wire.close()
        server_name = self._connection.tls_server_name or self._host
        if self._proxy is None:
            return _Wire(self._host, self._port, seconds, self._context, server_name), False
        wire = _Wire(self._proxy.host, self._proxy.port, seconds, self._context, server_name)
        wire.set_tunnel(f"[{self._host}]" if ":" in self._host else self._host, self._port, headers=self._proxy.headers)
        return wire, False

    def _keep(self, answer: Answer) -> None:
        if answer.response.will_close or answer.wire.sock is None:
            answer.wire.close()
            return
        with self._lock:
            if len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(answer.wire)
                return
        answer.wire.close()

    def _failure(self, error: Exception, what: str, timeout: float | None) -> OperatorError:
        server = self._connection.shown
        through = f" through the proxy {self._proxy.shown}" if self._proxy else ""
        if isinstance(error, ssl.SSLCertVerificationError):
            return UntrustedError(f"{server} cannot be trusted: {distrust(error)}")
        if isinstance(error, TimeoutError):
            seconds = self._timeout if timeout is None else timeout
            return UnreachableError(f"{server} did not answer within {seconds:g}s{through} ({what})")
        if isinstance(error, ssl.SSLError):
            return UnreachableError(f"no TLS connection to {server}{through}: {error.reason or error}")
        if isinstance(error, socket.gaierror):
            return UnreachableError(f'cannot reach {server}{through}: the name "{self._host}" has no address ({error.strerror})')
        if isinstance(error, _LOST):
            return UnreachableError(f"{server} closed the connection{through} without an answer ({what})")
        if isinstance(error, http.client.HTTPException):
            return UnreachableError(f"{server} answered with something that is not HTTP{through}: {type(error).__name__} {error}".rstrip())
        return UnreachableError(f"cannot reach {server}{through}: {getattr(error, 'strerror', '') or error}")


class _Wire(http.client.HTTPConnection):
    """An HTTP connection over TLS whose server may be verified under another name than the one that is dialled."""

    def __init__(self, host: str, port: int, timeout: float, context: ssl.SSLContext, server_name: str) -> None:
        super().__init__(host, port, timeout=timeout)
        self._tls = context
        self._server_name = server_name

    def connect(self) -> None:
        super().connect()
        self.sock: ssl.SSLSocket = self._tls.wrap_socket(self.sock, server_hostname=self._server_name)


def _readable(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def distrust(error: ssl.SSLCertVerificationError) -> str:
    """Why a certificate was refused, and what to look at."""
    from datetime import UTC, datetime

    clock = f"the clock of this machine says {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if error.verify_code == _EXPIRED:
        return f"its certificate has expired; renew it, or if it is valid, set the clock: {clock}"
    if error.verify_code == _NOT_YET_VALID:
        return f"its certificate is not valid yet: the clocks of the two machines differ; {clock}"
    if error.verify_code in _OTHER_NAME:
        return f"its certificate is for other names: {error.verify_message.rstrip('.')}"
    return f"its certificate is not signed by the CA of the cluster ({error.verify_message})"


# Of OpenSSL's x509_vfy.h.
_NOT_YET_VALID, _EXPIRED, _OTHER_NAME = 9, 10, (62, 64)
