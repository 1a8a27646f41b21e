"""Conversion reviews (apiextensions.k8s.io/v1): objects of one version of a kind, wanted in another.

A review in, a review out; how a kind is converted is in :mod:`slipway.api.cluster`, HTTP in :mod:`slipway.runtime.webhooks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.runtime.webhook.admission import BadReviewError

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest

    Convert = Callable[[Manifest, str], Manifest]

API_VERSION = "apiextensions.k8s.io/v1"
PATH = "/convert"


def review(body: bytes, convert: Convert) -> Manifest:
    """The answer to a review; one object that cannot be converted fails all of them, as the API server wants it."""
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise BadReviewError(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != "ConversionReview" or document.get("apiVersion") != API_VERSION:
        raise BadReviewError(f"the body is not a ConversionReview of {API_VERSION}")
    request = document.get("request")
    if not isinstance(request, dict) or not request.get("uid") or not request.get("desiredAPIVersion"):
        raise BadReviewError("the ConversionReview has no request with a uid and a desiredAPIVersion")
    desired = str(request["desiredAPIVersion"])
    try:
        converted = [_converted(item, desired, convert) for item in request.get("objects") or ()]
    except OperatorError as error:
        result: Manifest = {"result": {"metadata": {}, "status": "Failure", "message": error.message}}
    else:
        result = {"convertedObjects": converted, "result": {"metadata": {}, "status": "Success"}}
    return {"apiVersion": API_VERSION, "kind": "ConversionReview", "response": {"uid": request["uid"], **result}}


def _converted(item: Manifest, desired: str, convert: Convert) -> Manifest:
    if item.get("apiVersion") == desired:
        return item
    made = convert(item, desired)
    # The API server refuses an answer in which the metadata changed, except for labels and annotations.
    kept = {**item["metadata"], **{key: made["metadata"][key] for key in ("labels", "annotations") if key in made.get("metadata", {})}}
    for key in ("labels", "annotations"):
        if key not in made.get("metadata", {}):
            kept.pop(key, None)
    return {**made, "metadata": kept}
