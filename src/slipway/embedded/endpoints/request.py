"""What a request asks for: the verb and the resource, from its method and path, as apiserver's RequestInfo."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from slipway.embedded import errors
from slipway.embedded.registry.metadata import path_segment_problems
from slipway.embedded.storage import selectors

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


class RequestInfo(NamedTuple):
    """``resource`` is empty where the path is not that of a resource; then only ``verb`` and ``path`` are said."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


def parse(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """Read a raw (still quoted) path."""
    other = RequestInfo(verb=method.lower(), path=path)
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return other
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        # A namespace is a resource too: /namespaces/x and /namespaces/x/status are about itself.
        if len(rest) > 2 and not (rest[2] in _NAMESPACE_SUBRESOURCES and group == "" and len(rest) == 3):
            rest = rest[2:]
    resource = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = "/".join(rest[2:])
    verb = _VERBS.get(method, method.lower())
    if not name and verb == "get":
        verb = "watch" if query.get("watch") in ("1", "true", "True") else "list"
        # RBAC may allow the watch of one object by its name.
        name = _name_of(query.get("fieldSelector", ""))
        return RequestInfo(verb, path, group, version, namespace, resource, "", name)
    if not name and verb == "delete":
        verb = "deletecollection"
    return RequestInfo(verb, path, group, version, namespace, resource, subresource, name)


def _name_of(selector: str) -> str:
    """The one name that a field selector asks for, read as the list or the watch itself will read it."""
    try:
        name = selectors.exact(selectors.parse_fields(selector), "metadata.name") or ""
    except errors.StatusError:
        # Nothing is listed by what cannot be read: the request is refused once it is known who asks.
        return ""
    return "" if path_segment_problems(name) else name
