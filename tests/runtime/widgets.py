"""A kind of the tests' own, with a status sub-resource, on an API server in process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from slipway.api.cluster.kinds import Kind
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.runtime import apply

WIDGET = Kind("e.test.slipway.io", "v1", "Widget", "widgets")
SPACE = "e-widgets"
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{WIDGET.plural}.{WIDGET.group}"},
    "spec": {
        "group": WIDGET.group,
        "names": {"kind": WIDGET.kind, "plural": WIDGET.plural, "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == WIDGET.version,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}},
                "subresources": {"status": {}},
            }
            for name in ("v1", "v2")
        ],
    },
}


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "metadata": {"name": name, "namespace": SPACE}, "spec": spec}


@asynccontextmanager
async def api_client() -> AsyncIterator[AsyncClient]:
    """A client of an API server that has the widgets and a namespace for them."""
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        await prepare(client)
        yield client


async def prepare(client: AsyncClient) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    await apply.install(client, [namespace, CRD], lambda line: None)
