"""The CRDs made from our types on a real kube-apiserver: what it takes, what it refuses, and both versions through our conversion."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from copy import deepcopy
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from e2e.planes import connection_of, management_plane, real_server
from support.ports import free_port

from slipway.api.cluster import crds
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, KUBEADM_CONFIG, NAMESPACE
from slipway.api.cluster.names import CONVERSION_DATA_ANNOTATION as DATA_ANNOTATION
from slipway.fleet import manifests as made
from slipway.fleet.manifests import Installation
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.connection import Connection
from slipway.kube.errors import ApiError, is_transient
from slipway.runtime.apply import install
from slipway.runtime.webhook.server import Certified, WebhookServer
from slipway.runtime.webhook.store import CertificateStore

pytestmark = [*real_server, pytest.mark.asyncio, pytest.mark.recorded]
GOLDEN = Path(__file__).parents[1] / "golden/clusterapi"
SPACE = "types"
KINDS = {definition.kind.kind: definition.kind for definition in crds.DEFINITIONS}
# v1beta1 can say all of these but an explicit 0.
WITHOUT_DATA = ("MachineSet", "MachineDrainRule")
# What v1beta2's schema refuses, and in which words.
REFUSED = {
    "empty lists v1beta2": "should have at least 1 items",
    "the same argument twice": "extraArgs name must be unique",
    "an empty Cluster v1beta2": "spec: Required value",
    "an empty Machine v1beta2": "spec: Required value",
    "an empty MachineSet v1beta2": "spec: Required value",
    "an empty MachineDeployment v1beta2": "spec: Required value",
    "an empty MachineHealthCheck v1beta2": "spec: Required value",
    "an empty KubeadmControlPlane v1beta2": "spec: Required value",
}


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with management_plane(tmp_path_factory.mktemp("management")) as plane:
        yield connection_of(plane.kubeconfig)


@asynccontextmanager
async def served(admin: Connection) -> AsyncIterator[AsyncClient]:
    """A client of a server that has our kinds and asks us to convert them."""
    port = free_port()
    async with AsyncClient(admin) as client:
        if await client.find(NAMESPACE, SPACE) is None:
            await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
        definitions = crds.crds()
        installation = Installation(
            rules=[], crds=definitions, webhooks=[], controllers=(), image="none", namespace=SPACE, webhook_url=f"https://127.0.0.1:{port}"
        )
        store = CertificateStore(client, SPACE, made.WEBHOOK_SECRET, made.targets(definitions, []))
        server = WebhookServer(Certified(store, lambda: datetime.now(UTC)), address="127.0.0.1", port=port)
        server.add_conversion(partial(convert, lookup=lambda group, _: f"{group}/v1beta2"))
        await install(client, made.manifests(installation), lambda line: None)
        stop = asyncio.Event()
        task = asyncio.create_task(server.run(stop))
        try:
            async with asyncio.timeout(30):
                while not await converts(client):
                    await asyncio.sleep(0.1)
            yield client
        finally:
            stop.set()
            await task


async def converts(client: AsyncClient) -> bool:
    """Whether the server knows the webhook's authority: it takes a moment after the definition was written."""
    older = KUBEADM_CONFIG._replace(version="v1beta1")
    probe = {"apiVersion": KUBEADM_CONFIG.api_version, "kind": "KubeadmConfig", "metadata": {"name": "probe", "namespace": SPACE}}
    try:
        await client.create(KUBEADM_CONFIG, probe)
        await client.get(older, "probe", SPACE)
    except ApiError as error:
        # While the server exchanges what serves the kind, requests may also be turned away.
        if not is_transient(error) and not any(word in error.message for word in ("x509", "connect", "not find", "not found")):
            raise
        return False
    finally:
        await client.delete(KUBEADM_CONFIG, "probe", SPACE)
    return True


