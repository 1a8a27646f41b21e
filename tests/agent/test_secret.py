"""Writes to the Secret of a host: made of what was seen last where that is how it is, and decided anew where it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from agent.world import HOST, NAMESPACE, Site

from slipway.agent.connection import Place
from slipway.agent.plan.decision import PlanSecret
from slipway.agent.secret import SecretClient, SecretGoneError
from slipway.api.cluster.kinds import ROLE, ROLE_BINDING, SECRET
from slipway.api.elemental import plan as plans
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.kube.client import Client
from slipway.kube.connection import Connection
from slipway.kube.errors import ForbiddenError

pytestmark = pytest.mark.asyncio
TOLD, OTHERS = plans.PROBE_STATUSES, plans.MAX_FAILURES


@pytest_asyncio.fixture
async def secret(site: Site) -> AsyncIterator[SecretClient]:
    made = client_of(site.server)
    yield made
    made.close()


def client_of(connection: Connection) -> SecretClient:
    place = Place(connection=connection, namespace=NAMESPACE, name=HOST)
    return SecretClient(Client(connection, environment={}, program="test"), place)


def told(value: bytes) -> dict[str, bytes]:
    return {TOLD: value}


async def test_what_was_seen_is_written_without_being_asked_for_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    """By a host that may watch and write its Secret, and may not read it."""
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as admin:
        site = Site(admin, server.connection(), tmp_path_factory.mktemp("host"))
        await site.prepare()
        rules = [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": [HOST], "verbs": ["watch", "update"]}]
        await admin.create(ROLE, {"metadata": {"name": "host", "namespace": NAMESPACE}, "rules": rules})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "host"}
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": HOST}]
        binding = {"metadata": {"name": "host", "namespace": NAMESPACE}, "roleRef": reference, "subjects": subjects}
        await admin.create(ROLE_BINDING, binding)
        secret = client_of(server.connection(HOST, ()))
        with pytest.raises(ForbiddenError):
            await asyncio.to_thread(secret.read)
        await asyncio.to_thread(lambda: next(iter(secret.watch(lambda: False))))
        await asyncio.to_thread(secret.update, lambda _: told(b"1"))
        await asyncio.to_thread(secret.update, lambda _: told(b"2"))
        assert (await site.data())[TOLD] == b"2"
        assert (await site.secret())["metadata"]["labels"], "what the agent does not know stays"
        secret.close()


async def test_a_write_of_somebody_else_is_not_lost(site: Site, secret: SecretClient) -> None:
    await asyncio.to_thread(secret.read)
    await site.edit(plans.wire({OTHERS: b"7"}))
    seen: list[bytes | None] = []

    def change(found: PlanSecret) -> dict[str, bytes]:
        seen.append(found.data.get(OTHERS))
        return told(b"1")

    written = await asyncio.to_thread(secret.update, change)
    data = await site.data()
    assert (seen, data[OTHERS], data[TOLD]) == ([None, b"7"], b"7", b"1")
    assert written.data == data


async def test_nothing_to_write_is_believed_of_the_secret_as_it_is_now_alone(site: Site, secret: SecretClient) -> None:
    await asyncio.to_thread(secret.update, lambda _: told(b"1"))
    await site.edit(plans.wire(told(b"")))
    await asyncio.to_thread(secret.update, lambda _: told(b"1"))
    assert (await site.data())[TOLD] == b"1"


async def test_a_secret_that_was_made_anew_is_read_before_it_is_written(site: Site, secret: SecretClient) -> None:
    await asyncio.to_thread(secret.update, lambda _: told(b"1"))
    await site.client.delete(SECRET, HOST, NAMESPACE)
    anew = {"metadata": {"name": HOST, "namespace": NAMESPACE}, "data": plans.wire({OTHERS: b"7"})}
    await site.client.create(SECRET, anew)
    await asyncio.to_thread(secret.update, lambda _: told(b"2"))
    assert await site.data() == {OTHERS: b"7", **told(b"2")}


async def test_a_secret_that_is_gone_is_said_to_be(site: Site, secret: SecretClient) -> None:
    await asyncio.to_thread(secret.update, lambda _: told(b"1"))
    await site.client.delete(SECRET, HOST, NAMESPACE)
    with pytest.raises(SecretGoneError, match=f"{NAMESPACE}/{HOST} is not there"):
        await asyncio.to_thread(secret.update, lambda _: told(b"2"))
