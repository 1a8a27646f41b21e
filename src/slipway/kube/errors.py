"""What an API server's answer means: an object, or what went wrong, by what the caller can do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

# How much of an answer that nobody understands is shown.
_SHOWN = 200

_decode_any = msgspec.json.Decoder().decode
# Statuses that say "not now": too many requests, or a server (or what is in front of it) in trouble.
_PASSING_STATUSES = frozenset({429, 500, 502, 503, 504})
# What a server says in a 4xx while its storage settles.
_PASSING_TEXTS = ("etcdserver: leader changed", "etcdserver: request timed out", "etcdserver: no leader", "apiserver not ready")


class Cause(NamedTuple):
    """A detail of what went wrong."""

    type: str
    message: str


class ApiError(OperatorError):
    """An answer of the API server that is not success.  ``reason`` is its metav1.StatusReason, such as ``NotFound``.

    ``causes`` are None where the answer has no details.
    """

    causes: tuple[Cause, ...] | None = None
    name: str = ""
    """Of the object that the server speaks of; empty where it speaks of none, such as when it has no such kind."""

    def __init__(self, message: str, *, code: int, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class UnauthorizedError(ApiError):
    """The server does not know who is asking: 401."""


class ForbiddenError(ApiError):
    """The server knows who is asking, and they may not: 403."""


class NotFoundError(ApiError):
    """The object, its namespace, or the whole resource is not there: 404."""


class AlreadyExistsError(ApiError):
    """An object of that name is there already: 409 AlreadyExists."""


class ConflictError(ApiError):
    """The object was changed by somebody else in between: 409 Conflict."""


class GoneError(ApiError):
    """The resource version, or the place in a list, is too old for the server: 410.  What is there must be listed anew."""


class InvalidError(ApiError):
    """The object is understood and not allowed: 422, by a schema, a validation or an admission webhook."""


class UnreachableError(OperatorError):
    """No answer: refused, no route, timed out, connection lost."""


class SilentError(UnreachableError):
    """A watch on which nothing came for so long that what is at the other end is no longer a server."""


class UntrustedError(UnreachableError):
    """Something answered that did not prove to be the server: its certificate is of another CA, of another name, or out of its time."""


_BY_CODE: dict[int, type[ApiError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    410: GoneError,
    422: InvalidError,
}


def from_status(code: int, reason: str, message: str) -> ApiError:
    """The error of an HTTP status and the metav1.Status that came with it."""
    if code == 409:
        kind: type[ApiError] = AlreadyExistsError if reason == "AlreadyExists" else ConflictError
    else:
        kind = _BY_CODE.get(code, ApiError)
    return kind(message, code=code, reason=reason)


def is_transient(error: Exception) -> bool:
    """Whether the same request may well succeed in a moment."""
    if isinstance(error, UntrustedError):
        return False
    if isinstance(error, ApiError):
        return error.code in _PASSING_STATUSES or any(text in error.message for text in _PASSING_TEXTS)
    return isinstance(error, UnreachableError)


def decode(content: bytes, status: int) -> Manifest:
    """The object that an answer holds."""
    decoded = _object(content)
    if decoded is None:
        raise not_kubernetes(content, status)
    return decoded


def not_kubernetes(content: bytes, status: int) -> ApiError:
    shown = content[:_SHOWN].decode(errors="replace").strip()
    return ApiError(f"not an answer of a Kubernetes API server: {shown!r}", code=status, reason="InvalidAnswer")


def failure(status: int, content: bytes) -> ApiError:
    """The server's own words where it sent a metav1.Status, else what whatever answered said."""
    decoded = _object(content)
    if decoded is not None and decoded.get("kind") == "Status":
        return status_failure(decoded, status)
    shown = content[:_SHOWN].decode(errors="replace").strip()
    return from_status(status, "", f"the server answered with status {status}: {shown}".rstrip(": "))


def status_failure(status: Manifest, code: int) -> ApiError:
    """The error that a metav1.Status tells of."""
    message = str(status.get("message") or status.get("reason") or "the server does not say why")
    error = from_status(int(status.get("code") or code), str(status.get("reason") or ""), message)
    details = status.get("details")
    if isinstance(details, dict):
        listed = [cause for cause in details.get("causes") or () if isinstance(cause, dict)]
        error.name = str(details.get("name") or "")
        error.causes = tuple(Cause(str(cause.get("reason") or ""), str(cause.get("message") or "")) for cause in listed)
    return error


def _object(content: bytes) -> Manifest | None:
    try:
        decoded = _decode_any(content)
    except msgspec.DecodeError:
        return None
    return decoded if isinstance(decoded, dict) else None
