"""What the server refuses, as a metav1.Status with the words of kube-apiserver: programs read its reason, people its message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded import fielderrors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.fielderrors import FieldError


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
TOO_OLD_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned "
    "and now may show up in the list."
)

_PAGE = "page"


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
    about = {**_about(group, kind, name), "causes": fielderrors.causes(errors)}
    return StatusError(422, "Invalid", f'{qualified(group, kind)} "{name}" is invalid: {fielderrors.aggregate(errors)}', about)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def forbidden(group: str, resource: str, name: str, why: str) -> StatusError:
    what = "" if not resource else f"{qualified(group, resource)} "
    subject = f'{what}"{name}" is' if name else f"{what}is"
    return StatusError(403, "Forbidden", f"{subject} forbidden: {why}" if resource else f"forbidden: {why}", _about(group, resource, name))


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_supported(group: str, resource: str, action: str) -> StatusError:
    message = f'{action} is not supported on resources of kind "{qualified(group, resource)}"'
    return StatusError(405, "MethodNotAllowed", message, _about(group, resource, ""))


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
