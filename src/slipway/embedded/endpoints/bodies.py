"""The bodies of requests: which object they hold, and whether it is the one that the path is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.embedded import errors
from slipway.embedded.endpoints import protobuf
from slipway.embedded.registry import types

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest


JSON, YAML = "application/json", "application/yaml"
_TYPES = (JSON, YAML)


def decode(body: bytes, content_type: str, kind: str) -> Manifest:
    """The object in a body of JSON or YAML."""
    media_type = content_type.partition(";")[0].strip() or JSON
    if media_type == protobuf.MEDIA_TYPE:
        try:
            return types.shallow(protobuf.decode(body))
        except ValueError as error:
            raise errors.bad_request(f"the object provided is unrecognized (must be of type {kind}): {error}") from None
    if media_type not in (*_TYPES, "text/plain", "application/octet-stream", "application/apply-patch+yaml"):
        raise errors.unsupported_media_type(_TYPES)
    try:
        decoded = _yaml(body) if "yaml" in media_type else types.decode(body)
    except ValueError as error:
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {error}"
        ) from None
    except OperatorError as error:
        raise errors.bad_request(f"error converting YAML to JSON: {error.message}") from None
    if not isinstance(decoded, dict):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: "
            "json: cannot unmarshal into Go value of type struct"
        )
    return decoded


def _yaml(body: bytes) -> Any:
    # Clients send JSON as YAML as well, and it is read faster as what it is.
    if body.lstrip()[:1] == b"{":
        try:
            return types.decode(body)
        except ValueError:
            pass
    try:
        documents = goyaml.load(body.decode())
    except UnicodeDecodeError as error:
        raise errors.bad_request(f"yaml: invalid UTF-8: {error}") from None
    return types.shallow(documents[0].value if documents else None)
