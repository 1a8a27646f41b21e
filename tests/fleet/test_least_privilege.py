"""Controllers under exactly the roles that are generated for them: nothing is refused, and nothing is given that is not used."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fleet import cluster_life
from fleet.world import User, World, preserving_crd
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster import kinds
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONFIG, KUBEADM_CONTROL_PLANE, MACHINE, MACHINE_POOL, SECRET
from slipway.embedded.server import EmbeddedServer
from slipway.fleet import manifests as made
from slipway.fleet import registry
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.manifests import Installation
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.runtime import rbac
from slipway.runtime.apply import install
from slipway.runtime.manager import Manager, ManagerOptions
from slipway.runtime.webhook.server import Certified, WebhookServer
from slipway.runtime.webhook.store import CertificateStore

USER = "least-privileged"
HOME = "home"
DECLARED = registry.declarations(registry.chosen(["bootstrap"]))
CLUSTER_RULES = made.cluster_rules(DECLARED.rules, DECLARED.crds, DECLARED.webhooks)
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>.+))?"
)

Use = tuple[str, str, str]


def _use(verb: str, path: str) -> Use:
    """Verb, group and resource of a request, as RBAC names them."""
    found = _PATH.fullmatch(path.partition("?")[0])
    assert found is not None, path
    resource = f"{found['resource']}/{found['sub']}" if found["sub"] else found["resource"]
    return verb, found["group"] or "", resource


class _Observer:
    """Notes what one user asks for, and what is refused."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, connection: Connection) -> None:
        self.used: set[Use] = set()
        self.refused: list[str] = []
        answer, open_watch = AsyncClient._answer, AsyncClient._open

        async def watched(client: AsyncClient, path: str, *rest: Any) -> Any:
            if client.connection is connection:
                self.used.add(_use("watch", path))
            return await open_watch(client, path, *rest)

        async def observed(client: AsyncClient, verb: str, method: str, path: str, *rest: Any, **named: Any) -> bytes:
            if client.connection is connection:
                self.used.add(_use(verb, path))
            try:
                return await answer(client, verb, method, path, *rest, **named)
            except Exception as error:
                if getattr(error, "code", 0) == 403:
                    self.refused.append(f"{verb} {path}")
                raise

        monkeypatch.setattr(AsyncClient, "_answer", observed)
        monkeypatch.setattr(AsyncClient, "_open", watched)


async def _nobody(world: World) -> User:
    raise AssertionError("this test has a user of its own")


def _installation(port: int) -> Installation:
    return Installation(
        rules=DECLARED.rules,
        crds=DECLARED.crds,
        webhooks=DECLARED.webhooks,
        controllers=DECLARED.names,
        image="none",
        leases=DECLARED.leases,
        namespace=HOME,
        webhook_url=f"https://127.0.0.1:{port}",
    )


def _for_user(manifest: dict[str, Any]) -> dict[str, Any]:
    """A binding to the user of the test, who has the permissions of the ServiceAccount and no others."""
    return {**manifest, "subjects": [rbac.user(USER)]} if manifest["kind"].endswith("Binding") else manifest


@asynccontextmanager
async def _manager(connection: Connection, port: int) -> AsyncIterator[Manager]:
    """Everything of a manager: controllers, leader election, webhooks with certificates of its own."""
    manager = Manager(connection, ManagerOptions(leader_elect=True, leader_namespace=HOME))
    for reconciler, lease in registry.controllers(("bootstrap",), manager, registry.FleetOptions(BootstrapOptions())):
        manager.add(reconciler, lease=lease)
    store = CertificateStore(manager.client, HOME, made.WEBHOOK_SECRET, made.targets(DECLARED.crds, DECLARED.webhooks))
    server = WebhookServer(Certified(store), address="127.0.0.1", port=port, retry=0.1)
    server.add(*DECLARED.webhooks)
    server.add_conversion(convert)
    manager.add_webhooks(server)
    stop = asyncio.Event()
    task = asyncio.create_task(manager.run(stop))
    try:

        async def serving() -> bool:
            return not server.ready() or task.done()

        await eventually(serving, "the webhooks are served")
        yield manager
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


@pytest.mark.asyncio
async def test_the_bootstrap_controller_does_all_its_work_under_its_role_and_needs_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with EmbeddedServer() as server, World(server.connection(), "fleet", _nobody) as world:
        port = free_port()
        wanted = [_for_user(manifest) for manifest in made.manifests(_installation(port))]
        await install(world.client, wanted, lambda line: None)
        await world.install_crds(*map(preserving_crd, (CLUSTER, MACHINE, MACHINE_POOL, KUBEADM_CONTROL_PLANE)))
        connection = server.connection(USER, ())
        observer = _Observer(monkeypatch, connection)
        async with _manager(connection, port):
            await cluster_life.begins(world)
        await world.patch(SECRET, "first", {"metadata": {"ownerReferences": None}})
        async with _manager(connection, port):
            await cluster_life.goes_on(world)
            older = KUBEADM_CONFIG._replace(version="v1beta1")
            assert (await world.client.get(older, "worker", world.namespace))["apiVersion"] == older.api_version, "converted"
    assert observer.refused == []
    declared = {
        (verb, group, resource) for rule in CLUSTER_RULES for group in rule.groups for resource in rule.resources for verb in rule.verbs
    }
    assert declared - observer.used == _NOT_HERE.keys()


# Declared, and not needed in this scenario.
_NOT_HERE: dict[Use, str] = {
    ("get", KUBEADM_CONFIG.group, KUBEADM_CONFIG.plural): "reads what is there after a conflict",
    ("patch", "", kinds.CORE_EVENT.plural): "counts an Event that is said again",
}


@pytest.mark.asyncio
async def test_without_its_role_it_may_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other test means something only if the server refuses."""
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as admin, AsyncClient(server.connection(USER, ())) as client:
        for crd in DECLARED.crds:
            await admin.create(kinds.CUSTOM_RESOURCE_DEFINITION, crd)
        observer = _Observer(monkeypatch, client.connection)
        for kind in (SECRET, KUBEADM_CONFIG):
            with pytest.raises(Exception, match="forbidden"):
                await client.list(kind, "default")
        assert len(observer.refused) == 2
