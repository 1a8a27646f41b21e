"""Reads: one object, and lists with selectors, resource versions, and pages that all show the same moment."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.embedded import errors, fielderrors
from slipway.embedded.storage import fields, selectors
from slipway.embedded.storage.store import ForgottenError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.selectors import FieldRequirement, Requirement
    from slipway.embedded.storage.store import Bucket, Store, Stored
    from slipway.embedded.webhooks.conversion import Converter


_TOKEN_VERSION = "meta.k8s.io/v1"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_OUT_OF_RANGE = 1 << 63
_LONGEST_INTEGER = 100


class Selection(NamedTuple):
    """Which objects of a resource a request is about."""

    namespace: str
    labels: list[Requirement]
    fields: list[FieldRequirement]

    def holds(self, resource: Resource, stored: Stored) -> bool:
        if self.namespace and stored.namespace != self.namespace:
            return False
        if self.labels and not selectors.match_labels(self.labels, stored.labels):
            return False
        return not self.fields or fields.matches(resource, self.fields, stored)


class Page(NamedTuple):
    """A part of a list: its objects, the version that it shows, and how to go on."""

    objects: list[Stored]
    version: int
    continue_token: str = ""
    remaining: int = 0


def selection(resource: Resource, namespace: str, query: Mapping[str, str]) -> Selection:
    labels = selectors.parse_labels(query.get("labelSelector", ""))
    wanted = fields.parse(resource, query.get("fieldSelector", "")) if query.get("fieldSelector") else []
    return Selection(namespace if resource.namespaced else "", labels, wanted)


def get(store: Store, resource: Resource, namespace: str, name: str, query: Mapping[str, str]) -> Stored:
    _check_version(store, query.get("resourceVersion", ""))
    stored = store.get(resource.bucket, namespace, name)
    if stored is None:
        raise errors.not_found(resource.group, resource.plural, name)
    return stored


def page(store: Store, resource: Resource, chosen: Selection, query: Mapping[str, str]) -> Page:
    """The objects that a list request asks for."""
    limit = max(number(query.get("limit", "")), 0)
    token = query.get("continue", "")
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    _check_match(version, match, token)
    start = ""
    if token:
        at, start = _decode_token(token, chosen.namespace)
        try:
            bucket: Bucket = store.bucket(resource.bucket) if at < 0 else store.at(resource.bucket, at)
        except ForgottenError:
            raise errors.expired(errors.TOO_OLD_CONTINUE, continue_token=_encode_token(-1, start, chosen.namespace)) from None
        shown = store.version if at < 0 else at
    elif match == "Exact" or (version not in ("", "0") and limit and not match):
        shown = _check_version(store, version)
        try:
            bucket = store.at(resource.bucket, shown)
        except ForgottenError:
            raise errors.expired("The resourceVersion for the provided list is too old.") from None
    else:
        _check_version(store, version)
        bucket, shown = store.bucket(resource.bucket), store.version
    return _cut(resource, chosen, bucket, shown, start, limit)


def _cut(resource: Resource, chosen: Selection, bucket: Bucket, version: int, start: str, limit: int) -> Page:
    candidates = bucket.within(chosen.namespace, start)
    if not chosen.labels and not chosen.fields:
        if not limit:
            return Page(list(candidates), version)
        objects = list(islice(candidates, limit))
        left = sum(1 for _ in candidates)
        return _page(objects, version, chosen.namespace, left, remaining=left)
    matching = (stored for stored in candidates if chosen.holds(resource, stored))
    if not limit:
        return Page(list(matching), version)
    objects = list(islice(matching, limit))
    more = next(matching, None) is not None
    # With a selector, the server does not count what it has not looked at.
    return _page(objects, version, chosen.namespace, int(more), remaining=0)


def _page(objects: list[Stored], version: int, namespace: str, left: int, *, remaining: int) -> Page:
    if not left:
        return Page(objects, version)
    return Page(objects, version, _encode_token(version, f"{objects[-1].key}\0", namespace), remaining)


async def render(converter: Converter, resource: Resource, found: Page) -> bytes:
    """A list as one JSON document, put together from the encoded objects."""
    metadata: Manifest = {"resourceVersion": str(found.version)}
    if found.continue_token or resource.custom is not None:
        metadata["continue"] = found.continue_token
    if found.remaining:
        metadata["remainingItemCount"] = found.remaining
    head = msgspec.json.encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata})
    items = await converter.render_all(resource, found.objects)
    if resource.custom is None:
        # Go's typed lists have items without apiVersion and kind.
        prefix = len(msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind}))
        items = [b"{" + item[prefix:] for item in items]
    return b"".join((head[:-1], b',"items":[', b",".join(items), b"]}\n"))


def _check_version(store: Store, text: str) -> int:
    """A version that a read wants to see at least; one that is not there yet is an error that clients try again after."""
    if text in ("", "0"):
        return 0
    if not text.isdecimal():
        raise errors.bad_request(f"invalid resource version: {bad_version(text)}")
    version = int(text)
    if version > store.version:
        raise errors.too_large_version(version, store.version)
    return version


def bad_version(text: str) -> str:
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def _check_match(version: str, match: str, token: str) -> None:
    def refuse(reason: str) -> errors.StatusError:
        return errors.invalid("meta.k8s.io", "ListOptions", "", [fielderrors.forbidden("resourceVersionMatch", reason)])

    if not match:
        return
    if match not in ("Exact", "NotOlderThan"):
        wrong = fielderrors.not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", ""))
        raise errors.invalid("meta.k8s.io", "ListOptions", "", [wrong])
    if token:
        raise refuse("resourceVersionMatch is forbidden when continue is provided")
    if not version:
        raise refuse("resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match == "Exact" and version == "0":
        raise refuse('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')


def number(text: str) -> int:
    """An int64 of a query; 0 where there is none."""
    if not text:
        return 0
    if not _INTEGER.fullmatch(text):
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    value = int(text) if len(text) <= _LONGEST_INTEGER else _OUT_OF_RANGE
    if not -_OUT_OF_RANGE <= value < _OUT_OF_RANGE:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def _encode_token(version: int, start: str, namespace: str) -> str:
    relative = start.removeprefix(f"{namespace}/") if namespace else start
    return urlsafe_b64encode(msgspec.json.encode({"v": _TOKEN_VERSION, "rv": version, "start": relative})).decode().rstrip("=")


def _decode_token(token: str, namespace: str) -> tuple[int, str]:
    try:
        decoded = msgspec.json.decode(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (Base64Error, ValueError, msgspec.DecodeError) as error:
        raise errors.bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    if not isinstance(decoded, dict) or decoded.get("v") != _TOKEN_VERSION:
        raise errors.bad_request("invalid continue token: continue key is not valid: server does not recognize this encoded version")
    start = str(decoded.get("start") or "")
    return int(decoded.get("rv") or 0), f"{namespace}/{start}" if namespace else start
