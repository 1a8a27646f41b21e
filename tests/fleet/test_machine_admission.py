"""Machines and control planes on an API server that asks our webhooks: filled in, judged, stored, and read in either version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster import crds
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT
from slipway.embedded.server import EmbeddedServer
from slipway.fleet import manifests as made
from slipway.fleet.controlplane import webhooks as controlplane
from slipway.fleet.machines import webhooks as machines
from slipway.fleet.manifests import Installation
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.errors import ApiError, InvalidError
from slipway.runtime.apply import install
from slipway.runtime.webhook.server import Certified, WebhookServer
from slipway.runtime.webhook.store import CertificateStore

pytestmark = pytest.mark.asyncio

SPACE = "machines"
OLD = MACHINE_DEPLOYMENT._replace(version="v1beta1")
REFERENCE = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MetalMachineTemplate", "name": "workers"}
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "workers", "namespace": SPACE},
    "spec": {
        "clusterName": "c",
        "selector": {},
        "template": {
            "spec": {
                "clusterName": "c",
                "version": "1.35.0",
                "deletion": {"nodeDrainTimeoutSeconds": 300},
                "bootstrap": {"dataSecretName": "workers"},
                "infrastructureRef": REFERENCE,
            }
        },
    },
}
PLANE = {
    "metadata": {"name": "cp", "namespace": SPACE},
    "spec": {
        "replicas": 3,
        "version": "v1.35.0",
        "machineTemplate": {
            "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MetalMachineTemplate", "name": "cp"}}
        },
        "kubeadmConfigSpec": {"verbosity": 1},
    },
}


@pytest_asyncio.fixture
async def client() -> AsyncIterator[AsyncClient]:
    """A client of a server that has our kinds and asks us."""
    known: dict[tuple[str, str], dict[str, Any]] = {(SPACE, "cp"): PLANE}
    kinds = (MACHINE_DEPLOYMENT, KUBEADM_CONTROL_PLANE)
    hooks = [each for each in (*machines.webhooks(), *controlplane.webhooks(lambda *name: known.get(name))) if each.kind in kinds]
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        port, definitions = free_port(), [crds.crd(definition) for definition in crds.DEFINITIONS if definition.kind in kinds]
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
        webhooks = WebhookServer(Certified(store), address="127.0.0.1", port=port, retry=0.05)
        webhooks.add(*hooks)
        webhooks.add_conversion(partial(convert, lookup=lambda group, _: f"{group}/v1beta1"))
        await install(client, made.manifests(installation), lambda line: None)
        stop = asyncio.Event()
        task = asyncio.create_task(webhooks.run(stop))

        async def serving() -> bool:
            return not webhooks.ready()

        await eventually(serving, "the webhooks are served")
        yield client
        stop.set()
        await task


async def test_a_deployment_is_filled_in_and_read_in_both_versions(client: AsyncClient) -> None:
    await client.create(MACHINE_DEPLOYMENT, DEPLOYMENT)
    stored = await client.get(MACHINE_DEPLOYMENT, "workers", SPACE)
    assert stored["spec"]["replicas"] == 1
    assert stored["spec"]["rollout"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    assert stored["spec"]["selector"]["matchLabels"] == stored["spec"]["template"]["metadata"]["labels"]
    old = (await client.get(OLD, "workers", SPACE))["spec"]["template"]["spec"]
    assert (old["version"], old["nodeDrainTimeout"]) == ("v1.35.0", "5m0s")
    assert old["infrastructureRef"] == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "MetalMachineTemplate",
        "name": "workers",
        "namespace": SPACE,
    }


async def test_neither_surge_nor_unavailability_is_refused(client: AsyncClient) -> None:
    rollout = {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}
    with pytest.raises(InvalidError, match="maxUnavailable and maxSurge cannot both be 0"):
        await client.create(MACHINE_DEPLOYMENT, {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "rollout": rollout}})


async def test_a_control_plane_is_not_scaled_to_an_even_number(client: AsyncClient) -> None:
    await client.create(KUBEADM_CONTROL_PLANE, PLANE)
    with pytest.raises(ApiError, match="cannot be an even number when etcd is stacked"):
        await client.patch(KUBEADM_CONTROL_PLANE, "cp", SPACE, {"spec": {"replicas": 2}}, type=PatchType.MERGE, subresource="scale")
    scaled = await client.patch(KUBEADM_CONTROL_PLANE, "cp", SPACE, {"spec": {"replicas": 5}}, type=PatchType.MERGE, subresource="scale")
    assert scaled["spec"]["replicas"] == 5


async def test_a_jump_over_a_minor_version_becomes_a_target(client: AsyncClient) -> None:
    await client.create(KUBEADM_CONTROL_PLANE, PLANE)
    wanted: dict[str, Any] = {"spec": {"version": "v1.37.1"}}
    with pytest.raises(InvalidError, match=r"go to a v1\.36 first"):
        await client.patch(KUBEADM_CONTROL_PLANE, "cp", SPACE, wanted, type=PatchType.MERGE)
    wanted["metadata"] = {"annotations": {"slipway.io/multi-step-upgrade": "true"}}
    plane = await client.patch(KUBEADM_CONTROL_PLANE, "cp", SPACE, wanted, type=PatchType.MERGE)
    assert plane["spec"]["version"] == "v1.35.0"
    assert plane["metadata"]["annotations"]["slipway.io/upgrade-target"] == "v1.37.1"
