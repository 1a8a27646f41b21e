"""A client of etcd that blocks: members, health and snapshots, asked over etcd's JSON gateway with mutual TLS.

What can be asked is :mod:`etcdapi`'s, and what is asked is decided elsewhere; here is how it is asked, and which answers are worth another
try.
"""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from slipway.credentials import tls
from slipway.workload import etcdapi, etcdsnapshot
from slipway.workload.etcdapi import EtcdError, EtcdUnreachableError
from slipway.workload.etcdsnapshot import SnapshotStream

if TYPE_CHECKING:
    import http.client
    import ssl
    from collections.abc import Callable, Iterator, Sequence

    from slipway.workload.etcdapi import Call, EtcdAlarm, EtcdMember, EtcdStatus
    from slipway.workload.etcdsnapshot import Piece

T = TypeVar("T")

_PAUSE = 0.15
# A member's id is made of its URL and the second; one that was removed within the second is "not found" when it is added again.
_SAME_ID = 2.0


class EtcdClient:
    """Asks the endpoints in turn.

    What is transient (an election, a cluster that has just changed, a member that restarts) is asked again until
    ``patience`` seconds have passed, and ``on_wait`` is told once why.  Every request has a connection of its own, so
    that a client can be used from several threads.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        ca: bytes,
        certificate: bytes,
        key: bytes,
        timeout: float = 5.0,
        patience: float = 120.0,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        self.endpoints = tuple(endpoints)
        self._context = tls.client_context("etcd", ca=ca, certificate=certificate, key=key)
        self._timeout = timeout
        self._patience = patience
        self._on_wait = on_wait

    def members(self, *, patience: float | None = None) -> list[EtcdMember]:
        return self._ask(etcdapi.members(), patience)

    def cluster_id(self) -> int:
        return self._ask(etcdapi.cluster_id())

    def sync(self) -> None:
        """Go on with the endpoints of all started voters, by the cluster's own list."""
        found = [url for member in self.members() if member.name and not member.is_learner for url in member.client_urls]
        self.endpoints = tuple(found) or self.endpoints

    def add_learner(self, peer_url: str) -> tuple[int, list[EtcdMember]]:
        """The id of the new member, and all members.  One that has the peer URL already is not added again."""
        deadline = time.monotonic() + _SAME_ID
        while True:
            try:
                return self._ask(etcdapi.add_learner(peer_url))
            except EtcdError as error:
                if error.says_peer_exists:
                    members = self.members()
                    return next(member.id for member in members if peer_url in member.peer_urls), members
                if not error.says_not_found or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)

    def promote(self, member_id: int, *, patience: float | None = None) -> list[EtcdMember]:
        """Make a learner a voter; EtcdError where it has not caught up yet.  A voter stays one."""
        try:
            return self._ask(etcdapi.promote(member_id), patience)
        except EtcdError as error:
            # An answer that was lost may have been a success.
            if error.says_not_a_learner:
                return self.members(patience=patience)
            raise

    def remove(self, member_id: int) -> list[EtcdMember]:
        """Take a member out; one that is gone already is fine.  The members that stay."""
        try:
            return self._ask(etcdapi.remove(member_id))
        except EtcdError as error:
            if error.says_not_found:
                return self.members()
            raise

    def status(self, endpoint: str, *, timeout: float | None = None) -> EtcdStatus:
        """How the member behind an endpoint is, asked once."""
        return self._request(endpoint, etcdapi.status(), timeout)

    def alarms(self) -> list[EtcdAlarm]:
        return self._ask(etcdapi.alarms())

    def statuses(self) -> dict[str, EtcdStatus | EtcdError]:
        """Every endpoint's status, or why there is none; all are asked once and at once."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=len(self.endpoints) or 1) as pool:
            return dict(zip(self.endpoints, pool.map(self._status_or_error, self.endpoints), strict=True))

    def unhealthy(self) -> dict[str, str]:
        """Endpoint → what is wrong with it; empty where all is well."""
        problems = {}
        for endpoint, status in self.statuses().items():
            if isinstance(status, EtcdError):
                problems[endpoint] = status.message
            elif status.errors:
                problems[endpoint] = f"{endpoint}: {', '.join(status.errors)}"
        return problems

    def snapshot(self, write: Callable[[bytes], object]) -> int:
        """Stream the database of the first endpoint that answers to ``write``; its size.

        What came is checked against the size that etcd announced and the digest that it appends; the digest is part of
        what is written, as ``etcdutl snapshot restore`` wants it.
        """
        failures = []
        for endpoint in self.endpoints:
            blobs = self._stream(endpoint)
            try:
                first = next(blobs, None)
            except EtcdError as error:
                failures.append(error)
                continue
            if first is not None:
                received = SnapshotStream(endpoint)
                for piece in chain([first], blobs):
                    received.add(piece)
                    write(piece.blob)
                return received.ended()
            failures.append(EtcdError(f"{endpoint}: the snapshot is empty"))
        raise _worst(failures)

    def move_leader(self, endpoint: str, member_id: int) -> None:
        """Ask the leader, which is behind ``endpoint``, to make another voter the leader."""
        self._request(endpoint, etcdapi.move_leader(member_id))

    def _ask(self, call: Call[T], patience: float | None = None) -> T:
        """Ask the endpoints in turn, again and again while answers are transient."""
        deadline = time.monotonic() + (self._patience if patience is None else patience)
        told = False
        while True:
            failures = []
            for endpoint in self.endpoints:
                try:
                    answer = self._request(endpoint, call)
                    # One that is switched off costs the whole timeout: the next question goes first to who has answered.
                    self.endpoints = (endpoint, *(other for other in self.endpoints if other != endpoint))
                    return answer
                except EtcdError as error:
                    failures.append(error)
                    if not error.transient:
                        raise
            worst = _worst(failures)
            if time.monotonic() + _PAUSE >= deadline:
                raise worst
            if not told and self._on_wait is not None:
                self._on_wait(worst.message)
                told = True
            time.sleep(_PAUSE)

    def _status_or_error(self, endpoint: str) -> EtcdStatus | EtcdError:
        try:
            return self.status(endpoint)
        except EtcdError as error:
            return error

    def _request(self, endpoint: str, call: Call[T], timeout: float | None = None) -> T:
        with _Exchange(endpoint, call.path, call.body, self._context, timeout or self._timeout) as response:
            content = response.read()
            return etcdapi.understood(call, endpoint, response.status, content)

    def _stream(self, endpoint: str) -> Iterator[Piece]:
        with _Exchange(endpoint, "maintenance/snapshot", {}, self._context, max(self._timeout, 30.0)) as response:
            for line in response:
                if line.strip():
                    yield etcdsnapshot.piece(endpoint, line, response.status)


class _Exchange:
    """One request and its answer; what goes wrong on the way is an EtcdError that names the endpoint."""

    def __init__(self, endpoint: str, path: str, body: dict[str, Any], context: ssl.SSLContext, timeout: float) -> None:
        self._endpoint = endpoint
        self._path = path
        self._body = body
        self._context = context
        self._timeout = timeout
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> http.client.HTTPResponse:
        import http.client

        import msgspec

        url = urlsplit(self._endpoint)
        if url.scheme == "http":
            self._connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=self._timeout)
        else:
            self._connection = http.client.HTTPSConnection(url.hostname or "", url.port, timeout=self._timeout, context=self._context)
        try:
            self._connection.request("POST", f"/v3/{self._path}", msgspec.json.encode(self._body), {"Content-Type": "application/json"})
            return self._connection.getresponse()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        import http.client
        import ssl

        if self._connection is not None:
            self._connection.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            raise EtcdError(
                f"{self._endpoint}: its certificate is not trusted: {error.verify_message}; it must be signed by this cluster's etcd CA, "
                "and the clocks of both machines must be right"
            ) from error
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            raise EtcdError(f"{self._endpoint}: it refused this node's client certificate: {error.reason or error}") from error
        if isinstance(error, OSError | http.client.HTTPException):
            raise EtcdUnreachableError(f"{self._endpoint}: {_reason(error)}") from error


def _worst(failures: Sequence[EtcdError]) -> EtcdError:
    """The failure that says most: an answer before silence."""
    if not failures:
        return EtcdError("there is no etcd endpoint to ask")
    return next((error for error in failures if not isinstance(error, EtcdUnreachableError)), failures[0])


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
