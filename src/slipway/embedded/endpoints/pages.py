"""What is at the paths that are not resources: discovery, OpenAPI, the version and the health of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.embedded import errors
from slipway.embedded.endpoints import discovery, negotiation, openapi

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authorization import Attributes
    from slipway.embedded.registry.resources import Catalog


_BUILT_IN: dict[str, dict[str, bytes]] = {}
"""The documents of servers without custom resources, by the version that they are of."""
_HEALTH = ("/healthz", "/livez", "/readyz")


class Pages:
    """Documents are made once for every state of the catalog; those of the built-in resources once for all servers."""

    def __init__(self, catalog: Catalog, git_version: str) -> None:
        self._catalog, self._git_version = catalog, git_version
        self._made = _BUILT_IN.setdefault(git_version, {})
        # That of a catalog without custom resources.
        self._generation = 0

    def answer(self, asked: Attributes, accept: str, host: str) -> web.Response:
        if asked.verb not in ("get", "head"):
            raise errors.method_not_allowed()
        path = asked.path.rstrip("/") or "/"
        if path.startswith(_HEALTH):
            return negotiation.response(b"ok", 200, content_type="text/plain")
        if path in ("/api", "/apis") and discovery.wants_aggregated(accept):
            body = self._document(f"{path} aggregated", lambda: discovery.aggregated(self._catalog.all(), core=path == "/api"))
            answer = negotiation.response(body, 200)
            answer.headers["Content-Type"] = discovery.AGGREGATED
            answer.headers["Vary"] = "Accept"
            return answer
        if path == "/api":
            # The one document that says where the server is.
            return negotiation.document(discovery.api_versions(host), 200)
        return negotiation.response(self._document(path, lambda: self._made_for(path)), 200)

    def _made_for(self, path: str) -> Manifest:
        resources = self._catalog.all()
        parts = path.strip("/").split("/")
        match parts:
            case ["version"]:
                return discovery.server_version(self._git_version)
            case ["apis"]:
                return discovery.group_list(resources)
            case ["api", version]:
                return _found(discovery.resource_list(resources, "", version))
            case ["apis", group]:
                return _found(discovery.group(resources, group))
            case ["apis", group, version]:
                return _found(discovery.resource_list(resources, group, version))
            case ["openapi", "v2"]:
                return openapi.v2_document(resources, self._git_version)
            case ["openapi", "v3"]:
                return openapi.index(resources)
            case ["openapi", "v3", *rest]:
                group, version = (
                    ("", rest[1]) if rest[0] == "api" and len(rest) == 2 else (rest[1], rest[2]) if len(rest) == 3 else ("", "")
                )
                members = [resource for resource in resources if (resource.group, resource.version) == (group, version)]
                return _found(openapi.v3_document(members, self._git_version) if members else None)
            case [""]:
                return {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]}
        raise errors.no_such_page()

    def _document(self, name: str, make: Callable[[], Manifest]) -> bytes:
        if self._generation != self._catalog.generation:
            self._made = {}
            self._generation = self._catalog.generation
        if name not in self._made:
            self._made[name] = msgspec.json.encode(make()) + b"\n"
        return self._made[name]


def _found(document: Manifest | None) -> Manifest:
    if document is None:
        raise errors.no_such_page()
    return document
