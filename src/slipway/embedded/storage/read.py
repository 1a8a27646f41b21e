"""Lists: with selectors, resource versions, and pages that all show the same moment."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.embedded import errors
from slipway.embedded.errors import FieldError
from slipway.embedded.storage.store import ForgottenError

if TYPE_CHECKING:
    from slipway.embedded.storage.selectors import Selection
    from slipway.embedded.storage.store import Bucket, Store, Stored


_TOKEN_VERSION = "meta.k8s.io/v1"
_DIGITS = re.compile("[0-9]+")
_LONGEST = 100


class ListOptions(msgspec.Struct, kw_only=True, frozen=True):
    """metav1.ListOptions: what a list or a watch may ask for."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    """``continue``"""
    version: str = ""
    match: str = ""
    """``resourceVersionMatch``"""
    seconds: int = 0
    bookmarks: bool = False
    initial: bool | None = None
    """``sendInitialEvents``, None where it was not said."""


class _Token(msgspec.Struct):
    """What a ``continue`` says: the version of the list, and where its next page begins."""

    v: str = ""
    rv: int = 0
    start: str = ""


class Page(NamedTuple):
    """A part of a list: its objects, the version that it shows, and how to go on."""

    objects: list[Stored]
    version: int
    continue_token: str = ""
    remaining: int = 0


def check_version(store: Store, text: str) -> int:
    """A version that a read wants to see at least; one that is not there yet is an error that clients try again after."""
    if text in ("", "0"):
        return 0
    version = parsed_version(text)
    if version is None:
        raise errors.bad_request(f"invalid resource version: {bad_version(text)}")
    if version > store.version:
        raise errors.too_large_version(version, store.version)
    return version


def page(store: Store, name: str, chosen: Selection, options: ListOptions) -> Page:
    """The objects of a bucket that a list request asks for."""
    _check_match(options)
    limit, version, start = max(options.limit, 0), options.version, ""
    if options.token:
        at, start = _decode_token(options.token, chosen.namespace)
        try:
            bucket: Bucket = store.bucket(name) if at < 0 else store.at(name, at)
        except ForgottenError:
            raise errors.expired(errors.TOO_OLD_CONTINUE, continue_token=_encode_token(-1, start, chosen.namespace)) from None
        shown = store.version if at < 0 else at
    elif options.match == "Exact" or (version not in ("", "0") and limit and not options.match):
        shown = check_version(store, version)
        try:
            bucket = store.at(name, shown)
        except ForgottenError:
            raise errors.expired("The resourceVersion for the provided list is too old.") from None
    else:
        check_version(store, version)
        bucket, shown = store.bucket(name), store.version
    return _cut(chosen, bucket, shown, start, limit)


def _cut(chosen: Selection, bucket: Bucket, version: int, start: str, limit: int) -> Page:
    candidates = bucket.within(chosen.namespace, start)
    if not chosen.labels and not chosen.fields:
        if not limit:
            return Page(list(candidates), version)
        objects = list(islice(candidates, limit))
        left = sum(1 for _ in candidates)
        return _page(objects, version, chosen.namespace, left, remaining=left)
    matching = filter(chosen.holds, candidates)
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


def parsed_version(text: str) -> int | None:
    """A resourceVersion as a number, None where it is none: a uint64."""
    if not _DIGITS.fullmatch(text) or len(text) > _LONGEST:
        return None
    return int(text) if int(text) < 1 << 64 else None


def bad_version(text: str) -> str:
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def _check_match(options: ListOptions) -> None:
    def refuse(reason: str) -> errors.StatusError:
        return errors.invalid("meta.k8s.io", "ListOptions", "", [FieldError.forbidden("resourceVersionMatch", reason)])

    if not options.match:
        return
    if options.match not in ("Exact", "NotOlderThan"):
        wrong = FieldError.not_supported("resourceVersionMatch", options.match, ("Exact", "NotOlderThan", ""))
        raise errors.invalid("meta.k8s.io", "ListOptions", "", [wrong])
    if options.token:
        raise refuse("resourceVersionMatch is forbidden when continue is provided")
    if not options.version:
        raise refuse("resourceVersionMatch is forbidden unless resourceVersion is provided")
    if options.match == "Exact" and options.version == "0":
        raise refuse('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')


def _encode_token(version: int, start: str, namespace: str) -> str:
    relative = start.removeprefix(f"{namespace}/") if namespace else start
    return urlsafe_b64encode(msgspec.json.encode(_Token(_TOKEN_VERSION, version, relative))).decode().rstrip("=")


def _decode_token(token: str, namespace: str) -> tuple[int, str]:
    try:
        decoded = msgspec.json.decode(urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=_Token)
    except (Base64Error, ValueError, msgspec.DecodeError) as error:
        raise errors.bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    if decoded.v != _TOKEN_VERSION:
        raise errors.bad_request("invalid continue token: continue key is not valid: server does not recognize this encoded version")
    return decoded.rv, f"{namespace}/{decoded.start}" if namespace else decoded.start
