"""What the server refuses, as a metav1.Status with the words of kube-apiserver, and what is wrong with one field of an object.

Programs read the reason, and some the texts (``Required value``), people the message: both follow the real server to the letter.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.fieldpath import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.machinery import fieldpath
    from slipway.api.machinery.objects import Manifest


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
TOO_OLD_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned "
    "and now may show up in the list."
)

_PAGE = "page"


NO_FIELD = "<nil>"
"""How Go prints the path of an error that belongs to the whole object."""

OMITTED = object()
"""The value of an error that is about something too large to print."""

MOST = 1000
"""More errors than this are not looked for: nobody reads them, and a document of three megabytes may have a million."""
_HTML = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


class FieldError(NamedTuple):
    """One thing wrong at one place, in the words of apimachinery's field errors: ``message`` says what, without the place.

    ``reason`` is what a Status carries as the type of a cause.
    """

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    @classmethod
    def of(cls, error: fieldpath.FieldError) -> FieldError:
        """An error of :mod:`slipway.api.machinery.fieldpath`, for a Status."""
        reason = "FieldValue" + error.fault.name.title().replace("_", "")
        return cls(str(error.path), reason, str(error).removeprefix(f"{error.path}: "))

    @classmethod
    def required(cls, field: str, detail: str = "") -> FieldError:
        return cls(field, "FieldValueRequired", _joined("Required value", detail))

    @classmethod
    def invalid(cls, field: str, value: Any, detail: str) -> FieldError:
        return cls(field, "FieldValueInvalid", _joined(_about_value("Invalid value", value), detail))

    @classmethod
    def type_invalid(cls, field: str, value: Any, detail: str) -> FieldError:
        return cls(field, "FieldValueTypeInvalid", _joined(f"Invalid value: {shown(value)}", detail))

    @classmethod
    def forbidden(cls, field: str, detail: str) -> FieldError:
        return cls(field, "FieldValueForbidden", _joined("Forbidden", detail))

    @classmethod
    def duplicate(cls, field: str, value: Any) -> FieldError:
        return cls(field, "FieldValueDuplicate", _about_value("Duplicate value", value))

    @classmethod
    def not_supported(cls, field: str, value: Any, allowed: Iterable[str]) -> FieldError:
        listed = ", ".join(quoted(item) for item in allowed)
        return cls(
            field, "FieldValueNotSupported", _joined(f"Unsupported value: {shown(value)}", f"supported values: {listed}" if listed else "")
        )

    @classmethod
    def too_long(cls, field: str, limit: int) -> FieldError:
        return cls(field, "FieldValueTooLong", f"Too long: may not be more than {limit} {'byte' if limit == 1 else 'bytes'}")

    @classmethod
    def too_many(cls, field: str, actual: int, limit: int) -> FieldError:
        return cls(field, "FieldValueTooMany", f"Too many: {actual}: must have at most {limit} {'item' if limit == 1 else 'items'}")


class StatusError(Exception):
    """An answer that is not success."""

    def __init__(self, code: int, reason: str, message: str, details: Manifest | None = None, *, metadata: Manifest | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.details = details
        self.metadata = metadata or {}
        self.warnings: list[str] = []
        """What else the client is told."""

    def status(self) -> Manifest:
        """The metav1.Status of it."""
        document: Manifest = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure", "message": self.message}
        if self.reason:
            document["reason"] = self.reason
        if self.details is not None:
            document["details"] = {key: value for key, value in self.details.items() if value}
        return {**document, "code": self.code}


def qualified(group: str, resource: str) -> str:
    """A resource or a kind with its group, as messages name it."""
    return f"{resource}.{group}" if group else resource


def _about(group: str, resource: str, name: str) -> Manifest:
    return {"name": name, "group": group, "kind": resource}


def not_found(group: str, resource: str, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{qualified(group, resource)} "{name}" not found', _about(group, resource, name))


def no_such_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def no_such_page() -> StatusError:
    """What is at a path that no part of the server knows: plain text."""
    return StatusError(404, _PAGE, "404 page not found")


def is_page(error: StatusError) -> bool:
    return error.reason == _PAGE


def already_exists(group: str, resource: str, name: str) -> StatusError:
    return StatusError(409, "AlreadyExists", f'{qualified(group, resource)} "{name}" already exists', _about(group, resource, name))


def conflict(group: str, resource: str, name: str, why: str = MODIFIED) -> StatusError:
    message = f'Operation cannot be fulfilled on {qualified(group, resource)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _about(group, resource, name))


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """All that is wrong with an object, each with its field."""
    about = {**_about(group, kind, name), "causes": causes(errors)}
    return StatusError(422, "Invalid", f'{qualified(group, kind)} "{name}" is invalid: {aggregate(errors)}', about)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def forbidden(group: str, resource: str, name: str, why: str) -> StatusError:
    what = "" if not resource else f"{qualified(group, resource)} "
    subject = f'{what}"{name}" is' if name else f"{what}is"
    return StatusError(403, "Forbidden", f"{subject} forbidden: {why}" if resource else f"forbidden: {why}", _about(group, resource, name))


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> StatusError:
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def expired(message: str, *, continue_token: str = "") -> StatusError:
    return StatusError(410, "Expired", message, metadata={"continue": continue_token} if continue_token else None)


def too_old(version: int, oldest: int) -> StatusError:
    return expired(f"too old resource version: {version} ({oldest})")


def unsupported_patch_type() -> StatusError:
    return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", message)


def not_acceptable(accepted: Sequence[str]) -> StatusError:
    return StatusError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {', '.join(accepted)}", {})


def internal(message: str) -> StatusError:
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def too_many_requests(message: str, *, details: Manifest | None = None) -> StatusError:
    return StatusError(429, "TooManyRequests", message, details)


def too_large_version(version: int, current: int) -> StatusError:
    """A version that is not there yet; clients try again after a second."""
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return StatusError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def aggregate(errors: Iterable[FieldError]) -> str:
    """All errors as one text: ``[a, b]``, a single one alone, equal ones once."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def causes(errors: Iterable[FieldError]) -> list[dict[str, str]]:
    """The errors as ``details.causes`` of a Status."""
    return [{"reason": error.reason, "message": error.message, "field": error.field} for error in errors]


def shown(value: Any) -> str:
    """A value inside a message: text in Go's quotes, everything else as Go's JSON, keys sorted and safe inside HTML."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return go_float(value)
    return json_text(value)


def json_text(value: Any) -> str:
    """Go's JSON: keys sorted, and safe inside HTML."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).translate(_HTML)


def _about_value(what: str, value: Any) -> str:
    return what if value is OMITTED else f"{what}: {shown(value)}"


def go_float(value: float) -> str:
    """Go's ``%v`` of a float64: no fraction where there is none, an exponent from 21 digits on."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].zfill(2)}"
    return text


def _joined(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head
