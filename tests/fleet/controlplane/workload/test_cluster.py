"""A control plane in its workload cluster: objects of an API server, real etcd members, and tunnels to them; and what is written there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fleet.controlplane.workload.etcdcluster import EtcdCluster, etcd_cluster
from support.portforwarding import PortForwardingServer
from support.tlsserver import NOW, Server, authority, leaf

from slipway.api.cluster.kinds import CLUSTER_ROLE_BINDING, CONFIG_MAP, DAEMON_SET, DEPLOYMENT, NAMESPACE, NODE, POD
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.certificates import KeyPair
from slipway.fleet.controlplane.workload import conditions
from slipway.fleet.controlplane.workload.cluster import Workload
from slipway.fleet.controlplane.workload.etcdaccess import CLIENT_URLS_ANNOTATION
from slipway.fleet.controlplane.workload.etcdcredentials import EtcdCredentials, client_context
from slipway.fleet.controlplane.workload.view import MachineFacts
from slipway.fleet.snapshots.folder import Folder
from slipway.fleet.snapshots.store import snapshots
from slipway.fleet.snapshots.taking import Subject, take
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import NotFoundError
from slipway.workload import etcdsnapshot
from slipway.workload.etcdapi import EtcdError

LABEL = "node-role.kubernetes.io/control-plane"
PEER = "https://127.9.9.9:2380"


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd")) as made:
        yield made


@pytest_asyncio.fixture
async def forwarding() -> AsyncIterator[PortForwardingServer]:
    """A workload cluster: the embedded API server, with a kubelet's tunnels in front of it."""
    async with EmbeddedServer() as server, PortForwardingServer(server.connection()) as made:
        yield made


