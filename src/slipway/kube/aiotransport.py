"""HTTP to one API server from an event loop: TLS, proxies, tokens that are renewed in their file, and what failures mean.

aiohttp takes a fifth of a second to import, so only programs that run for long import this module.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from slipway import __version__
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls
from slipway.kube import errors, proxies
from slipway.kube.errors import SilentError, UnreachableError, UntrustedError
from slipway.kube.transport import distrust

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp.connector import AddrInfoType

    from slipway.kube.connection import Connection

_log = logging.getLogger("slipway.kube")

# How old a token may be before its file is read again, as client-go has it.
_TOKEN_AGE = 60.0
# aiohttp stops reading from the socket when twice this is waiting; lists and watches come in pieces that are larger than its default.
_BUFFER = 1 << 18
# How long the other side of a websocket has to answer that it is closed.
_CLOSING = 2.0
# For how many seconds a connection that nobody uses is kept: kube-apiserver ends one after 90.  aiohttp's 15 are less than lie between two
# looks at a workload cluster, and to make a connection takes several times as long as to ask.
_IDLE = 60.0
# Seconds until the first question, between questions, and how many may stay without an answer.
_KEEP_ALIVE = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 4}


class Answer(NamedTuple):
    status: int
    content: bytes
    retry_after: str
    """The header of that name: a number of seconds where a Kubernetes API server sent it."""


class AsyncTransport:
    """Sends requests to the server of a connection.  It belongs to the event loop in which it is first used.

    ``largest`` is how many bytes an answer, or a line of one that goes on for long, may have (0: any number).
    """

    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str,
        timeout: float,
        largest: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._connection = connection
        self._timeout = timeout
        self._largest = largest
        try:
            address = urlsplit(connection.server if "://" in connection.server else f"https://{connection.server}")
            port = address.port or (80 if address.scheme == "http" else 443)
        except ValueError:
            raise OperatorError(
                f'the server "{connection.shown}" is not an address of the form https://host:port, port 1 to 65535'
            ) from None
        self._host = address.hostname or ""
        if address.scheme not in ("https", "http") or not self._host:
            raise OperatorError(f'the server "{connection.shown}" is not an address of the form https://host:port')
        bracketed = f"[{self._host}]" if ":" in self._host else self._host
        self.host = f"{bracketed}:{port}"
        self._base = f"{address.scheme}://{self.host}{address.path.rstrip('/')}"
        environment = os.environ if environment is None else environment
        proxy_url = connection.proxy_url or (proxies.proxy_for(self._host, environment, port) if address.scheme == "https" else None)
        self._proxy = proxies.parse(proxy_url, connection.shown) if proxy_url else None
        self._context = (
            tls.client_context(
                connection.shown,
                ca=connection.ca,
                certificate=connection.client_certificate,
                key=connection.client_key,
                insecure=connection.insecure,
            )
            if address.scheme == "https"
            else None
        )
        # Compression would cost both sides more time than the network takes: the server is near.
        agent = user_agent if "/" in user_agent else f"{user_agent}/{__version__}"
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": agent}
        self._token = TokenSource(connection.token, connection.token_file)
        self._session: aiohttp.ClientSession | None = None
        self._sockets: aiohttp.ClientSession | None = None

    async def request(self, method: str, path: str, body: bytes | None, content_type: str, *, accept: str = "") -> Answer:
        """The whole of the answer; ``accept`` asks for another form than the object as it is."""
        try:
            async with self._send(method, path, body, content_type, aiohttp.ClientTimeout(total=self._timeout), accept) as response:
                content = await (self._bounded(response) if self._largest else response.read())
                self._seen(response.status)
                return Answer(response.status, content, response.headers.get("Retry-After", ""))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self.failure(error, f"{method} {path}", self._timeout) from error

    async def _bounded(self, response: aiohttp.ClientResponse) -> bytes:
        pieces, size = [], 0
        while piece := await response.content.readany():
            pieces.append(piece)
            size += len(piece)
            self.check(size)
        return b"".join(pieces)

    def check(self, size: int) -> None:
        """An error where so many bytes are more than this server may send at once."""
        if self._largest and size > self._largest:
            raise UnreachableError(f"{self._connection.shown} sends more than {self._largest >> 20} MiB at once, which is not read")

    async def open(self, path: str, *, silence: float, accept: str = "") -> aiohttp.ClientResponse:
        """The answer to a GET whose body goes on for long; ``silence`` is how long there may be nothing to read (0: for ever)."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=silence or None)
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._send("GET", path, None, "", limits, accept)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self.failure(error, f"GET {path}", self._timeout) from error
        self._seen(response.status)
        return response

    async def some(self, response: aiohttp.ClientResponse, what: str, silence: float) -> bytes:
        """What has come of the body; nothing at its end."""
        try:
            return await response.content.readany()
        except TimeoutError as error:
            raise SilentError(f"{self._connection.shown} said nothing for {silence:g}s ({what})") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self.failure(error, what, silence) from error

    async def websocket(self, path: str, protocol: str) -> aiohttp.ClientWebSocketResponse:
        """A websocket of one subprotocol; an ApiError with the server's own words where it opens none."""
        if self._sockets is None:
            # aiohttp drops the body of an answer that is no websocket: what the server says in it is asked for by a session of its own.
            self._sockets = aiohttp.ClientSession(
                connector=self._opened().connector,
                connector_owner=False,
                headers={**self._headers, "Accept": "*/*"},
                trust_env=False,
                raise_for_status=_refuse_all_but_websockets,
            )
        proxy = self._proxy
        # Older versions of aiohttp do not know the name, and few kubeconfigs have one.
        name: dict[str, Any] = {"server_hostname": self._connection.tls_server_name} if self._connection.tls_server_name else {}
        token = self._token.current()
        try:
            async with asyncio.timeout(self._timeout):
                socket: aiohttp.ClientWebSocketResponse = await self._sockets.ws_connect(
                    URL(self._base + path, encoded=True),
                    protocols=[protocol],
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSING),
                    headers={"Authorization": f"Bearer {token}"} if token else {},
                    proxy=URL.build(scheme="http", host=proxy.host, port=proxy.port) if proxy else None,
                    proxy_headers=proxy.headers if proxy else None,
                    **name,
                )
        except errors.UnauthorizedError:
            self._seen(401)
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self.failure(error, f"websocket {path}", self._timeout) from error
        if socket.protocol != protocol:
            await socket.close()
            raise UnreachableError(f"{self._connection.shown} opens a websocket, and does not speak {protocol} in it")
        return socket

    async def close(self) -> None:
        for session in (self._sockets, self._session):
            if session is not None:
                await session.close()
        self._sockets = self._session = None

    def failure(self, error: Exception, what: str, seconds: float) -> UnreachableError:
        """What an exception of aiohttp means to the person who reads about it."""
        server = self._connection.shown
        through = f" through the proxy {self._proxy.shown}" if self._proxy else ""
        if isinstance(error, aiohttp.ClientConnectorCertificateError) and isinstance(error.certificate_error, ssl.SSLCertVerificationError):
            return UntrustedError(f"{server} cannot be trusted: {distrust(error.certificate_error)}")
        if isinstance(error, TimeoutError):
            return UnreachableError(f"{server} did not answer within {seconds:g}s{through} ({what})")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return UnreachableError(
                f"cannot reach {server}{through}: the proxy answered with status {error.status} {error.message}".rstrip()
            )
        if isinstance(error, aiohttp.ClientConnectorError):
            cause = error.os_error
            if isinstance(cause, socket.gaierror):
                return UnreachableError(f'cannot reach {server}{through}: the name "{self._host}" has no address ({cause.strerror})')
            if isinstance(cause, ssl.SSLError):
                return UnreachableError(f"no TLS connection to {server}{through}: {cause.reason or cause}")
            return UnreachableError(f"cannot reach {server}{through}: {os.strerror(cause.errno) if cause.errno else cause}")
        if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | ConnectionResetError):
            return UnreachableError(f"{server} closed the connection{through} without an answer ({what})")
        if isinstance(error, aiohttp.ClientResponseError):
            return UnreachableError(f"{server} answered with something that is not HTTP{through}: {error.message}")
        return UnreachableError(f"cannot reach {server}{through}: {getattr(error, 'strerror', '') or error}")

    def _send(
        self, method: str, path: str, body: bytes | None, content_type: str, timeout: aiohttp.ClientTimeout, accept: str
    ) -> aiohttp.client._RequestContextManager:
        headers = {"Content-Type": content_type} if body is not None else {}
        if accept:
            headers["Accept"] = accept
        if token := self._token.current():
            headers["Authorization"] = f"Bearer {token}"
        proxy = self._proxy
        return self._opened().request(
            method,
            URL(self._base + path, encoded=True),
            data=body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            server_hostname=self._connection.tls_server_name or None,
            proxy=URL.build(scheme="http", host=proxy.host, port=proxy.port) if proxy else None,
            proxy_headers=proxy.headers if proxy else None,
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Watches hold a connection each, and workers bound the rest: a limit of its own would only make a dead-lock possible.
            context = self._context if self._context is not None else True
            connector = aiohttp.TCPConnector(limit=0, ssl=context, socket_factory=kept_alive, keepalive_timeout=_IDLE)
            self._session = aiohttp.ClientSession(
                connector=connector, headers=self._headers, auto_decompress=True, read_bufsize=_BUFFER, trust_env=False
            )
        return self._session

    def _seen(self, status: int) -> None:
        if status == 401:
            self._token.refused()


async def _refuse_all_but_websockets(response: aiohttp.ClientResponse) -> None:
    if response.status != 101:
        raise errors.failure(response.status, await response.read())


def kept_alive(address: AddrInfoType) -> socket.socket:
    """A socket whose other side is asked whether it is there: a virtual address that moved answers for a connection that it does not know.

    Without that a watch is silent until somebody loses patience, as nothing comes from a host that gave the address away before it ended.
    """
    made = socket.socket(family=address[0], type=address[1], proto=address[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE.items():
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


class TokenSource:
    """A bearer token; one that lives in a file is read again from time to time, and at once when the server refused it."""

    def __init__(self, token: str, path: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = token
        self._path = path
        self._clock = clock
        self._read = clock() if token else float("-inf")

    def current(self) -> str:
        if self._path and self._clock() - self._read >= _TOKEN_AGE:
            try:
                with open(self._path, encoding="utf-8", errors="replace") as file:
                    self._token = file.read().strip() or self._token
            except OSError as error:
                # The token at hand may still be good; the server says when it is not.
                _log.error("cannot read the token of the API server again from %s: %s", self._path, error.strerror or error)
            self._read = self._clock()
        return self._token

    def refused(self) -> None:
        self._read = float("-inf")
