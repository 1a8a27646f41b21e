"""The form in which a client wants objects: in which version, as they are, as a Table, as their metadata alone, as YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
    from slipway.embedded.storage.store import Stored
    from slipway.embedded.webhooks.conversion import Converter


JSON, YAML = "application/json", "application/yaml"
_ACCEPTED = (
    JSON,
    YAML,
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
)
_MADE = ("*/*", "application/*", JSON, YAML)
_HEADERS = {"Cache-Control": "no-cache, private"}


class Shape:
    """Makes the answers of one request; a :class:`slipway.embedded.storage.watch.View` of its resource."""

    def __init__(
        self, accept: str, query: Mapping[str, str], resource: Resource, converter: Converter, clock: Callable[[], datetime]
    ) -> None:
        self._query, self._resource, self._converter, self._clock = query, resource, converter, clock
        self._kind, self._version, self._yaml = wanted(accept)
        self._headers_sent = False

    @property
    def frames(self) -> str:
        return "" if self._kind else self._resource.api_version

    async def shown(self, stored: Stored) -> bytes:
        """A stored object."""
        return self.one(stored.encoded(self._resource.api_version) or await self._converter.render(self._resource, stored))

    def bookmark(self, metadata: Manifest) -> bytes:
        return self.one(msgspec.json.encode({"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}))

    def one(self, raw: bytes) -> bytes:
        """An object that is encoded already; of the Tables of a watch, the first one brings the headers."""
        if not self._kind:
            return raw
        manifest = msgspec.json.decode(raw)
        if self._kind == "Table":
            return self._table([manifest], {"resourceVersion": manifest["metadata"].get("resourceVersion", "")})
        return msgspec.json.encode(table.partial(manifest, self._version))

    async def listed(self, page: Page) -> bytes:
        """A list as one document; of plain objects, put together from what is encoded already."""
        items = await self._converter.render_all(self._resource, page.objects)
        metadata: Manifest = {"resourceVersion": str(page.version)}
        if page.continue_token or (self._resource.custom is not None and not self._kind):
            metadata["continue"] = page.continue_token
        if page.remaining:
            metadata["remainingItemCount"] = page.remaining
        if not self._kind:
            return _joined(self._resource, metadata, items)
        manifests = [msgspec.json.decode(item) for item in items]
        if self._kind == "Table":
            return self._table(manifests, metadata)
        partials = [table.partial(manifest, self._version) for manifest in manifests]
        document = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{self._version}",
            "metadata": metadata,
            "items": partials or None,
        }
        return msgspec.json.encode(document)

    def answer(self, body: bytes, code: int = 200, warnings: Sequence[str] = ()) -> web.Response:
        if self._yaml:
            from slipway.api.machinery.yaml import write as yamlwrite

            return response(yamlwrite.dump(msgspec.json.decode(body)).encode(), code, warnings, YAML)
        return response(body, code, warnings)

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


def _joined(resource: Resource, metadata: Manifest, items: list[bytes]) -> bytes:
    head = msgspec.json.encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata})
    if resource.custom is None:
        # Go's typed lists have items without apiVersion and kind.
        prefix = len(msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind}))
        items = [b"{" + item[prefix:] for item in items]
    return b"".join((head[:-1], b',"items":[', b",".join(items), b"]}\n"))


class Wanted(NamedTuple):
    """What a request accepts: a ``Table``, ``PartialObjectMetadata`` or a list of them, or objects as they are; as JSON or YAML."""

    kind: str = ""
    version: str = "v1"
    yaml: bool = False


def wanted(accept: str) -> Wanted:
    """What an Accept header asks for; 406 where nothing of it can be made."""
    media_types = [[part.strip() for part in media_type.split(";")] for media_type in accept.split(",")]
    made = [media_type for media_type in media_types if media_type[0] in _MADE]
    if accept and not made:
        raise errors.not_acceptable(_ACCEPTED)
    for _, *parameters in made:
        values = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if not values.get("as"):
            break
        if values.get("g") == "meta.k8s.io" and values.get("v") in ("v1", "v1beta1"):
            return Wanted(values["as"], values["v"], made[0][0] == YAML)
    return Wanted(yaml=bool(made) and made[0][0] == YAML)


def response(body: bytes, code: int, warnings: Sequence[str] = (), content_type: str = JSON) -> web.Response:
    answer = web.Response(body=body, status=code, headers=_HEADERS, content_type=content_type)
    for warning in dict.fromkeys(warnings):
        # A header is one line: what would end it is left out, as Go's does.
        line = "".join(character for character in warning if character.isprintable())
        quoted = line.replace("\\", "\\\\").replace('"', '\\"')
        answer.headers.add("Warning", f'299 - "{quoted}"')
    return answer


def document(content: Manifest, code: int, warnings: Sequence[str] = ()) -> web.Response:
    """A document that is JSON whatever the client wants."""
    return response(msgspec.json.encode(content) + b"\n", code, warnings)
