"""The Secrets of a cluster: made, kept, renewed, and never taken from a person."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from fleet.controlplane.estate import definitions
from support.waiting import eventually

from slipway.api.cluster.controlplane.kubeadmcontrolplane import KubeadmControlPlane
from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, KUBEADM_CONTROL_PLANE, NAMESPACE, SECRET
from slipway.api.cluster.meta import decode
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.certificates import CertificatesError
from slipway.fleet.contract import secrets
from slipway.fleet.contract.facts import ClusterFacts
from slipway.fleet.controlplane.credentials import Credentials, owned_certificate
from slipway.kube import kubeconfig
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.cache.cache import Cache

CLUSTER = ClusterFacts("n", "c", uid="c", endpoint="[fd00::1]:6443")
SPEC = {
    "replicas": 1,
    "version": "v1.35.4",
    "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}},
    "machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": "i.example.com", "kind": "T", "name": "t"}}},
}
KIND = "KubeadmControlPlane"
OWNER = {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": KIND, "name": "cp", "uid": "u", "controller": True}


class Stage:
    def __init__(self, client: AsyncClient, plane: KubeadmControlPlane) -> None:
        self.client = client
        self.plane = plane
        self.cache = Cache(client)
        secrets.restrict(self.cache)
        self.now = datetime.now(UTC)
        self.verbs: list[str] = []
        client.on_request = lambda verb, status, seconds: self.verbs.append(verb)
        self.credentials = Credentials(client, self.cache, lambda: self.now)

    async def secret(self, name: str) -> dict[str, Any]:
        return await self.client.get(SECRET, name, "n")

    async def settle(self) -> None:
        wanted = {found["metadata"]["name"]: found["metadata"]["resourceVersion"] for found in await self.client.list(SECRET, "n")}

        async def caught_up() -> bool:
            return wanted == {found.name: found.metadata.resource_version for found in await self.cache.list(SECRET, "n")}

        await eventually(caught_up, "the cache has the Secrets")

    async def make(self) -> None:
        await self.credentials.certificates(self.plane, CLUSTER, initialized=False)
        assert await self.credentials.kubeconfig(self.plane, CLUSTER)
        await self.settle()


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        await client.create(NAMESPACE, {"metadata": {"name": "n"}})
        for crd in definitions():
            await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
        # Whoever owns Secrets must be there, or they are garbage.
        plane = await client.create(KUBEADM_CONTROL_PLANE, {"metadata": {"name": "cp", "namespace": "n"}, "spec": SPEC})
        made = Stage(client, decode(plane, KubeadmControlPlane))
        yield made
        await made.cache.close()


@pytest.mark.asyncio
async def test_there_is_no_kubeconfig_before_there_is_a_ca(stage: Stage) -> None:
    assert not await stage.credentials.kubeconfig(stage.plane, CLUSTER)


@pytest.mark.asyncio
async def test_what_was_looked_at_once_is_not_asked_for_again(stage: Stage) -> None:
    await stage.make()
    await stage.credentials.certificates(stage.plane, CLUSTER, initialized=True)
    await stage.credentials.kubeconfig(stage.plane, CLUSTER)
    stage.verbs.clear()
    await stage.credentials.certificates(stage.plane, CLUSTER, initialized=True)
    await stage.credentials.kubeconfig(stage.plane, CLUSTER)
    assert stage.verbs == []


@pytest.mark.asyncio
async def test_a_kubeconfig_is_renewed_when_half_its_time_is_over(stage: Stage) -> None:
    await stage.make()
    before = await stage.secret("c-kubeconfig")
    stage.now += timedelta(days=182)
    await stage.credentials.kubeconfig(stage.plane, CLUSTER)
    assert await stage.secret("c-kubeconfig") == before
    stage.now += timedelta(days=1)
    await stage.credentials.kubeconfig(stage.plane, CLUSTER)
    after = await stage.secret("c-kubeconfig")
    assert after["data"] != before["data"]
    document = kubeconfig.load(b64decode(after["data"]["value"]), "test")
    assert kubeconfig.named(document, "cluster", "c") is not None
    assert document["clusters"][0]["cluster"]["server"] == "https://[fd00::1]:6443"


@pytest.mark.asyncio
async def test_the_kubeconfig_of_a_person_is_not_renewed(stage: Stage) -> None:
    await stage.credentials.certificates(stage.plane, CLUSTER, initialized=False)
    metadata = {"name": "c-kubeconfig", "namespace": "n", "labels": {"cluster.x-k8s.io/cluster-name": "c"}}
    await stage.client.create(SECRET, {"metadata": metadata, "type": "Opaque", "stringData": {"value": "mine"}})
    assert await stage.credentials.kubeconfig(stage.plane, CLUSTER)
    found = await stage.secret("c-kubeconfig")
    assert "ownerReferences" not in found["metadata"]
    assert b64decode(found["data"]["value"]) == b"mine"


@pytest.mark.asyncio
async def test_what_is_missing_of_an_initialized_cluster_is_named(stage: Stage) -> None:
    await stage.make()
    await stage.client.delete(SECRET, "c-sa", "n")
    await stage.client.delete(SECRET, "c-proxy", "n")
    assert await stage.credentials.certificates(stage.plane, CLUSTER, initialized=True) == ["sa", "proxy"]


@pytest.mark.asyncio
async def test_a_ca_that_is_garbage_is_an_error(stage: Stage) -> None:
    await stage.make()
    await stage.client.patch(SECRET, "c-ca", "n", {"data": {"tls.crt": ""}}, type=PatchType.MERGE)
    await stage.settle()
    with pytest.raises(CertificatesError, match="missing data for key"):
        await stage.credentials.certificates(stage.plane, CLUSTER, initialized=True)


def owner(kind: str, name: str, *, controller: bool) -> dict[str, Any]:
    group = "bootstrap" if kind == "KubeadmConfig" else "controlplane"
    made = {"apiVersion": f"{group}.cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": name}
    return {**made, "controller": True} if controller else made


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("cluster.x-k8s.io/secret", [], [OWNER]),
        ("cluster.x-k8s.io/secret", [owner("KubeadmConfig", "k", controller=True)], [OWNER]),
        (
            "cluster.x-k8s.io/secret",
            [owner("KubeadmConfig", "k", controller=False)],
            [owner("KubeadmConfig", "k", controller=False), OWNER],
        ),
        ("cluster.x-k8s.io/secret", [{**OWNER, "uid": "before the move"}], [OWNER]),
        ("Opaque", [], []),
        ("Opaque", [owner("Other", "o", controller=True)], [owner("Other", "o", controller=True)]),
        ("Opaque", [{**OWNER, "uid": "before the move"}], [OWNER]),
    ],
)
def test_secrets_of_cluster_api_are_the_control_planes_and_no_others(
    kind: str, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    assert owned_certificate({"type": kind, "metadata": {"ownerReferences": before}}, OWNER) == after
