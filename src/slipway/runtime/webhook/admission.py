"""Admission reviews (admission.k8s.io/v1): defaulting and validation of objects before the API server stores them.

A review in, a review out; HTTP is in :mod:`slipway.runtime.webhook.server`.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.patches.jsonpatch import equal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest

API_VERSION = "admission.k8s.io/v1"
# What the API server cuts off anyhow.
_LONGEST_WARNING = 256


class Problem(NamedTuple):
    """What is wrong with one field, in the terms of a ``metav1.StatusCause``; ``text`` has the field and the words."""

    field: str
    reason: str
    text: str


class Verdict(NamedTuple):
    """Any problem refuses the object; warnings are shown to who wrote it."""

    problems: Sequence[Problem] = ()
    warnings: Sequence[str] = ()


class AdmissionRequest(NamedTuple):
    """The parts of a request that decide: ``object`` is None in a deletion, ``old`` in a creation."""

    operation: str
    object: Manifest | None
    old: Manifest | None
    namespace: str
    name: str
    user: str
    dry_run: bool


class Validator(NamedTuple):
    """Validation of a kind.  ``kind`` has the version in which the objects come; the API server converts others."""

    kind: Kind
    validate: Callable[[AdmissionRequest], Verdict]
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    # Where there is one, requests for it come, with its own object, and others do not.
    subresource: str = ""
    # Tells validations of one kind apart: whoever serves a kind has its own without one, and others look at it for a purpose of theirs.
    purpose: str = ""
    # In CEL: of which objects the API server asks; of all without it.
    condition: str = ""
    # Whether objects are stored unseen while nobody answers: for advice, which must not hold up others' controllers.
    fails_open: bool = False

    @property
    def path(self) -> str:
        return f"/validate-{''.join(f'{each}-' for each in self._distinction)}{_slug(self.kind)}"

    @property
    def name(self) -> str:
        # The core group has no name, and a webhook's has three parts.
        return f"{'-'.join(('validation', *self._distinction))}.{self.kind.kind.lower()}.{self.kind.group or 'core'}"

    @property
    def _distinction(self) -> tuple[str, ...]:
        return tuple(each for each in (self.purpose, self.subresource) if each)


class Defaulter(NamedTuple):
    """Defaulting of a kind: the object with what was left out."""

    kind: Kind
    default: Callable[[AdmissionRequest], Manifest]
    operations: tuple[str, ...] = ("CREATE", "UPDATE")

    @property
    def path(self) -> str:
        return f"/mutate-{_slug(self.kind)}"

    @property
    def name(self) -> str:
        return f"default.{self.kind.kind.lower()}.{self.kind.group}"


class BadReviewError(OperatorError):
    """What came is no review that can be answered."""


def review(body: bytes, webhook: Validator | Defaulter) -> Manifest:
    """The answer to a review.  What the webhook's own code throws is the caller's."""
    uid, request = _parsed(body)
    try:
        if isinstance(webhook, Defaulter):
            return _answer(uid, _defaulted(request, webhook))
        return _answer(uid, _validated(request, webhook))
    except RecursionError:
        raise BadReviewError("the object of the AdmissionReview is nested too deeply to be judged") from None


def refusal(body: bytes, code: int, reason: str, message: str) -> Manifest:
    """The answer to a review that could not be judged."""
    uid, _ = _parsed(body)
    return _answer(uid, {"allowed": False, "status": _status(code, reason, message)})


def json_patch(before: Any, after: Any, path: str = "") -> list[Manifest]:
    """The JSON patch (RFC 6902) from one value to another.  Lists of one length are compared item by item, others replaced."""
    if equal(before, after):
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        operations: list[Manifest] = [{"op": "remove", "path": f"{path}/{_escaped(key)}"} for key in before if key not in after]
        for key, value in after.items():
            place = f"{path}/{_escaped(key)}"
            operations += json_patch(before[key], value, place) if key in before else [{"op": "add", "path": place, "value": value}]
        return operations
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            operation for number, pair in enumerate(zip(before, after, strict=True)) for operation in json_patch(*pair, f"{path}/{number}")
        ]
    return [{"op": "replace", "path": path, "value": after}]


def _parsed(body: bytes) -> tuple[str, AdmissionRequest]:
    try:
        document = _decode_review(body)
    except msgspec.ValidationError as error:
        raise BadReviewError(f"the body is not an AdmissionReview: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReviewError(f"the body is not JSON: {error}") from None
    if document.kind != "AdmissionReview":
        raise BadReviewError("the body is not an AdmissionReview")
    if document.api_version != API_VERSION:
        raise BadReviewError(f'the AdmissionReview is of "{document.api_version}", and only {API_VERSION} is answered')
    request = document.request
    if request is None or not request.uid:
        raise BadReviewError("the AdmissionReview has no request with a uid")
    return request.uid, AdmissionRequest(
        operation=request.operation,
        object=request.object,
        old=request.old_object,
        namespace=request.namespace,
        name=request.name,
        user=request.user_info.username if request.user_info is not None else "",
        dry_run=bool(request.dry_run),
    )


class _User(msgspec.Struct):
    username: str = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str = ""
    operation: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    namespace: str = ""
    name: str = ""
    user_info: _User | None = None
    dry_run: bool | None = None


class _Review(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    request: _Request | None = None


_decode_review = msgspec.json.Decoder(_Review).decode


def _defaulted(request: AdmissionRequest, webhook: Defaulter) -> Manifest:
    if request.object is None:
        return {"allowed": True}
    given = msgspec.json.decode(msgspec.json.encode(request.object))
    operations = json_patch(given, webhook.default(request))
    if not operations:
        return {"allowed": True}
    return {"allowed": True, "patchType": "JSONPatch", "patch": b64encode(msgspec.json.encode(operations)).decode()}


def _validated(request: AdmissionRequest, webhook: Validator) -> Manifest:
    verdict = webhook.validate(request)
    answer: Manifest = {"allowed": not verdict.problems}
    if verdict.warnings:
        answer["warnings"] = [warning[:_LONGEST_WARNING] for warning in verdict.warnings]
    if verdict.problems:
        kind = webhook.kind
        name = request.name or _name(request.object)
        texts = list(dict.fromkeys(problem.text for problem in verdict.problems))
        listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        status = _status(422, "Invalid", f'{kind.kind}.{kind.group} "{name}" is invalid: {listed}')
        causes = [{"reason": reason, "message": _words(text, field), "field": field} for field, reason, text in verdict.problems]
        answer["status"] = {**status, "details": {"name": name, "group": kind.group, "kind": kind.kind, "causes": causes}}
    return answer


def _name(manifest: Manifest | None) -> str:
    metadata = (manifest or {}).get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _words(text: str, field: str) -> str:
    """A cause has its field apart from its words."""
    return text.removeprefix(f"{field}: ")


def _status(code: int, reason: str, message: str) -> Manifest:
    return {"metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}


def _answer(uid: str, response: Manifest) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": {"uid": uid, **response}}


def _slug(kind: Kind) -> str:
    return f"{kind.group.replace('.', '-')}-{kind.version}-{kind.kind.lower()}"


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
