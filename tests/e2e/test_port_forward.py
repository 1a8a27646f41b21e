"""Tunnels through real API servers, kubelets and container runtimes to real etcd members; and around a kubelet that is dead."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from e2e.labcli import LabCommands
from e2e.nodes import Nodes, real_hosts

from slipway.api.machinery.yaml import goyaml
from slipway.fleet.certificates import KeyPair
from slipway.fleet.controlplane.workload.cluster import Workload
from slipway.fleet.controlplane.workload.etcdcredentials import client_context
from slipway.kube import portforward
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import from_kubeconfig
from slipway.kube.errors import ApiError, NotFoundError
from slipway.kube.portforward import PortForwardError

pytestmark = [*real_hosts, pytest.mark.asyncio]


@pytest.fixture(scope="module", params=["v1.33.13", "v1.36.3"])
def made(request: pytest.FixtureRequest) -> Iterator[Nodes]:
    lab = LabCommands(f"tunnels-{os.getpid() % 10000}")
    try:
        lab.run("image", "build", "--kubernetes-version", request.param, "--node-tool", "kubeadm", patience=3600)
        lab.run("up", "--image", f"{request.param}-kubeadm", "--hosts", "1")
        cluster = Nodes(lab, request.param)
        cluster.settle("host-1")
        cluster.init(tool="kubeadm")
        yield cluster
    finally:
        lab.run("down", check=False)


@pytest_asyncio.fixture
async def client(made: Nodes) -> AsyncIterator[AsyncClient]:
    text = made.lab.on("host-1", "cat /etc/kubernetes/admin.conf")
    connection = from_kubeconfig(goyaml.load(text, "admin.conf")[0].value, lambda path: b"", source="admin.conf")
    async with AsyncClient(connection, timeout=5) as opened:
        yield opened


@pytest.fixture
def workload(made: Nodes, client: AsyncClient) -> Workload:
    pair = KeyPair(*(made.lab.on("host-1", f"cat /etc/kubernetes/pki/etcd/ca.{kind}").encode() for kind in ("crt", "key")))
    return Workload(client, client_context("etcd", pair, datetime.now(UTC)))


async def test_etcd_is_asked_through_the_api_server_and_without_its_kubelet(made: Nodes, client: AsyncClient, workload: Workload) -> None:
    seen = await workload.observe(["host-1"], each=True)
    assert len(seen.pods) == 4
    assert [(member.name, member.healthy, member.is_leader) for member in seen.members or ()] == [("host-1", True, True)]
    made.lab.on("host-1", "systemctl stop kubelet")
    try:
        with pytest.raises(ApiError, match="error dialing backend"):
            async with portforward.connect(client, "kube-system", "etcd-host-1", 2379):
                pass
        seen = await workload.observe(["host-1"])
        assert [member.name for member in seen.members or ()] == ["host-1"]
    finally:
        made.lab.on("host-1", "systemctl start kubelet")


async def test_the_certificate_of_the_api_server_ends_in_a_year(workload: Workload) -> None:
    ends = await workload.api_server_certificate_expiry("host-1")
    assert ends is not None
    assert timedelta(days=364) < ends - datetime.now(UTC) < timedelta(days=366)


async def test_what_is_not_there_is_named(client: AsyncClient) -> None:
    with pytest.raises(NotFoundError, match='pods "nobody" not found'):
        async with portforward.connect(client, "kube-system", "nobody", 1):
            pass
    async with portforward.connect(client, "kube-system", "etcd-host-1", 1) as stream:
        with pytest.raises(PortForwardError, match="connection refused"):
            await stream.read()