@pytest_asyncio.fixture
async def client(forwarding: PortForwardingServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(forwarding.connection, timeout=5) as made:
        if await made.find(NAMESPACE, "kube-system") is None:
            await made.create(NAMESPACE, {"metadata": {"name": "kube-system"}})
        yield made


async def create_nodes(client: AsyncClient, etcd: EtcdCluster | None = None) -> None:
    for name in "abc":
        await client.create(NODE, {"metadata": {"name": name, "labels": {LABEL: ""} if name != "c" else {}}})
        for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"):
            told = {CLIENT_URLS_ANNOTATION: etcd[name].client_url} if etcd and component == "etcd" else {}
            spec = {"nodeName": name, "containers": [{"name": component, "image": "i"}]}
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            # Somebody has taken the labels of one away.
            labels = {"component": component, "tier": "control-plane"} if component != "kube-scheduler" else {}
            metadata = {"name": f"{component}-{name}", "namespace": "kube-system", "labels": labels, "annotations": told}
            made = await client.create(POD, {"metadata": metadata, "spec": spec})
            await client.update(POD, {**made, "status": ready}, subresource="status")


def workload(client: AsyncClient, etcd: EtcdCluster, **options: Any) -> Workload:
    return Workload(client, client_context("etcd", etcd.authority, datetime.now(UTC)), **options)


def tunnel(forwarding: PortForwardingServer, etcd: EtcdCluster, *names: str) -> None:
    forwarding.targets |= {f"etcd-{name}:2379": (etcd[name].address, 2379) for name in names}
    forwarding.refused = {f"etcd-{name}": (500, "error dialing backend: connection refused") for name in "abc" if name not in names}


@pytest.mark.asyncio
async def test_a_look_sees_nodes_pods_and_members(forwarding: PortForwardingServer, client: AsyncClient, etcd: EtcdCluster) -> None:
    await create_nodes(client)
    tunnel(forwarding, etcd, "a", "b", "c")
    # The Node c has lost its label, and is asked for by its name; nobody knows z.
    seen = await workload(client, etcd).observe(["a", "b", "c", "z"])
    assert sorted(seen.nodes) == ["a", "b", "c"]
    assert len(seen.pods) == 12
    assert seen.members is not None
    assert sorted((member.name, member.learner, member.alarms, member.healthy) for member in seen.members) == [
        (name, False, (), None) for name in "abc"
    ]
    assert seen.leader is not None
    assert seen.leader.name == etcd.leader()
    # One connection speaks for all.
    assert forwarding.opened == ["etcd-a"]


@pytest.mark.asyncio
async def test_a_dead_kubelet_is_gone_around(forwarding: PortForwardingServer, client: AsyncClient, etcd: EtcdCluster) -> None:
    await create_nodes(client, etcd)
    tunnel(forwarding, etcd)
    seen = await workload(client, etcd).observe(["a", "b", "c"])
    assert seen.members_error == ""
    assert len(seen.members or ()) == 3


@pytest.mark.asyncio
async def test_where_nobody_can_be_reached_that_is_said(forwarding: PortForwardingServer, client: AsyncClient, etcd: EtcdCluster) -> None:
    await create_nodes(client)
    tunnel(forwarding, etcd)
    seen = await workload(client, etcd).observe(["a", "b"])
    assert seen.members is None
    assert seen.members_error.startswith("Failed to connect to etcd: error dialing backend")


@pytest.mark.asyncio
async def test_each_member_can_be_asked_how_it_is(forwarding: PortForwardingServer, client: AsyncClient, etcd: EtcdCluster) -> None:
    await create_nodes(client)
    tunnel(forwarding, etcd, "a", "b", "c")
    follower = next(name for name in "abc" if name != etcd.leader())
    others = [name for name in "abc" if name != follower]
    with etcd.paused(follower):
        seen = await workload(client, etcd, etcd_timeout=3.0).observe("abc", ask=[*others, follower], each=True)
    assert {member.name: member.healthy for member in seen.members or ()} == {name: name != follower for name in "abc"}
    assert seen.members_agree


@pytest.mark.asyncio
async def test_a_snapshot_comes_through_the_tunnel_of_the_first_member_that_answers(
    forwarding: PortForwardingServer, client: AsyncClient, etcd: EtcdCluster, tmp_path: Path
) -> None:
    await create_nodes(client)
    tunnel(forwarding, etcd, "b")
    store = Folder(tmp_path)
    taken = await take(workload(client, etcd), store, Subject("n", "c", "v1.35.4"), datetime.now(UTC))
    assert taken.etcd_version == "3.6.6"
    assert await snapshots(store, "n", "c") == [taken]
    # Everything that etcd had agreed on is in it.
    again = tmp_path / "again.db"
    with again.open("wb") as file:
        etcd.client().snapshot(file.write)
    assert etcdsnapshot.revision(again) >= taken.revision > 0


@pytest.mark.asyncio
async def test_a_member_whose_node_is_not_well_is_asked_itself(
    forwarding: PortForwardingServer, client: AsyncClient, etcd: EtcdCluster
) -> None:
    await create_nodes(client)
    tunnel(forwarding, etcd, "a", "b")
    node = await client.get(NODE, "c")
    quiet = {"type": "Ready", "status": "Unknown"}
    await client.update(NODE, {**node, "status": {**node.get("status", {}), "conditions": [quiet]}}, subresource="status")
    seen = await workload(client, etcd).observe("abc")
    assert {member.name: member.healthy for member in seen.members or ()} == {"a": None, "b": None, "c": False}
    machines = [MachineFacts(name, name, f"host://{name}") for name in "abc"]
    judged = conditions.judge(seen, machines, etcd_managed=True, now=datetime.now(UTC))
    (said,) = [item.condition for item in judged.machines["c"] if item.condition and item.condition.type == "EtcdMemberHealthy"]
    assert (said.status, said.message) == ("False", "Etcd member c does not answer")


@pytest.mark.asyncio
async def test_leadership_moves_from_who_has_it(forwarding: PortForwardingServer, client: AsyncClient, etcd: EtcdCluster) -> None:
    await create_nodes(client)
    tunnel(forwarding, etcd, "a", "b", "c")
    leader = etcd.leader()
    following, other = [name for name in "abc" if name != leader]
    cluster = workload(client, etcd)
    # Who does not lead has nothing to hand over.
    await cluster.forward_etcd_leadership(other, following)
    assert etcd.leader() == leader
    await cluster.forward_etcd_leadership(leader, following)
    assert etcd.leader() == following
    with pytest.raises(EtcdError, match="no member nobody"):
        await cluster.forward_etcd_leadership(following, "nobody")


@pytest.mark.asyncio
async def test_a_member_without_a_name_goes_by_its_id(forwarding: PortForwardingServer, client: AsyncClient, etcd: EtcdCluster) -> None:
    await create_nodes(client)
    tunnel(forwarding, etcd, "a", "b", "c")
    added, _ = await asyncio.to_thread(etcd.client().add_learner, PEER)
    cluster = workload(client, etcd)
    seen = await cluster.observe("abc")
    assert [(member.id, member.name, member.learner) for member in seen.members or () if not member.name] == [(added, "", True)]
    await cluster.remove_member(added)
    await cluster.remove_member(added)
    assert sorted(member.name for member in etcd.client().members()) == ["a", "b", "c"]


@pytest.mark.asyncio
async def test_members_leave_one_after_another_but_the_last(forwarding: PortForwardingServer, client: AsyncClient, tmp_path: Path) -> None:
    with etcd_cluster(tmp_path) as etcd:
        await create_nodes(client)
        tunnel(forwarding, etcd, "a", "b", "c")
        cluster = workload(client, etcd)
        observed = await cluster.observe("abc")
        ids = {member.name: member.id for member in observed.members or ()}
        # The first one that is asked is the one that goes: another one is to see to it.
        for name in "ab":
            await cluster.remove_member(ids[name])
            await cluster.remove_member(ids[name])
        assert [member.name for member in etcd["c"].client().members()] == ["c"]
        with pytest.raises(EtcdError, match="last member"):
            await cluster.remove_member(ids["c"])


@pytest.mark.asyncio
async def test_a_client_of_another_authority_is_refused(forwarding: PortForwardingServer, client: AsyncClient, etcd: EtcdCluster) -> None:
    await create_nodes(client)
    tunnel(forwarding, etcd, "a")
    other = authority("etcd-ca")
    context = client_context("etcd", KeyPair(other.certificate, other.key), datetime.now(UTC))
    seen = await Workload(client, context).observe("a")
    assert "its certificate is not trusted" in seen.members_error


def test_credentials_are_kept_until_their_authority_changes_or_half_their_time_is_over() -> None:
    credentials, now = EtcdCredentials(), datetime.now(UTC)
    one, other = (KeyPair(made.certificate, made.key) for made in (authority("etcd-ca"), authority("etcd-ca")))
    first = credentials.context("ns", "c", one, now)
    assert credentials.context("ns", "c", one, now + timedelta(hours=11)) is first
    assert credentials.context("ns", "c", one, now + timedelta(hours=13)) is not first
    assert credentials.context("ns", "c", other, now + timedelta(hours=13)) is not first
    with pytest.raises(OperatorError, match="has no key"):
        credentials.context("ns", "d", KeyPair(one.certificate), now)


@pytest.mark.asyncio
async def test_the_certificate_of_an_api_server_tells_its_end(
    forwarding: PortForwardingServer, client: AsyncClient, tmp_path: Path
) -> None:
    ca = authority()
    own, foreign = Server(tmp_path, leaf(ca, ends=3)), Server(tmp_path, leaf(ca, common_name="mine"))
    forwarding.targets = {"kube-apiserver-a:6443": ("127.0.0.1", own.port), "kube-apiserver-b:7443": ("127.0.0.1", foreign.port)}
    cluster = Workload(client, None)
    try:
        assert await cluster.api_server_certificate_expiry("a") == NOW + timedelta(days=3)
        assert await cluster.api_server_certificate_expiry("b", 7443) is None
        with pytest.raises(OperatorError, match="error forwarding port 6443"):
            await cluster.api_server_certificate_expiry("c")
    finally:
        own.close()
        foreign.close()


CONFIGURATION = """apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.34.10
clusterName: c1
proxy:
  disabled: true
dns:
  disabled: true
"""


async def create_kubeadm_config(client: AsyncClient) -> None:
    metadata = {"name": "kubeadm-config", "namespace": "kube-system"}
    await client.create(CONFIG_MAP, {"metadata": metadata, "data": {"ClusterConfiguration": CONFIGURATION, "other": "x"}})


async def configuration(client: AsyncClient) -> Any:
    found = await client.get(CONFIG_MAP, "kubeadm-config", "kube-system")
    assert found["data"]["other"] == "x"
    return goyaml.load(found["data"]["ClusterConfiguration"], "it")[0].value


@pytest.mark.asyncio
async def test_the_cluster_configuration_follows_and_add_ons_stay_off(client: AsyncClient) -> None:
    await create_kubeadm_config(client)
    cluster = Workload(client, None)
    assert await cluster.has_kubeadm_config()
    await cluster.update_kubeadm_config({"scheduler": {"extraArgs": [{"name": "v", "value": "2"}]}}, "v1.35.4")
    written = await configuration(client)
    assert written["kubernetesVersion"] == "v1.35.4"
    assert written["scheduler"] == {"extraArgs": [{"name": "v", "value": "2"}]}
    assert (written["proxy"], written["dns"]) == ({"disabled": True}, {"disabled": True})
    before = await client.get(CONFIG_MAP, "kubeadm-config", "kube-system")
    await cluster.update_kubeadm_config({"scheduler": {"extraArgs": [{"name": "v", "value": "2"}]}}, "v1.35.4")
    assert await client.get(CONFIG_MAP, "kubeadm-config", "kube-system") == before


@pytest.mark.asyncio
async def test_a_cluster_that_kubeadm_did_not_make_is_refused(client: AsyncClient) -> None:
    assert not await Workload(client, None).has_kubeadm_config()
    with pytest.raises(NotFoundError):
        await Workload(client, None).update_kubeadm_config({}, "v1.35.4")


def template(name: str, image: str, **more: Any) -> dict[str, Any]:
    labels = {"k8s-app": name}
    container = {"name": name, "image": image, "args": ["-x"]}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "side", "image": "s"}, container], **more}}
    return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"selector": {"matchLabels": labels}, "template": pod}}


