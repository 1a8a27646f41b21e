"""Objects in the version that a request asks for: renamed, converted by a webhook, or, for Events, between their two faces."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from slipway.embedded import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.store import Stored
    from slipway.embedded.webhooks.client import WebhookCaller


# Fields of a core v1 Event, and what events.k8s.io/v1 calls them.
_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_EVENT_FIELDS = {new: old for old, new in _EVENT_FIELDS.items()}
_EVENTS = {"v1": _CORE_EVENT_FIELDS, "events.k8s.io/v1": _EVENT_FIELDS}


class Converter:
    """Knows how each resource gets from one of its versions to another."""

    def __init__(self, caller: WebhookCaller) -> None:
        self._caller = caller

    async def convert(self, resource: Resource, manifests: Sequence[Manifest], api_version: str) -> list[Manifest]:
        """The objects in a version; those that are in it already stay as they are."""
        foreign = [manifest for manifest in manifests if manifest["apiVersion"] != api_version]
        if not foreign:
            return list(manifests)
        conversion = resource.custom.conversion if resource.custom is not None else {}
        if conversion.get("strategy") == "Webhook":
            converted = iter(await self._by_webhook(resource, conversion["webhook"], foreign, api_version))
            return [next(converted) if manifest["apiVersion"] != api_version else manifest for manifest in manifests]
        return [_renamed(manifest, api_version) for manifest in manifests]

    async def render(self, resource: Resource, stored: Stored) -> bytes:
        """A stored object, encoded in the version of the resource."""
        return stored.encoded(resource.api_version) or (await self.render_all(resource, [stored]))[0]

    async def render_all(self, resource: Resource, objects: Sequence[Stored]) -> list[bytes]:
        """Stored objects, encoded in the version of the resource; each one is converted once."""
        wanted = resource.api_version
        foreign = [stored for stored in objects if stored.api_version != wanted and wanted not in stored.others]
        if foreign:
            converted = await self.convert(resource, [stored.manifest() for stored in foreign], wanted)
            for stored, manifest in zip(foreign, converted, strict=True):
                stored.others[wanted] = msgspec.json.encode(manifest)
        return [stored.raw if stored.api_version == wanted else stored.others[wanted] for stored in objects]

    async def _by_webhook(self, resource: Resource, webhook: Manifest, objects: list[Manifest], api_version: str) -> list[Manifest]:
        name = f"conversion webhook for {objects[0]['apiVersion'].replace('/', '/')}, Kind={resource.kind}"
        uid = str(uuid4())
        reviewed = next(iter(webhook.get("conversionReviewVersions") or ["v1"]))
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"apiextensions.k8s.io/{reviewed}",
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": objects},
        }
        answer = await self._caller.call(webhook.get("clientConfig") or {}, review, timeout=30.0, what=f"{name} failed")
        response = answer.get("response") or {}
        if response.get("uid") != uid:
            raise errors.internal(f"{name} returned a response with another uid")
        result = response.get("result") or {}
        if result.get("status") != "Success":
            raise errors.internal(f"{name} failed: {result.get('message') or 'no message'}")
        converted = response.get("convertedObjects") or []
        if len(converted) != len(objects):
            raise errors.internal(f"{name} returned {len(converted)} objects, expected {len(objects)}")
        return [_trusted(before, after, api_version, name) for before, after in zip(objects, converted, strict=True)]


def _trusted(before: Manifest, after: Manifest, api_version: str, name: str) -> Manifest:
    """What a webhook made, with the metadata of before: it may change labels and annotations only."""
    if after.get("apiVersion") != api_version or after.get("kind") != before.get("kind"):
        raise errors.internal(f"{name} returned an object of {after.get('apiVersion')}, Kind={after.get('kind')}, expected {api_version}")
    kept = {**before["metadata"]}
    for field in ("labels", "annotations"):
        value = (after.get("metadata") or {}).get(field)
        kept.pop(field, None)
        if value:
            kept[field] = value
    return {**after, "metadata": kept}


def _renamed(manifest: Manifest, api_version: str) -> Manifest:
    if manifest["apiVersion"] == api_version:
        return manifest
    if manifest.get("kind") == "Event" and api_version in _EVENTS:
        fields = _EVENTS[api_version]
        manifest = {fields.get(field, field): value for field, value in manifest.items()}
        if "series" in manifest and isinstance(manifest["series"], dict):
            manifest["series"] = {key: value for key, value in manifest["series"].items() if key in ("count", "lastObservedTime")}
    return {**manifest, "apiVersion": api_version}
