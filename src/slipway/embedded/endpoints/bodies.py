"""The bodies of requests: which object they hold, and whether it is the one that the path is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.embedded import errors, fielderrors
from slipway.embedded.endpoints import protobuf

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource


JSON, YAML = "application/json", "application/yaml"
_TYPES = (JSON, YAML)


def decode(body: bytes, content_type: str, kind: str) -> Manifest:
    """The object in a body of JSON or YAML."""
    media_type = content_type.partition(";")[0].strip() or JSON
    if media_type == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(body)
        except protobuf.ProtobufError as error:
            raise errors.bad_request(f"the object provided is unrecognized (must be of type {kind}): {error}") from None
    if media_type not in (*_TYPES, "text/plain", "application/octet-stream", "application/apply-patch+yaml"):
        raise errors.unsupported_media_type(_TYPES)
    try:
        decoded = _yaml(body) if "yaml" in media_type else msgspec.json.decode(body)
    except msgspec.DecodeError as error:
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
            return msgspec.json.decode(body)
        except msgspec.DecodeError:
            pass
    try:
        documents = goyaml.load(body.decode())
    except UnicodeDecodeError as error:
        raise errors.bad_request(f"yaml: invalid UTF-8: {error}") from None
    return documents[0].value if documents else None


def check(resource: Resource, manifest: Manifest, namespace: str, name: str = "", *, fill: bool = True) -> None:
    """The object is of the kind, in the namespace and of the name that the path says; what it leaves out is filled in.

    ``fill`` is for the name and the namespace; an apply patch is taken as it is.
    """
    api_version, kind = manifest.get("apiVersion") or "", manifest.get("kind") or ""
    if resource.custom is not None and not (api_version and kind):
        field = "Kind" if not kind else "apiVersion"
        text = msgspec.json.encode(manifest).decode()
        unknown = f"the object provided is unrecognized (must be of type {resource.kind})"
        raise errors.bad_request(f"{unknown}: Object '{field}' is missing in '{text}' ({text})")
    if api_version and api_version != resource.api_version and resource.custom is None:
        raise errors.bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: no kind "{kind or resource.kind}" '
            f'is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if api_version and api_version != resource.api_version:
        raise errors.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({resource.api_version})"
        )
    if kind and kind != resource.kind:
        if resource.custom is None:
            text = f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
            package = resource.group.partition(".")[0] or "core"
            raise errors.bad_request(f"{text}: converting ({resource.version}.{kind}) to ({package}.{resource.kind}): unknown conversion")
        name = (manifest.get("metadata") or {}).get("name") or ""
        raise errors.invalid(resource.group, kind, name, [fielderrors.invalid("kind", kind, f"must be {resource.kind}")])
    manifest["apiVersion"], manifest["kind"] = resource.api_version, resource.kind
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return
    given = metadata.get("namespace") or ""
    if resource.namespaced and given not in ("", namespace):
        raise errors.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if not resource.namespaced and given:
        raise errors.bad_request("namespace may not be set on an object that is not in one")
    if resource.namespaced and fill:
        metadata["namespace"] = namespace
    if name:
        if not metadata.get("name"):
            if fill and not metadata.get("generateName"):
                metadata["name"] = name
        elif metadata["name"] != name:
            raise errors.bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