def containers(found: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["image"] for item in found["spec"]["template"]["spec"]["containers"]}


@pytest.mark.asyncio
async def test_kube_proxy_gets_the_version_and_keeps_the_rest(client: AsyncClient) -> None:
    cluster = Workload(client, None)
    await cluster.update_kube_proxy("v1.35.4")
    await client.create(DAEMON_SET, template("kube-proxy", "registry.k8s.io/kube-proxy:v1.34.10"))
    await cluster.update_kube_proxy("v1.35.4")
    found = await client.get(DAEMON_SET, "kube-proxy", "kube-system")
    assert containers(found) == {"side": "s", "kube-proxy": "registry.k8s.io/kube-proxy:v1.35.4"}
    assert found["spec"]["template"]["spec"]["containers"][1]["args"] == ["-x"]


COREFILE = ".:53 {\n    errors\n    kubernetes cluster.local {\n        upstream\n    }\n}\n"
VOLUME = {"name": "config-volume", "configMap": {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]}}


@pytest.mark.asyncio
async def test_coredns_is_upgraded_with_its_corefile(client: AsyncClient) -> None:
    await create_kubeadm_config(client)
    cluster, spec = Workload(client, None), {"dns": {"imageTag": "v1.9.3"}}
    await cluster.update_coredns(spec, "v1.35.4")
    await client.create(CONFIG_MAP, {"metadata": {"name": "coredns", "namespace": "kube-system"}, "data": {"Corefile": COREFILE}})
    await client.create(DEPLOYMENT, template("coredns", "registry.k8s.io/coredns:1.6.7", volumes=[VOLUME]))
    await cluster.update_coredns(spec, "v1.35.4")
    found = await client.get(DEPLOYMENT, "coredns", "kube-system")
    assert containers(found)["coredns"] == "registry.k8s.io/coredns/coredns:v1.9.3"
    assert found["spec"]["template"]["spec"]["volumes"][0]["configMap"]["items"][0]["key"] == "Corefile"
    data = (await client.get(CONFIG_MAP, "coredns", "kube-system"))["data"]
    assert data["Corefile-backup"] == COREFILE
    assert "upstream" not in data["Corefile"]
    assert (await configuration(client))["dns"] == {"disabled": True, "imageTag": "v1.9.3"}


