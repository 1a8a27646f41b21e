"""Everything that somebody could try at an API server with the credentials of a host, and what came of it.

Nothing is written, whoever is allowed to: all writes are dry runs.  It asks the server itself what it has, and so works with any.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from slipway.kube.aio import AsyncClient
from slipway.kube.errors import ApiError

# Whom a server lets ask what they may do: the ClusterRole system:basic-user.
_ABOUT_ONESELF = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
_METHODS = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
    "get": "GET",
    "list": "GET",
}
_FORBIDDEN = 403
SECRETS_PATHS = ("/metrics", "/logs/", "/debug/pprof/", "/configz", "/api/v1/secrets")


class Attempt(NamedTuple):
    verb: str
    path: str


async def everything(admin: AsyncClient, namespace: str, others: str) -> list[Attempt]:
    """All verbs on all resources of the server: in the host's own namespace, in another one, and in all of them."""
    groups = ["/api/v1"]
    found = json.loads(await admin.raw("/apis"))
    groups += [f"/apis/{group['preferredVersion']['groupVersion']}" for group in found["groups"]]
    attempts: list[Attempt] = []
    for group in groups:
        for resource in json.loads(await admin.raw(group))["resources"]:
            attempts += _of(group, resource, namespace, others)
    return attempts


def _of(group: str, resource: dict[str, Any], namespace: str, others: str) -> list[Attempt]:
    plural, _, sub = resource["name"].partition("/")
    if plural in _ABOUT_ONESELF:
        return []
    places = [f"{group}/namespaces/{place}" for place in (namespace, others)] if resource["namespaced"] else [group]
    found = []
    for verb in resource["verbs"]:
        if verb not in _METHODS:
            continue
        for place in places:
            collection = f"{place}/{plural}"
            one = f"{collection}/somebody{f'/{sub}' if sub else ''}"
            whole = verb in ("list", "deletecollection") or (verb == "create" and not sub)
            found.append(Attempt(verb, collection if whole else one))
        if verb == "list" and resource["namespaced"]:
            found.append(Attempt(verb, f"{group}/{plural}"))
    return found


async def allowed(client: AsyncClient, attempts: list[Attempt]) -> list[Attempt]:
    """What of it was not forbidden, whatever else was wrong with it."""
    return [attempt for attempt in attempts if await may(client, attempt.verb, attempt.path)]


async def may(client: AsyncClient, verb: str, path: str) -> bool:
    reads = verb in ("get", "list")
    query = "" if reads else f"{'&' if '?' in path else '?'}dryRun=All"
    body = b"{}" if verb in ("create", "update", "patch") else None
    kind = "application/merge-patch+json" if verb == "patch" else "application/json"
    try:
        await client.raw(path + query, method=_METHODS[verb], body=body, content_type=kind)
    except ApiError as error:
        return error.code != _FORBIDDEN
    return True
