"""A client that hides nothing: every answer with its code, its body as it came, and its headers."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from slipway.credentials.tls import client_context
from slipway.kube.connection import Connection

Manifest = dict[str, Any]

DEADLINE = 30.0
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


class Answer(NamedTuple):
    """What the server said."""

    code: int
    body: Any
    headers: dict[str, str]

    @property
    def summary(self) -> tuple[int, str, str]:
        """Code, reason and message of a Status."""
        return self.code, self.body.get("reason", ""), self.body.get("message", "")

    def ok(self) -> Any:
        assert 200 <= self.code < 300, self.body
        return self.body


class Event(NamedTuple):
    type: str
    object: Manifest

    @property
    def name(self) -> str:
        name: str = self.object["metadata"]["name"]
        return name


class Watcher:
    """Events of a watch, as they come."""

    def __init__(self, answer: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> None:
        self._answer, self._connection = answer, connection

    def next(self, *, bookmarks: bool = False) -> Event:
        """The next event, without bookmarks unless they are asked for."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            line = self._answer.readline()
            assert line, "the watch ended"
            decoded = json.loads(line)
            if decoded["type"] != "BOOKMARK" or bookmarks:
                return Event(decoded["type"], decoded["object"])
        raise AssertionError(f"no event within {DEADLINE} s")

    def take(self, count: int) -> list[tuple[str, str]]:
        """The types and names of the next events."""
        return [(event.type, event.name) for event in (self.next() for _ in range(count))]

    def ended(self) -> bool:
        return not self._answer.readline()


class Api:
    """Requests as one user."""

    def __init__(self, connection: Connection, *, user_agent: str = "conformance") -> None:
        self.connection = connection
        self._user_agent = user_agent
        self._kept: http.client.HTTPConnection | None = None

    def as_token(self, token: str) -> Api:
        """The same server as somebody else; nobody for an empty token."""
        return Api(Connection(server=self.connection.server, ca=self.connection.ca, token=token), user_agent=self._user_agent)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        **query: Any,
    ) -> Answer:
        headers = {"Accept": accept, "User-Agent": self._user_agent}
        if self.connection.token:
            headers["Authorization"] = f"Bearer {self.connection.token}"
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers["Content-Type"] = content_type
        for attempt in (1, 2):
            reused = self._kept is not None
            connection = self._kept or self._connect()
            self._kept = connection
            try:
                connection.request(method, _address(path, query), data, headers)
                answer = connection.getresponse()
                text = answer.read()
                break
            except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                # The server may close a connection that was kept; a new one is no excuse.
                self._kept = None
                if attempt == 2 or not reused:
                    raise
        return Answer(answer.status, _decoded(text), {name.lower(): value for name, value in answer.getheaders()})

    def get(self, path: str, **query: Any) -> Answer:
        return self.request("GET", path, **query)

    def post(self, path: str, body: Any, **query: Any) -> Answer:
        return self.request("POST", path, body, **query)

    def put(self, path: str, body: Any, **query: Any) -> Answer:
        return self.request("PUT", path, body, **query)

    def patch(self, path: str, body: Any, content_type: str = MERGE, **query: Any) -> Answer:
        return self.request("PATCH", path, body, content_type=content_type, **query)

    def apply(self, path: str, body: Any, manager: str = "tester", *, force: bool = False, **query: Any) -> Answer:
        extra = {"force": "true"} if force else {}
        return self.patch(path, body, APPLY, fieldManager=manager, **extra, **query)

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return self.request("DELETE", path, body, **query)

    @contextmanager
    def watch(self, path: str, **query: Any) -> Iterator[Watcher]:
        connection = self._connect()
        headers = {"Accept": query.pop("accept", "application/json"), "User-Agent": self._user_agent}
        if self.connection.token:
            headers["Authorization"] = f"Bearer {self.connection.token}"
        try:
            connection.request("GET", _address(path, {"watch": "true", **query}), None, headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield Watcher(answer, connection)
        finally:
            connection.close()

    def eventually(self, path: str, holds: Any, **query: Any) -> Answer:
        """Ask until the answer holds."""
        end = time.monotonic() + DEADLINE
        while True:
            answer = self.get(path, **query)
            if holds(answer):
                return answer
            assert time.monotonic() < end, f"{path} did not become what was awaited: {answer.body}"
            time.sleep(0.02)

    def gone(self, path: str) -> None:
        """Wait until there is nothing."""
        self.eventually(path, lambda answer: answer.code == 404)

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.connection.server)
        assert parts.hostname is not None
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=DEADLINE)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=DEADLINE, context=self._tls())

    def _tls(self) -> ssl.SSLContext:
        ours = self.connection
        return client_context(ours.server, ca=ours.ca, certificate=ours.client_certificate, key=ours.client_key)


def _address(path: str, query: Manifest) -> str:
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")


def without(manifest: Manifest, *fields: str) -> Manifest:
    """An object without the fields that differ from run to run, and without its managedFields."""
    volatile = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", *fields}
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in volatile}
    return {**manifest, "metadata": metadata}


def owners(manifest: Manifest) -> dict[str, Any]:
    """Who owns what: ``manager operation subresource`` to FieldsV1."""
    return {
        f"{entry['manager']} {entry['operation']} {entry.get('subresource', '')}".strip(): entry["fieldsV1"]
        for entry in manifest["metadata"].get("managedFields", [])
    }