def objects() -> list[dict[str, Any]]:
    """The objects of v1beta2 among the recorded cases, and the samples of upstream's book."""
    out = []
    cases = [case for name in ("objects", "machines") for case in json.loads((GOLDEN / f"conversion/{name}.json").read_text())]
    for number, case in enumerate(cases):
        content = deepcopy(case["object"])
        if content["apiVersion"].endswith("/v1beta2") and "change" not in case and "error" not in case["there"]:
            content["metadata"] = {"name": f"case-{number}", "namespace": SPACE, "annotations": {"case": case["name"]}}
            out.append(content)
    for number, sample in enumerate(json.loads((GOLDEN / "samples.json").read_text())):
        about = {"name": f"sample-{number}", "namespace": SPACE, "annotations": {"case": sample["page"]}}
        out.append({"apiVersion": KUBEADM_CONFIG.api_version, "kind": "KubeadmConfig", "metadata": about, "spec": sample["spec"]})
    return out


async def test_the_server_accepts_the_definitions(admin: Connection) -> None:
    async with served(admin) as client:
        for definition in crds.DEFINITIONS:
            status = (await client.get(CUSTOM_RESOURCE_DEFINITION, definition.name))["status"]
            conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
            assert conditions == {"NamesAccepted": "True", "Established": "True"}, "no NonStructuralSchema, no KubernetesAPIApprovalPolicy"


async def test_an_object_goes_through_v1beta1_and_loses_nothing(admin: Connection) -> None:
    async with served(admin) as client:
        seen = []
        for content in objects():
            name, case = content["metadata"]["name"], content["metadata"]["annotations"]["case"]
            kind = KINDS[content["kind"]]
            older = kind._replace(version="v1beta1")
            if case in REFUSED:
                with pytest.raises(ApiError, match=REFUSED[case]):
                    await client.create(kind, content)
                continue
            if kind.kind == "MachineSet":
                content["spec"]["template"]["spec"].pop("minReadySeconds", None)
            created = await client.create(kind, content)
            if "status" in content:
                created = await client.update(kind, created | {"status": content["status"]}, subresource="status")
            old = await client.get(older, name, SPACE)
            assert (DATA_ANNOTATION in old["metadata"]["annotations"]) == (kind.kind not in WITHOUT_DATA)
            old["metadata"]["labels"] = {"written": "by-v1beta1"}
            await client.update(older, old)
            applied = {"apiVersion": older.api_version, "kind": kind.kind, "metadata": {"name": name, "annotations": {"applied": "too"}}}
            await client.patch(older, name, SPACE, applied, type=PatchType.APPLY, field_manager="a-client-of-v1beta1")
            after = await client.get(kind, name, SPACE)
            assert after["metadata"]["labels"] == {"written": "by-v1beta1"}
            assert after["metadata"]["annotations"] == {"case": case, "applied": "too"}
            assert (after.get("spec"), after.get("status")) == (created.get("spec"), content.get("status")), case
            assert after["metadata"]["generation"] == 1, f"{case}: to the server nothing has changed"
            seen.append(name)
        assert len(seen) >= 30


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec in body should have at least 1 properties"),
        ({"format": "other"}, 'spec.format: Unsupported value: "other": supported values: "cloud-config", "ignition"'),
        ({"files": [{"content": "x"}]}, r"spec.files\[0\].path: Required value"),
        ({"files": [{"path": "/a", "contentFormat": "jinja"}]}, 'supported values: "Raw", "Template", "go-template"'),
        ({"diskSetup": {"partitions": [{"device": "/dev/sda"}]}}, r"exactly one of the fields in \[layout diskLayout\] must be set"),
        ({"initConfiguration": {"timeouts": {"discoverySeconds": -1}}}, "should be greater than or equal to 0"),
        (
            {"diskSetup": {"partitions": [{"device": "/d", "diskLayout": [{"percentage": 9, "partitionType": "x"}]}]}},
            "partitionType must be one of Linux, LinuxSwap",
        ),
    ],
)
async def test_what_the_types_do_not_allow_is_refused(admin: Connection, spec: dict[str, Any], words: str) -> None:
    async with AsyncClient(admin) as client:
        content = {
            "apiVersion": KUBEADM_CONFIG.api_version,
            "kind": "KubeadmConfig",
            "metadata": {"name": "bad", "namespace": SPACE},
            "spec": spec,
        }
        with pytest.raises(ApiError, match=words):
            await client.create(KUBEADM_CONFIG, content)
