"""``fleet preflight``: what it reads of a management cluster and of a workload cluster, and what it prints."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run
from fleet.baremetal.rollouts.rolling import IMAGE, plane, workers
from fleet.world import preserving_crd

from slipway.api.cluster import crds
from slipway.api.cluster.infrastructure.definitions import DEFINITIONS as INFRASTRUCTURE
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    LEASE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NAMESPACE,
    NODE,
    SECRET,
    Kind,
)
from slipway.api.elemental.definitions import DEFINITIONS as ELEMENTAL
from slipway.embedded.server import EmbeddedServer
from slipway.fleet import registry
from slipway.kube.aio import AsyncClient

SPACE = "n"


def made(name: str, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": SPACE}, **({"spec": spec} if spec is not None else {}), **more}


def template(name: str, pool: str) -> dict[str, Any]:
    return made(name, {"template": {"spec": {"machineInventoryPoolRef": {"name": pool}}}})


def pool(name: str, *members: str) -> dict[str, Any]:
    return made(name, {"clusterName": "c", "machineInventories": [{"name": each} for each in members]})


def node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


async def fill(client: AsyncClient, kubeconfig: str) -> None:
    """A cluster of three control planes and two workers, whose own API server is the same one."""
    for definition in (*INFRASTRUCTURE, *ELEMENTAL):
        await client.create(CUSTOM_RESOURCE_DEFINITION, crds.crd(definition))
    for kind in (CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT):
        await client.create(CUSTOM_RESOURCE_DEFINITION, preserving_crd(kind))
    leases = registry.leases()
    for name in {SPACE, *(lease.namespace for _, lease in leases)}:
        await client.create(NAMESPACE, {"metadata": {"name": name}})
    for _, lease in leases:
        spec = {"holderIdentity": "m", "renewTime": datetime.now(UTC).isoformat(timespec="microseconds"), "leaseDurationSeconds": 300}
        await client.create(LEASE, {"metadata": {"name": lease.name, "namespace": lease.namespace}, "spec": spec})
    objects: list[tuple[Kind, dict[str, Any]]] = [
        (CLUSTER, made("c", {"controlPlaneEndpoint": {"host": "192.0.2.100", "port": 6443}, "controlPlaneRef": {"name": "cp"}})),
        (KUBEADM_CONTROL_PLANE, plane()),
        (MACHINE_DEPLOYMENT, workers()),
        (BAREMETAL_MACHINE_TEMPLATE, template("t", "cp-pool")),
        (BAREMETAL_MACHINE_TEMPLATE, template("w", "w-pool")),
        (MACHINE_INVENTORY_POOL, pool("cp-pool", "h0", "h1", "h2")),
        (MACHINE_INVENTORY_POOL, pool("w-pool", "h3", "h4")),
        (CONFIG_MAP, made("elemental-image-catalog", data={"v1.34.5": IMAGE, "v1.35.4": IMAGE})),
        (SECRET, made("platform-registry", data={"address": b64encode(b"registry.example.com").decode()})),
        (SECRET, made("c-kubeconfig", data={"value": b64encode(kubeconfig.encode()).decode()})),
    ]
    for number in range(5):
        objects.append((NODE, node(f"h{number}")))
        objects.append((MACHINE_INVENTORY, made(f"h{number}", {})))
        machine = made(f"m{number}", {"machineInventoryPoolRef": {"name": "cp-pool"}})
        machine["metadata"]["labels"] = {"cluster.x-k8s.io/cluster-name": "c"}
        objects.append((BAREMETAL_MACHINE, machine))
    for kind, content in objects:
        stored = await client.create(kind, {**content, "apiVersion": kind.api_version, "kind": kind.kind})
        if kind == BAREMETAL_MACHINE:
            await client.update(kind, {**stored, "status": {"phase": "Running"}}, subresource="status")
        if kind == NODE:
            await client.update(kind, {**stored, "status": content["status"]}, subresource="status")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An API server in a thread, and the path of its kubeconfig."""
    path, up, loop = tmp_path_factory.mktemp("fleet") / "kubeconfig", threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
            await fill(client, server.kubeconfig())
            path.write_text(server.kubeconfig())
            up.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert up.wait(30)
    yield path
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)
    loop.close()


def test_a_cluster_that_is_ready_passes(run: Run, server: Path) -> None:
    outcome = run("fleet", "preflight", "c", "-n", SPACE, "--to", "v1.35.4", "--kubeconfig", str(server))
    assert outcome.code == 0, outcome.out + outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["PREREQUISITE", "STATUS", "MESSAGE"]
    assert any(line.startswith("maxSurge is 0 everywhere") and " ok " in line for line in lines)
    assert any("Distribution Version" in line and " unknown " in line for line in lines)


def test_the_registrys_secret_is_the_one_that_is_named(run: Run, server: Path) -> None:
    where = ("--kubeconfig", str(server), "--registry-secret", "of-another-name")
    outcome = run("fleet", "preflight", "c", "-n", SPACE, "--to", "v1.35.4", "-o", "json", *where)
    assert outcome.code == 1
    failed = [each for each in json.loads(outcome.out)["checks"] if each["status"] == "failed"]
    assert ["registry of hosts" in each["check"] for each in failed] == [True]


def test_what_fails_is_the_exit_code_and_a_sentence(run: Run, server: Path) -> None:
    outcome = run("fleet", "preflight", "c", "-n", SPACE, "--to", "v1.36.3", "-o", "json", "--kubeconfig", str(server))
    assert outcome.code == 1
    answer = json.loads(outcome.out)
    assert answer["passed"] is False
    assert {each["check"] for each in answer["checks"] if each["status"] == "failed"} == {
        "v1.36.3 is in the image catalog",
        "the control plane goes up one minor version at most",
    }
    assert f"2 of {len(answer['checks'])} prerequisites of an upgrade to v1.36.3 are not met" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--to", "v1.35.4"], "which cluster is to be upgraded is missing"),
        (["c", "--to", "soon"], 'could not parse "soon" as version'),
        (["c", "--to", "v1.35.4", "-o", "xml"], '"xml" is not a value of --output: use table or json'),
        (["c"], "required flag(s)"),
    ],
)
def test_a_bad_question_gets_a_sentence(run: Run, arguments: list[str], sentence: str) -> None:
    outcome = run("fleet", "preflight", *arguments)
    assert outcome.code == 1
    assert sentence in outcome.err


def test_a_cluster_that_is_not_there_is_told(run: Run, server: Path) -> None:
    outcome = run("fleet", "preflight", "other", "--to", "v1.35.4", "--kubeconfig", str(server))
    assert outcome.code == 1
    assert 'there is no Cluster "other" in the namespace default' in outcome.err
