"""Everything that somebody could try at an API server with the credentials of a host, and what came of it.

Nothing is written, whoever is allowed to: all writes are dry runs.  It asks the server itself what it has, and so works with any.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any, NamedTuple

from fleet.inventory.management import SPACE, Host, Management, connection

from slipway.api.cluster.kinds import MACHINE_INVENTORY, SECRET, path
from slipway.credentials.tpm import Identity
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


async def may(client: AsyncClient, verb: str, where: str) -> bool:
    reads = verb in ("get", "list")
    query = "" if reads else f"{'&' if '?' in where else '?'}dryRun=All"
    body = b"{}" if verb in ("create", "update", "patch") else None
    kind = "application/merge-patch+json" if verb == "patch" else "application/json"
    try:
        await client.raw(where + query, method=_METHODS[verb], body=body, content_type=kind)
    except ApiError as error:
        return error.code != _FORBIDDEN
    return True


async def attempted(management: Management, tpm: Identity) -> int:
    """Register a host, let it do what its agent does, and try everything else with its token; how many things were tried."""
    serving = await management.start()
    registration = await management.registration()
    config = await Host(registration["status"]["registrationURL"], serving, tpm).register()
    name = config["elemental"]["system-agent"]["secret-name"]
    await management.inventory("other", tpmHash="b" * 64)
    await management.secret("other")
    own = path(SECRET, SPACE, name)
    async with AsyncClient(connection(config)) as host:
        secret = await host.get(SECRET, name, SPACE)
        assert (await host.list(SECRET, SPACE, fields=f"metadata.name={name}"))[0]["metadata"]["name"] == name
        await host.update(SECRET, {**secret, "data": {**secret["data"], "plan-state": "cGVuZGluZw=="}})
        async with aclosing(host.watch(SECRET, SPACE, resource_version="0", fields=f"metadata.name={name}", timeout_seconds=1)) as events:
            assert (await anext(aiter(events))).type == "ADDED"
        await host.raw("/version")
        attempts = await everything(management.client, SPACE, "home")
        assert await allowed(host, attempts) == []
        mine = [Attempt(verb, own) for verb in ("patch", "delete")]
        assert await allowed(management.client, mine) == mine, "it is seen when somebody may"
        others = [Attempt(verb, path(SECRET, SPACE, "other")) for verb in ("get", "update", "patch", "delete")]
        certificate = Attempt("get", path(SECRET, "home", "slipway-registration-certificate"))
        everybody = Attempt("list", path(SECRET, SPACE))
        by_another_name = Attempt("list", f"{path(SECRET, SPACE)}?fieldSelector=metadata.name%3Dother")
        itself = Attempt("get", path(MACHINE_INVENTORY, SPACE, name))
        more = Attempt("create", f"/api/v1/namespaces/{SPACE}/serviceaccounts/host-{name}/token")
        tries = [*mine, *others, certificate, everybody, by_another_name, itself, more]
        tries += [Attempt("get", each) for each in SECRETS_PATHS]
        assert await allowed(host, tries) == []
    return len(attempts) + len(tries)