@pytest.mark.asyncio
async def test_an_upgrade_of_coredns_that_was_killed_goes_on_from_the_backup(client: AsyncClient) -> None:
    await create_kubeadm_config(client)
    # Where it stands after the third step: the new Corefile is there, and CoreDNS still reads the old one.
    data = {"Corefile": "half.done {\n}\n", "Corefile-backup": COREFILE}
    await client.create(CONFIG_MAP, {"metadata": {"name": "coredns", "namespace": "kube-system"}, "data": data})
    backup = {**VOLUME, "configMap": {"name": "coredns", "items": [{"key": "Corefile-backup", "path": "Corefile"}]}}
    await client.create(DEPLOYMENT, template("coredns", "registry.k8s.io/coredns:1.6.7", volumes=[backup]))
    await Workload(client, None).update_coredns({"dns": {"imageTag": "v1.9.3"}}, "v1.35.4")
    data = (await client.get(CONFIG_MAP, "coredns", "kube-system"))["data"]
    assert data["Corefile-backup"] == COREFILE
    assert "cluster.local" in data["Corefile"]


@pytest.mark.asyncio
async def test_bindings_are_made_once_and_left_alone(client: AsyncClient) -> None:
    cluster = Workload(client, None)
    await cluster.ensure_rbac("v1.38.0")
    assert await client.find(CLUSTER_ROLE_BINDING, "kubeadm:cluster-admins") is None
    await cluster.ensure_rbac("v1.35.4")
    made = await client.get(CLUSTER_ROLE_BINDING, "kubeadm:cluster-admins")
    assert made["subjects"][0]["name"] == "kubeadm:cluster-admins"
    assert (await client.get(CLUSTER_ROLE_BINDING, "kubeadm:apiserver-kubelet-client"))["roleRef"]["name"] == "system:kubelet-api-admin"
    await client.update(CLUSTER_ROLE_BINDING, {**made, "subjects": []})
    await cluster.ensure_rbac("v1.35.4")
    assert not (await client.get(CLUSTER_ROLE_BINDING, "kubeadm:cluster-admins")).get("subjects")
