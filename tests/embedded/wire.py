"""Requests to an embedded server, with the code and the document of every answer, and watches as lists of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp

from slipway.credentials import tls
from slipway.kube.connection import Connection

Manifest = dict[str, Any]

MERGE = "application/merge-patch+json"
DEADLINE = 10.0


class Wire:
    """Talks to a server as one user."""

    def __init__(self, connection: Connection, session: aiohttp.ClientSession) -> None:
        self._connection, self._session = connection, session
        self.headers: Mapping[str, str] = {}
        """Those of the last answer."""

    async def ask(
        self, method: str, path: str, body: object = None, content_type: str = "application/json", **headers: str
    ) -> tuple[int, Manifest]:
        sent = {"Content-Type": content_type, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self._connection.token:
            sent["Authorization"] = f"Bearer {self._connection.token}"
        data = None if body is None else json.dumps(body)
        async with self._session.request(method, self._connection.server + path, data=data, headers=sent) as answer:
            text = await answer.text()
            self.headers = answer.headers
            return answer.status, json.loads(text) if text.startswith("{") else {"text": text}

    async def make(self, path: str, manifest: Manifest) -> Manifest:
        code, document = await self.ask("POST", path, manifest)
        assert code == 201, document
        return document

    async def get(self, path: str) -> Manifest | None:
        code, document = await self.ask("GET", path)
        return document if code == 200 else None

    async def patch(self, path: str, patch: object) -> Manifest:
        code, document = await self.ask("PATCH", path, patch, MERGE)
        assert code == 200, document
        return document

    async def until_gone(self, path: str) -> None:
        await until_async(lambda: self._is_gone(path))

    async def _is_gone(self, path: str) -> bool:
        return (await self.ask("GET", path))[0] == 404

    @asynccontextmanager
    async def watch(self, path: str) -> AsyncIterator[AsyncIterator[Manifest]]:
        async with self._session.get(self._connection.server + path) as answer:
            assert answer.status == 200, await answer.text()

            async def events() -> AsyncIterator[Manifest]:
                while line := await asyncio.wait_for(answer.content.readline(), DEADLINE):
                    yield json.loads(line)

            yield events()


@asynccontextmanager
async def wire(connection: Connection) -> AsyncIterator[Wire]:
    context: Any = False
    if connection.server.startswith("https"):
        context = tls.client_context(
            connection.server, ca=connection.ca, certificate=connection.client_certificate, key=connection.client_key
        )
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), read_bufsize=2**20) as session:
        yield Wire(connection, session)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.002)


async def until_async(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await condition():
            await asyncio.sleep(0.005)


def config_map(name: str, **metadata: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def definition(plural: str = "gadgets", *, versions: tuple[str, ...] = ("v1",), **spec: Any) -> Manifest:
    """A CustomResourceDefinition without rules; the first version is stored."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    group = "embedded.test"
    served = [{"name": name, "served": True, "storage": name == versions[0], "schema": schema} for name in versions]
    names = {"plural": plural, "kind": plural.rstrip("s").capitalize()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": served, **spec},
    }


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def define(asker: Wire, manifest: Manifest) -> None:
    """Create a definition and await that it is served."""
    await asker.make(DEFINITIONS, manifest)
    spec = manifest["spec"]
    for version in spec["versions"]:
        path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
        await until_async(partial(asker.get, path))
