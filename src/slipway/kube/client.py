"""A blocking client of the Kubernetes API: objects are plain dictionaries, and every failure is one of :mod:`slipway.kube.errors`.

Safe to use from several threads.  The modules of HTTP and TLS are imported with the first client.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import msgspec

from slipway.api.cluster import kinds
from slipway.api.machinery.version import Version
from slipway.kube import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.connection import Connection


JSON = "application/json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
# How many objects of a list come in one answer.
_PAGE = 500


class Event(NamedTuple):
    """A change that a watch saw: ADDED, MODIFIED or DELETED."""

    type: str
    object: Manifest


class Client:
    """Talks to one API server as one user."""

    def __init__(
        self, connection: Connection, *, timeout: float = 10.0, environment: Mapping[str, str] | None = None, program: str = ""
    ) -> None:
        from slipway.kube.transport import Transport

        self.connection = connection
        self._transport = Transport(connection, timeout=timeout, environment=environment, program=program)

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """The object; None where there is none."""
        try:
            return self._ask("GET", kinds.path(kinds.named(api_version, kind), namespace, name))
        except errors.NotFoundError:
            return None

    def list(
        self,
        api_version: str,
        kind: str,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> list[Manifest]:
        """The objects of a namespace, or of all of them, each with its apiVersion and kind."""
        path, found, token = kinds.path(kinds.named(api_version, kind), namespace), [], ""
        while True:
            query = {**_selectors(labels, fields), "limit": str(_PAGE), **({"continue": token} if token else {})}
            answer = self._ask("GET", f"{path}?{urlencode(query)}")
            found += [{"apiVersion": api_version, "kind": kind, **item} for item in answer.get("items") or ()]
            token = (answer.get("metadata") or {}).get("continue", "")
            if not token:
                return found

    def create(self, manifest: Manifest) -> Manifest:
        return self._ask("POST", _path(manifest, named=False), manifest)

    def update(self, manifest: Manifest) -> Manifest:
        return self._ask("PUT", _path(manifest, named=True), manifest)

    def patch(
        self, api_version: str, kind: str, name: str, namespace: str, patch: object, *, content_type: str = STRATEGIC_MERGE
    ) -> Manifest:
        return self._ask("PATCH", kinds.path(kinds.named(api_version, kind), namespace, name), patch, content_type)

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "", *, propagation: str = "") -> bool:
        """Whether there was one to delete.  ``propagation`` is Background, Foreground or Orphan."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation} if propagation else None
        try:
            self._ask("DELETE", kinds.path(kinds.named(api_version, kind), namespace, name), options)
        except errors.NotFoundError:
            return False
        return True

    def watch(
        self,
        api_version: str,
        kind: str,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        timeout: float,
        silence: float = 0.0,
    ) -> Iterator[Event]:
        """What is there, as ADDED, and then every change, until ``timeout`` seconds have passed or the server ends the watch.

        With ``silence``, bookmarks are asked for and are among the events, and a SilentError says that nothing came for so many seconds.
        """
        deadline = time.monotonic() + timeout
        query = {**_selectors(labels, fields), "watch": "1", "timeoutSeconds": str(int(timeout) + 1)}
        if silence:
            query["allowWatchBookmarks"] = "true"
        path = f"{kinds.path(kinds.named(api_version, kind), namespace)}?{urlencode(query)}"
        answer = self._transport.open("GET", path, None, JSON, None)
        wire = answer.wire
        # http.client lets go of a socket whose connection will be closed; its timeout is still needed.
        sock = wire.sock
        try:
            if answer.status != 200:
                raise errors.failure(answer.status, answer.response.read())
            while (left := deadline - time.monotonic()) > 0:
                if sock is not None:
                    sock.settimeout(min(left, silence) if silence else left)
                line = answer.response.readline()
                if not line:
                    return
                event = errors.decode(line, answer.status)
                if event.get("type") == "ERROR":
                    raise errors.status_failure(event.get("object") or {}, 500)
                yield Event(str(event.get("type")), event.get("object") or {})
        except TimeoutError:
            if silence and time.monotonic() < deadline:
                raise errors.SilentError(f"{self.connection.shown} said nothing for {silence:g}s (watch of {path})") from None
            return
        except Exception as error:
            if isinstance(error, errors.ApiError | errors.UnreachableError):
                raise
            raise self._transport.lost(error, f"watch of {path}") from None
        finally:
            answer.response.close()
            wire.close()

    def raw(self, path: str, *, method: str = "GET", body: bytes | None = None, timeout: float | None = None) -> bytes:
        """The body of the answer to any request; an ApiError where it is not success."""
        status, content = self._transport.request(method, path, body, JSON, timeout)
        if not 200 <= status < 300:
            raise errors.failure(status, content)
        return content

    def server_version(self) -> Version:
        """What the API server says it is, at /version."""
        found = str(errors.decode(self.raw("/version"), 200).get("gitVersion") or "")
        try:
            return Version.parse(found)
        except ValueError as error:
            raise errors.ApiError(f"{self.connection.shown} does not tell its version: {error}", code=200, reason="InvalidAnswer") from None

    def close(self) -> None:
        self._transport.close()

    def _ask(self, method: str, path: str, body: object = None, content_type: str = JSON) -> Manifest:
        encoded = None if body is None else msgspec.json.encode(body)
        status, content = self._transport.request(method, path, encoded, content_type, None)
        if not 200 <= status < 300:
            raise errors.failure(status, content)
        return errors.decode(content, status)


def _path(manifest: Manifest, *, named: bool) -> str:
    metadata = manifest["metadata"]
    kind = kinds.named(manifest["apiVersion"], manifest["kind"])
    return kinds.path(kind, metadata.get("namespace", ""), metadata["name"] if named else "")


def _selectors(labels: Mapping[str, str] | None, fields: Mapping[str, str] | None) -> dict[str, str]:
    given = {"labelSelector": labels, "fieldSelector": fields}
    return {name: ",".join(f"{key}={value}" for key, value in chosen.items()) for name, chosen in given.items() if chosen}
