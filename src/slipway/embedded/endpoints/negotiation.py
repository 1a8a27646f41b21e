"""The form in which a client wants objects: as they are, as a Table, as their metadata alone, as YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from slipway.embedded import errors
from slipway.embedded.printers import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.read import Page


JSON, YAML = "application/json", "application/yaml"
_ACCEPTED = (
    JSON,
    YAML,
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
)
_HEADERS = {"Cache-Control": "no-cache, private"}


class Shape:
    """Makes the answers of one request."""

    def __init__(
        self, kind: str, version: str, query: Mapping[str, str], resource: Resource, clock: Callable[[], datetime], *, yaml: bool
    ) -> None:
        self.kind, self._version, self._query, self._resource, self._clock = kind, version, query, resource, clock
        self._yaml = yaml
        self._headers_sent = False

    @property
    def is_plain(self) -> bool:
        return not self.kind

    def one(self, raw: bytes) -> bytes:
        if not self.kind:
            return raw
        manifest = msgspec.json.decode(raw)
        if self.kind == "Table":
            return self._table([manifest], {"resourceVersion": manifest["metadata"].get("resourceVersion", "")})
        return msgspec.json.encode(table.partial(manifest, self._version))

    def listed(self, items: Sequence[bytes], page: Page) -> bytes:
        metadata: Manifest = {"resourceVersion": str(page.version)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining:
            metadata["remainingItemCount"] = page.remaining
        manifests = [msgspec.json.decode(item) for item in items]
        if self.kind == "Table":
            return self._table(manifests, metadata)
        partials = [table.partial(manifest, self._version) for manifest in manifests]
        document = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{self._version}",
            "metadata": metadata,
            "items": partials or None,
        }
        return msgspec.json.encode(document)

    def event(self, raw: bytes) -> bytes:
        """An object of a watch; of Tables, the first one brings the headers."""
        return self.one(raw)

    def answer(self, body: bytes, code: int = 200, warnings: list[str] | None = None) -> web.Response:
        if self._yaml:
            from slipway.api.machinery.yaml import write as yamlwrite

            return response(yamlwrite.dump(msgspec.json.decode(body)).encode(), code, warnings or [], YAML)
        return response(body, code, warnings or [])

    def _table(self, manifests: list[Manifest], metadata: Manifest) -> bytes:
        custom = self._resource.custom
        document = table.table(
            manifests,
            group=self._resource.group,
            kind=self._resource.kind,
            columns=custom.columns if custom is not None else None,
            include=self._query.get("includeObject") or "Metadata",
            metadata=metadata,
            now=self._clock(),
            headers=not self._headers_sent,
            version=self._version,
        )
        self._headers_sent = True
        return msgspec.json.encode(document)


def wanted(accept: str, query: Mapping[str, str], resource: Resource, clock: Callable[[], datetime]) -> Shape:
    """The shape of an Accept header; 406 where nothing of it can be made."""
    media_types = [part.partition(";")[0].strip() for part in accept.split(",")] if accept else ["*/*"]
    if not any(name in ("*/*", "application/*", JSON, YAML) for name in media_types):
        raise errors.not_acceptable(_ACCEPTED)
    first = next(name for name in media_types if name in ("*/*", "application/*", JSON, YAML))
    found = table.wanted(accept) if accept else table.Wanted()
    return Shape(found.kind, found.version, query, resource, clock, yaml=first == YAML)


def response(body: bytes, code: int, warnings: list[str], content_type: str = JSON) -> web.Response:
    answer = web.Response(body=body, status=code, headers=_HEADERS, content_type=content_type)
    for warning in dict.fromkeys(warnings):
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
        answer.headers.add("Warning", f'299 - "{quoted}"')
    return answer
