"""Controllers under exactly the roles that are generated for them: nothing is refused, and nothing is given that is not used."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from fleet import cluster_life, infrastructure
from fleet.lives import FIRST, NAME, NAMESPACE, SECOND, Authority, Life, life
from fleet.privileges import Alone, Observer, Use, unused
from fleet.world import User, World, preserving_crd
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster import kinds
from slipway.api.cluster.kinds import (
    CLUSTER,
    KUBEADM_CONFIG,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_POOL,
    SECRET,
)
from slipway.credentials import keys, x509
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime import owners
from slipway.runtime.apply import install


async def _nobody(world: World) -> User:
    raise AssertionError("this test has users of its own")


@pytest.mark.asyncio
async def test_the_bootstrap_controller_does_all_its_work_under_its_role_and_needs_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone(("bootstrap",), free_port())
    async with EmbeddedServer() as server, World(server.connection(), "fleet", _nobody) as world:
        await install(world.client, alone.manifests(), lambda line: None)
        await world.install_crds(*map(preserving_crd, (CLUSTER, MACHINE, MACHINE_POOL, KUBEADM_CONTROL_PLANE)))
        connection = server.connection(alone.user, ())
        observer = Observer(monkeypatch, server)
        async with alone.running(connection):
            await cluster_life.begins(world)
        await world.patch(SECRET, "first", {"metadata": {"ownerReferences": None}})
        async with alone.running(connection):
            await cluster_life.goes_on(world)
            older = KUBEADM_CONFIG._replace(version="v1beta1")
            assert (await world.client.get(older, "worker", world.namespace))["apiVersion"] == older.api_version, "converted"
    assert not observer.refused[alone.user]
    assert unused(alone.permissions(), observer.used[alone.user]) == _NOT_HERE.keys()


# Declared, and not needed in this scenario, or by chance alone.
_NOT_HERE: dict[Use, str] = {
    ("get", KUBEADM_CONFIG.group, KUBEADM_CONFIG.plural): "reads what is there after a conflict",
    ("patch", "", kinds.CORE_EVENT.plural): "counts an Event that is said again",
}


@pytest.mark.asyncio
async def test_three_managers_side_by_side_each_do_their_work_under_their_own_roles_and_need_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bootstrap, machines, control_plane = (Alone((name,), free_port()) for name in ("bootstrap", "machines", "controlplane"))
    async with EmbeddedServer() as server, AsyncExitStack() as stack:
        authority = Authority(x509.pem(server.authority.certificate), keys.private_pem(server.authority.key))
        world = await stack.enter_async_context(World(server.connection(), "home", _nobody))
        await world.install_crds(preserving_crd(MACHINE_POOL))
        for alone in (bootstrap, machines, control_plane):
            await install(world.client, alone.manifests(), lambda line: None)
        one = await stack.enter_async_context(life(server.connection(), authority, pause=0.1))
        observer = Observer(monkeypatch, server)
        for alone in (bootstrap, machines, control_plane):
            await stack.enter_async_context(alone.running(server.connection(alone.user, ())))
        await _short_life(one)
    assert {alone.user: observer.refused[alone.user] for alone in (bootstrap, machines, control_plane)} == {
        alone.user: set() for alone in (bootstrap, machines, control_plane)
    }
    for alone, stays in ((machines, _NOT_OF_MACHINES), (control_plane, _NOT_OF_CONTROL_PLANES)):
        assert unused(alone.permissions(), observer.used[alone.user]) - stays.keys() == set(), "given, and of no use"
        assert stays.keys() - alone.permissions() == set(), "not given any more"


async def _short_life(one: Life) -> None:
    """Made, rolled, repaired and deleted, with as few machines as it takes."""
    await one.begin(control_planes=1, workers=1)
    await _with_addons(one)
    await eventually(partial(_ready, one, FIRST, FIRST), "the cluster is made", 60)
    await eventually(partial(_is_applied, one), "the addon is in the cluster", 60)
    await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})
    await eventually(partial(_ready, one, SECOND, FIRST), "the control plane is rolled", 60)
    await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"template": {"spec": {"version": SECOND}}})
    await eventually(partial(_ready, one, SECOND, SECOND), "the worker is rolled", 60)
    (sick,) = [machine["metadata"]["name"] for machine in await one.machines(deployment_name=f"{NAME}-md")]
    await one.infrastructure.fail(sick)

    async def repaired() -> bool:
        return await one.client.find(MACHINE, sick, NAMESPACE) is None and await _ready(one, SECOND, SECOND)

    await eventually(repaired, "the worker is repaired", 60)
    await one.client.delete(CLUSTER, NAME, NAMESPACE)

    async def gone() -> bool:
        return await one.client.find(CLUSTER, NAME, NAMESPACE) is None

    await eventually(gone, "the cluster is gone", 60)


async def _with_addons(one: Life) -> None:
    """What goes into the cluster when it is there, from each of the two kinds that can hold it; and a pool, which goes with the cluster."""
    inner = json.dumps(_addon("addon"))
    encoded = b64encode(json.dumps(_addon("addon-from-secret")).encode()).decode()
    metadata = {"namespace": NAMESPACE}
    await one.client.create(kinds.CONFIG_MAP, {"metadata": {**metadata, "name": "addon"}, "data": {"addon.json": inner}})
    resource = {"metadata": {**metadata, "name": "addon"}, "type": "addons.cluster.x-k8s.io/resource-set", "data": {"addon.json": encoded}}
    await one.client.create(SECRET, resource)
    spec = {
        "clusterSelector": {"matchLabels": {"addons": "yes"}},
        "resources": [{"kind": "ConfigMap", "name": "addon"}, {"kind": "Secret", "name": "addon"}],
        "strategy": "Reconcile",
    }
    await one.client.create(kinds.CLUSTER_RESOURCE_SET, {"metadata": {**metadata, "name": "addons"}, "spec": spec})
    labels = {"metadata": {"labels": {"addons": "yes"}}}
    cluster = await one.client.patch(CLUSTER, NAME, NAMESPACE, labels, type=PatchType.MERGE)
    owned = {"labels": {"cluster.x-k8s.io/cluster-name": NAME}, "ownerReferences": [owners.reference(cluster)]}
    pool = {"metadata": {**metadata, "name": "pool", **owned}, "spec": {"clusterName": NAME}}
    await one.client.create(MACHINE_POOL, pool)


def _addon(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}, "data": {"a": "1"}}


async def _is_applied(one: Life) -> bool:
    return None not in [await one.client.find(kinds.CONFIG_MAP, name, "kube-system") for name in ("addon", "addon-from-secret")]


async def _ready(one: Life, control_plane: str, workers: str) -> bool:
    return await one.ready(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", 1, control_plane) and await one.ready(
        MACHINE_DEPLOYMENT, f"{NAME}-md", 1, workers
    )


_CONTROL_PLANES = KUBEADM_CONTROL_PLANE.group
_AFTER_A_CONFLICT = "reads what is there after a conflict"
_ENFORCED = "asked where the API server enforces who may hold up the deletion of an owner (OwnerReferencesPermissionEnforcement)"
_OF_OTHER_PROVIDERS = "a provider's kinds are not known beforehand; here the control plane and the bootstrap data are Kubeadm's"
_SAID_AGAIN = "counts an Event that is said again"
_NOT_OF_MACHINES: dict[Use, str] = {
    ("patch", "", kinds.CORE_EVENT.plural): _SAID_AGAIN,
    ("get", kinds.ADDONS_GROUP, kinds.CLUSTER_RESOURCE_SET.plural): _AFTER_A_CONFLICT,
    ("patch", kinds.ADDONS_GROUP, kinds.CLUSTER_RESOURCE_SET_BINDING.plural): "writes down what was applied later than the rest",
    **{
        ("get", MACHINE.group, kind.plural): _AFTER_A_CONFLICT
        for kind in (CLUSTER, MACHINE, kinds.MACHINE_SET, MACHINE_DEPLOYMENT, kinds.MACHINE_HEALTH_CHECK)
    },
    **{("update", MACHINE.group, f"{kind.plural}/finalizers"): _ENFORCED for kind in (MACHINE, kinds.MACHINE_SET, MACHINE_DEPLOYMENT)},
    **{(verb, _CONTROL_PLANES, "*"): _OF_OTHER_PROVIDERS for verb in ("get", "list", "watch", "patch", "delete")},
    ("delete", KUBEADM_CONFIG.group, "*"): _OF_OTHER_PROVIDERS,
    ("create", "", SECRET.plural): "makes the kubeconfig of a cluster that has no control plane object",
}
_UNDONE = "takes away what was made for a Machine that could not be made"
_ADOPTION = "adopts Machines that were made without a control plane object"
_NOT_OF_CONTROL_PLANES: dict[Use, str] = {
    ("patch", "", kinds.CORE_EVENT.plural): _SAID_AGAIN,
    ("delete", KUBEADM_CONFIG.group, KUBEADM_CONFIG.plural): _UNDONE,
    ("delete", infrastructure.GROUP, "*"): _UNDONE,
    ("get", KUBEADM_CONFIG.group, KUBEADM_CONFIG.plural): _ADOPTION,
    ("get", _CONTROL_PLANES, KUBEADM_CONTROL_PLANE.plural): _ADOPTION,
    ("patch", "", SECRET.plural): _ADOPTION,
    ("update", "", SECRET.plural): "renews the kubeconfig before it expires",
    ("get", MACHINE.group, CLUSTER.plural): "begins anew where the only control-plane Machine was given up",
    ("patch", MACHINE.group, f"{CLUSTER.plural}/status"): "begins anew where the only control-plane Machine was given up",
    ("update", _CONTROL_PLANES, f"{KUBEADM_CONTROL_PLANE.plural}/finalizers"): _ENFORCED,
}


@pytest.mark.asyncio
async def test_without_its_role_it_may_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests mean something only if the server refuses."""
    async with (
        EmbeddedServer() as server,
        AsyncClient(server.connection()) as admin,
        AsyncClient(server.connection("nobody", ())) as client,
    ):
        for crd in Alone(("bootstrap",), 0).declared.crds:
            await admin.create(kinds.CUSTOM_RESOURCE_DEFINITION, crd)
        observer = Observer(monkeypatch, server)
        for kind in (SECRET, KUBEADM_CONFIG):
            with pytest.raises(Exception, match="forbidden"):
                await client.list(kind, "default")
        assert len(observer.refused["nobody"]) == 2
