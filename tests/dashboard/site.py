"""A manager without controllers that serves the page, on an embedded API server, and somebody who looks at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    Kind,
    named,
)
from slipway.dashboard.options import DashboardOptions
from slipway.dashboard.server import DashboardServer
from slipway.dashboard.serving import attach
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.manifests import DASHBOARD, NAME, Installation, manifests
from slipway.fleet.manifests import NAMESPACE as HOME
from slipway.fleet.overview.objects import KINDS
from slipway.kube.aio import AsyncClient
from slipway.runtime import rbac
from slipway.runtime.manager import Manager, ManagerOptions

Manifest = dict[str, Any]
SPACES = ("team-a", "team-b")


def open_crd(kind: Kind) -> Manifest:
    """A CRD that takes everything, and has no status of its own: an object is written at once."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": kind.list_kind},
            "scope": "Namespaced",
            "versions": [{"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


class Event(msgspec.Struct):
    name: str
    data: Any
    id: str


class Site:
    """``client`` is the administrator's, ``session`` that of somebody with a browser."""

    def __init__(self, server: EmbeddedServer, client: AsyncClient, dashboard: DashboardServer, session: aiohttp.ClientSession) -> None:
        self.server, self.client, self.dashboard, self._session = server, client, dashboard, session

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.dashboard.port}"

    async def create(self, *manifests: Manifest) -> None:
        for each in manifests:
            await self.client.create(named(each["apiVersion"], each["kind"]), each)

    async def allow(self, user: str, *kinds: Kind, namespace: str = "") -> str:
        """Let somebody list kinds, in a namespace or everywhere; their token."""
        rules = [rbac.rule(kind, "list") for kind in kinds]
        role = rbac.role(f"role-of-{user}", namespace, rules) if namespace else rbac.cluster_role(f"role-of-{user}", rules)
        await self.client.create(ROLE if namespace else CLUSTER_ROLE, role)
        await self.client.create(ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING, rbac.binding(role, rbac.user(user)))
        return self.token(user)

    def token(self, user: str) -> str:
        self.server.add_token(f"token-of-{user}", user)
        return f"token-of-{user}"

    @asynccontextmanager
    async def get(self, path: str, token: str = "", **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        async with self._session.get(self.url + path, headers={**bearer, **headers}) as answer:
            yield answer

    async def ask(self, path: str, token: str = "") -> tuple[int, Any]:
        async with self.get(path, token) as answer:
            return answer.status, await answer.json(content_type=None)

    async def rows(self, token: str, path: str = "/api/state") -> set[str]:
        status, state = await self.ask(path, token)
        assert status == 200, state
        return {row["key"] for row in state["rows"]}

    async def is_seen(self, token: str, key: str) -> bool:
        status, state = await self.ask("/api/state", token)
        return status == 200 and any(row["key"] == key for row in state["rows"])


async def events(answer: aiohttp.ClientResponse) -> AsyncGenerator[Event, None]:
    """What a stream tells, without signs of life."""
    fields: dict[str, str] = {}
    async for line in answer.content:
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield Event(fields["event"], msgspec.json.decode(fields["data"]), fields.get("id", ""))
            fields = {}
        else:
            fields = {}


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Site]:
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        for namespace in (HOME, *SPACES):
            await client.create(NAMESPACE, {"metadata": {"name": namespace}})
        for kind in KINDS.values():
            await client.create(CUSTOM_RESOURCE_DEFINITION, open_crd(kind))
        # What the page's own role does not give, the manager may not do.
        for each in manifests(Installation(rules=(), crds=(), webhooks=(), controllers=(), image="none", dashboard=True)):
            if each["metadata"]["name"] == DASHBOARD:
                await client.create(named(each["apiVersion"], each["kind"]), each)
        manager = Manager(server.connection(f"system:serviceaccount:{HOME}:{NAME}", ()), ManagerOptions())
        dashboard = attach(manager, DashboardOptions(bind_address="127.0.0.1:0"), HOME)
        for name, value in options.items():
            setattr(dashboard, f"_{name}", value)
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        try:
            await eventually(lambda: dashboard.port or running.done(), "the page is served")
            connector = aiohttp.TCPConnector(ssl=False)
            async with aiohttp.ClientSession(connector=connector, auto_decompress=True) as session:
                yield Site(server, client, dashboard, session)
        finally:
            stop.set()
            await asyncio.wait_for(running, 20)
