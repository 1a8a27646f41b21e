"""Conversion reviews (apiextensions.k8s.io/v1): objects of one version of a kind, wanted in another.

A review in, a review out; how a kind is converted is in :mod:`slipway.api.cluster`, HTTP in :mod:`slipway.runtime.webhook.server`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.runtime.webhook.admission import BadReviewError

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest

    Convert = Callable[[Manifest, str], Manifest]

API_VERSION = "apiextensions.k8s.io/v1"
PATH = "/convert"


class _Shell(msgspec.Struct, gc=False, rename="camel"):
    """What every object has; the rest of it is decoded when its turn comes."""

    api_version: str
    kind: str


class _Request(msgspec.Struct, rename={"desired": "desiredAPIVersion"}):
    uid: str = ""
    desired: str = ""
    objects: msgspec.Raw = msgspec.Raw(b"[]")


class _Review(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    request: _Request | None = None


_decode_review = msgspec.json.Decoder(_Review).decode
_decode_shells = msgspec.json.Decoder(list[_Shell] | None).decode
_decode_objects = msgspec.json.Decoder(list[msgspec.Raw] | None).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def review(body: bytes, convert: Convert) -> Manifest:
    """The answer to a review; one object that cannot be converted fails all of them, as the API server wants it.

    A list may be long and an object large, so they are decoded and encoded one by one.
    """
    try:
        document = _decode_review(body)
        if document.kind != "ConversionReview" or document.api_version != API_VERSION:
            raise BadReviewError(f"the body is not a ConversionReview of {API_VERSION}")
        request = document.request
        if request is None or not request.uid or not request.desired:
            raise BadReviewError("the ConversionReview has no request with a uid and a desiredAPIVersion")
        # Before there is a list of them: what is no object could be very many.
        _decode_shells(request.objects)
        objects = _decode_objects(request.objects) or []
    except msgspec.ValidationError as error:
        raise BadReviewError(f"the body is not a ConversionReview of {API_VERSION}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReviewError(f"the body is not JSON: {error}") from None
    try:
        converted = [_converted(item, request.desired, convert) for item in objects]
    except OperatorError as error:
        result: Manifest = {"result": {"metadata": {}, "status": "Failure", "message": error.message}}
    else:
        result = {"convertedObjects": converted, "result": {"metadata": {}, "status": "Success"}}
    return {"apiVersion": API_VERSION, "kind": "ConversionReview", "response": {"uid": request.uid, **result}}


def _converted(raw: msgspec.Raw, desired: str, convert: Convert) -> msgspec.Raw:
    try:
        item = _decode_object(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReviewError(f"an object of the ConversionReview is not JSON: {error}") from None
    if item["apiVersion"] == desired:
        return raw
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        raise OperatorError(f"an object of the kind {item['kind']} has no metadata")
    made = convert(item, desired)
    # The API server refuses an answer in which the metadata changed, except for labels and annotations.
    kept = {**metadata, **{key: made["metadata"][key] for key in ("labels", "annotations") if key in made.get("metadata", {})}}
    for key in ("labels", "annotations"):
        if key not in made.get("metadata", {}):
            kept.pop(key, None)
    return msgspec.Raw(msgspec.json.encode({**made, "metadata": kept}))
