"""What a request asks for, as apiserver reads it: the verb and the resource, from its method and path, and the options of its query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from slipway.embedded import errors
from slipway.embedded.access.authorization import Attributes
from slipway.embedded.errors import FieldError
from slipway.embedded.registry.metadata import path_segment_problems
from slipway.embedded.storage import selectors
from slipway.embedded.storage.read import ListOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.embedded.call import Call

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_INTEGER = re.compile("[+-]?[0-9]+")
_INT64 = 1 << 63
_LONGEST_INTEGER = 100
_LONGEST_MANAGER = 128


def parse(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """Read a raw (still quoted) path."""
    other = Attributes(verb=method.lower(), path=path)
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
        verb = "watch" if flag(query, "watch") else "list"
        # RBAC may allow the watch of one object by its name.
        name = _name_of(query.get("fieldSelector", ""))
        return Attributes(verb, path, group, version, namespace, resource, "", name)
    if not name and verb == "delete":
        verb = "deletecollection"
    return Attributes(verb, path, group, version, namespace, resource, subresource, name)


def _name_of(selector: str) -> str:
    """The one name that a field selector asks for, read as the list or the watch itself will read it."""
    try:
        name = selectors.exact(selectors.parse_fields(selector), "metadata.name") or ""
    except errors.StatusError:
        # Nothing is listed by what cannot be read: the request is refused once it is known who asks.
        return ""
    return "" if path_segment_problems(name) else name


def list_options(query: Mapping[str, str]) -> ListOptions:
    """The options of a list, a watch or the deletion of a collection."""
    return ListOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=number(query, "limit"),
        token=query.get("continue", ""),
        version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        seconds=number(query, "timeoutSeconds"),
        bookmarks=bool(flag(query, "allowWatchBookmarks")),
        initial=flag(query, "sendInitialEvents"),
    )


def selection(call: Call, options: ListOptions) -> selectors.Selection:
    """The objects that a list, a watch or a deletion is about."""
    resource = call.resource
    custom = resource.custom.selectable if resource.custom is not None else None
    return selectors.select(call.namespace, options.labels, options.fields, bucket=resource.bucket, group=resource.group, custom=custom)


def manager(query: Mapping[str, str], agent: str) -> str:
    """Who owns the fields that a request writes: who it says, or the program that sent it."""
    return query.get("fieldManager") or agent.partition("/")[0][:_LONGEST_MANAGER] or "unknown"


def dry_run(query: Mapping[str, str]) -> bool:
    wanted = query.get("dryRun", "")
    if wanted not in ("", "All"):
        raise errors.invalid("meta.k8s.io", "CreateOptions", "", [FieldError.not_supported("dryRun", [wanted], ("All",))])
    return bool(wanted)


def field_validation(query: Mapping[str, str]) -> str:
    wanted = query.get("fieldValidation", "")
    if wanted not in ("", "Ignore", "Warn", "Strict"):
        wrong = FieldError.not_supported("fieldValidation", wanted, ("", "Ignore", "Strict", "Warn"))
        raise errors.invalid("meta.k8s.io", "CreateOptions", "", [wrong])
    return wanted or "Warn"


def flag(query: Mapping[str, str], name: str) -> bool | None:
    """A boolean of a query, None where there is none: all that does not say no says yes."""
    return query[name].lower() not in ("false", "0") if name in query else None


def number(query: Mapping[str, str], name: str) -> int:
    """An int64 of a query; 0 where there is none."""
    text = query.get(name, "")
    if not text:
        return 0
    if not _INTEGER.fullmatch(text):
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _LONGEST_INTEGER or not -_INT64 <= int(text) < _INT64:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)
