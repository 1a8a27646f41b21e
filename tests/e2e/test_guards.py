"""The guards of rollouts on a real API server: which objects it asks about, in which version, and what a literal patch is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from e2e.planes import connection_of, management_plane, real_server
from fleet.baremetal.rollouts.rolling import IMAGE
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster import crds
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE_TEMPLATE,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NAMESPACE,
)
from slipway.fleet import manifests as made
from slipway.fleet.baremetal.rollouts.known import KINDS, Cached
from slipway.fleet.baremetal.webhooks import webhooks
from slipway.fleet.inventory import webhooks as inventory
from slipway.fleet.manifests import Installation
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.connection import Connection
from slipway.kube.errors import ApiError
from slipway.runtime.apply import install
from slipway.runtime.cache.cache import Cache
from slipway.runtime.webhook.server import Certified, WebhookServer
from slipway.runtime.webhook.store import CertificateStore

pytestmark = [*real_server, pytest.mark.asyncio]
SPACE = "cpaas-system"
OLD_DEPLOYMENT = MACHINE_DEPLOYMENT._replace(version="v1beta1")
OLD_PLANE = KUBEADM_CONTROL_PLANE._replace(version="v1beta1")
PATCH = PatchType.MERGE


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with management_plane(tmp_path_factory.mktemp("management")) as plane:
        yield connection_of(plane.kubeconfig)


@asynccontextmanager
async def guarded(admin: Connection) -> AsyncIterator[AsyncClient]:
    """A client of a server that has our kinds and asks our guards; upstream's own rules are not asked for here."""
    port = free_port()
    async with AsyncClient(admin) as client, AsyncClient(admin) as reading:
        if await client.find(NAMESPACE, SPACE) is None:
            await client.create(NAMESPACE, {"metadata": {"name": SPACE}})
        cache = Cache(reading)
        hooks = [*webhooks(Cached(cache)), *inventory.webhooks()]
        definitions = crds.crds()
        installation = Installation(
            rules=[],
            crds=definitions,
            webhooks=hooks,
            controllers=(),
            image="none",
            namespace=SPACE,
            webhook_url=f"https://127.0.0.1:{port}",
        )
        store = CertificateStore(client, SPACE, made.WEBHOOK_SECRET, made.targets(definitions, hooks, SPACE))
        server = WebhookServer(Certified(store, lambda: datetime.now(UTC)), address="127.0.0.1", port=port)
        server.add(*hooks)
        server.add_conversion(partial(convert, lookup=lambda group, _: f"{group}/v1beta1"))
        await install(client, made.manifests(installation), lambda line: None)
        stop = asyncio.Event()
        task = asyncio.create_task(server.run(stop))

        async def serving() -> bool:
            return not server.ready()

        await eventually(serving, "the webhooks are served")
        for kind in (*KINDS, CONFIG_MAP):
            await cache.list(kind, SPACE)
        try:
            yield client
        finally:
            stop.set()
            await task
            await cache.close()


def named(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": SPACE}, "spec": spec}


def deployment(surge: int, kind: str = "BaremetalMachineTemplate") -> dict[str, Any]:
    """As the guide writes it: v1beta1."""
    reference = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": "w", "namespace": SPACE}
    template = {"clusterName": "c", "version": "v1.34.5", "bootstrap": {"dataSecretName": "x"}, "infrastructureRef": reference}
    labels = {"cluster.x-k8s.io/deployment-name": "md"}
    return named(
        f"md-{kind.lower()}",
        {
            "clusterName": "c",
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": template},
        },
    )


async def test_the_servers_answers_are_the_guards(admin: Connection) -> None:
    async with guarded(admin) as client:
        catalog = {"metadata": {"name": "elemental-image-catalog", "namespace": SPACE}, "data": {"v1.34.5": IMAGE}}
        await client.create(CONFIG_MAP, catalog)
        # A key without its v, by the guide's own patch.
        patch = [{"op": "add", "path": "/data/1.35.4", "value": IMAGE}]
        with pytest.raises(ApiError, match="has no leading v"):
            await client.patch(CONFIG_MAP, "elemental-image-catalog", SPACE, patch, type=PatchType.JSON)
        await client.create(CONFIG_MAP, {"metadata": {"name": "other", "namespace": SPACE}, "data": {"anything": "goes"}})
        await client.create(MACHINE_INVENTORY_POOL, named("w", {"clusterName": "c", "machineInventories": [{"name": "a"}]}))
        twice = {"clusterName": "c", "machineInventories": [{"name": "b"}, {"name": "b"}]}
        with pytest.raises(ApiError, match="Duplicate value"):
            await client.create(MACHINE_INVENTORY_POOL, named("twice", twice))
        template = {"template": {"spec": {"machineInventoryPoolRef": {"name": "w"}}}}
        await client.create(BAREMETAL_MACHINE_TEMPLATE, named("w", template))

        # Written as v1beta1, judged as v1beta2; another provider's is not judged.
        with pytest.raises(ApiError, match="set maxSurge to 0; to replace more machines at a time, raise maxUnavailable"):
            await client.create(OLD_DEPLOYMENT, deployment(1))
        await client.create(OLD_DEPLOYMENT, deployment(1, kind="TestMachineTemplate"))
        made_one = await client.create(OLD_DEPLOYMENT, deployment(0))
        name = made_one["metadata"]["name"]
        version = {"spec": {"template": {"spec": {"version": "v1.34.9"}}}}
        with pytest.raises(ApiError, match=r'has no key "v1\.34\.9"'):
            await client.patch(OLD_DEPLOYMENT, name, SPACE, version, type=PATCH)
        # Who knows better says so.
        skip = {"metadata": {"annotations": {"slipway.io/skip-guards": "ImageCatalog"}}}
        await client.patch(OLD_DEPLOYMENT, name, SPACE, {**version, **skip}, type=PATCH)

        infrastructure = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "BaremetalMachineTemplate", "name": "w"}
        spec = {
            "replicas": 3,
            "version": "v1.34.5",
            "kubeadmConfigSpec": {},
            "machineTemplate": {"infrastructureRef": {**infrastructure, "namespace": SPACE}},
        }
        with pytest.raises(ApiError, match="KubeadmControlPlane cp has maxSurge 1"):
            await client.create(OLD_PLANE, named("cp", spec))
        await client.create(OLD_PLANE, named("cp", {**spec, "rolloutStrategy": {"rollingUpdate": {"maxSurge": 0}}}))
        with pytest.raises(ApiError, match="one minor version at a time"):
            await client.patch(OLD_PLANE, "cp", SPACE, {"spec": {"version": "v1.36.0"}}, type=PATCH)


async def test_an_inventory_is_asked_about_where_there_is_something_to_ask(admin: Connection) -> None:
    async with guarded(admin) as client:
        with pytest.raises(ApiError, match="data volumes that outlive a reprovisioning are not managed here"):
            await client.create(MACHINE_INVENTORY, named("h", {"storage": {"volumes": [{"name": "data"}]}}))
        await client.create(MACHINE_INVENTORY, {"metadata": {"name": "bare", "namespace": SPACE}})
        await client.create(MACHINE_INVENTORY, named("h", {"tpmHash": "a"}))
        annotated = {"metadata": {"annotations": {"baremetal.alauda.io/allocation-state": "Available"}}}
        await client.patch(MACHINE_INVENTORY, "h", SPACE, annotated, type=PATCH)
        with pytest.raises(ApiError, match="is by what the host is known"):
            await client.patch(MACHINE_INVENTORY, "h", SPACE, {"spec": {"tpmHash": "b"}}, type=PATCH)
