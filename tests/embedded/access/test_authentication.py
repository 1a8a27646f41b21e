"""Who asks: certificates, tokens of all kinds, and impersonation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from embedded.wire import Wire, wire

from slipway.api.kubeadm.internal import BootstrapToken
from slipway.credentials import tokens
from slipway.embedded.access.authentication import User
from slipway.embedded.server import EmbeddedServer

pytestmark = pytest.mark.asyncio

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TOKEN = "abcdef.0123456789abcdef"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    # Certificates are checked by the real clock.
    clock = Clock()
    clock.now = datetime.now(UTC)
    return clock


@pytest_asyncio.fixture
async def server(clock: Clock) -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(clock=clock, tokens={"static": User("robot", ("builders",))}) as started:
        yield started


@pytest_asyncio.fixture
async def admin(server: EmbeddedServer) -> AsyncIterator[Wire]:
    async with wire(server.connection()) as opened:
        yield opened


async def who(server: EmbeddedServer, token: str) -> tuple[int, Any]:
    async with wire(server.connection_with_token(token)) as asker:
        code, document = await asker.ask("POST", WHO, {})
        return code, document["status"]["userInfo"] if code == 201 else document


async def keep(admin: Wire, clock: Clock, **changes: Any) -> None:
    given = {
        "token": TOKEN,
        "usages": ["authentication"],
        "ttl": 3600 * 10**9,
        "groups": ["system:bootstrappers:kubeadm:default"],
        **changes,
    }
    await admin.make("/api/v1/namespaces/kube-system/secrets", tokens.secret(BootstrapToken(**given), clock()))


async def test_a_certificate_says_the_user_and_the_groups(server: EmbeddedServer) -> None:
    async with wire(server.connection("jane", ("dev", "ops"))) as asker:
        code, document = await asker.ask("POST", WHO, {})
    assert code == 201
    user = document["status"]["userInfo"]
    assert (user["username"], sorted(user["groups"])) == ("jane", ["dev", "ops", "system:authenticated"])


async def test_a_static_token_stands_for_its_user(server: EmbeddedServer) -> None:
    assert await who(server, "static") == (201, {"username": "robot", "groups": ["builders", "system:authenticated"]})
    server.add_token("later", "other")
    assert (await who(server, "later"))[1]["username"] == "other"


async def test_an_unknown_token_is_refused(server: EmbeddedServer) -> None:
    code, document = await who(server, "wrong")
    assert (code, document["reason"], document["message"]) == (401, "Unauthorized", "Unauthorized")


async def test_a_bootstrap_token_stands_for_itself_and_its_groups(server: EmbeddedServer, admin: Wire, clock: Clock) -> None:
    await keep(admin, clock)
    code, user = await who(server, TOKEN)
    assert code == 201
    groups = ["system:bootstrappers:kubeadm:default", "system:bootstrappers", "system:authenticated"]
    assert user == {"username": "system:bootstrap:abcdef", "groups": groups}


async def test_a_bootstrap_token_ends(server: EmbeddedServer, admin: Wire, clock: Clock) -> None:
    await keep(admin, clock)
    clock.now += timedelta(hours=2)
    assert (await who(server, TOKEN))[0] == 401


async def test_a_bootstrap_token_for_signing_is_no_login(server: EmbeddedServer, admin: Wire, clock: Clock) -> None:
    await keep(admin, clock, usages=["signing"])
    assert (await who(server, TOKEN))[0] == 401


async def test_a_bootstrap_token_with_another_secret_is_refused(server: EmbeddedServer, admin: Wire, clock: Clock) -> None:
    await keep(admin, clock)
    assert (await who(server, "abcdef.0000000000000000"))[0] == 401


async def test_a_deleted_bootstrap_token_is_refused(server: EmbeddedServer, admin: Wire, clock: Clock) -> None:
    await keep(admin, clock)
    assert (await who(server, TOKEN))[0] == 201
    await admin.ask("DELETE", "/api/v1/namespaces/kube-system/secrets/bootstrap-token-abcdef")
    assert (await who(server, TOKEN))[0] == 401


async def test_a_service_account_gets_tokens_that_end_and_go_with_it(server: EmbeddedServer, admin: Wire, clock: Clock) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts"
    await admin.make(path, {"metadata": {"name": "robot"}})
    made = await admin.make(f"{path}/robot/token", {"spec": {"expirationSeconds": 600}})
    token = made["status"]["token"]
    code, user = await who(server, token)
    assert (code, user["username"]) == (201, "system:serviceaccount:default:robot")
    assert user["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    clock.now += timedelta(seconds=601)
    assert (await who(server, token))[0] == 401
    clock.now -= timedelta(seconds=601)
    await admin.ask("DELETE", f"{path}/robot")
    assert (await who(server, token))[0] == 401


async def test_impersonation_is_a_right(server: EmbeddedServer, admin: Wire) -> None:
    code, document = await admin.ask("POST", WHO, {}, Impersonate_User="system:serviceaccount:a:b")
    assert code == 201
    assert document["status"]["userInfo"]["groups"] == ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]
    async with wire(server.connection("jane", ())) as asker:
        code, document = await asker.ask("POST", WHO, {}, Impersonate_User="admin")
    message = 'users "admin" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope'
    assert (code, document["message"]) == (403, message)


async def test_anybody_may_ask_for_the_version_and_nothing_else(server: EmbeddedServer) -> None:
    async with wire(server.connection_with_token("")) as asker:
        assert (await asker.ask("GET", "/version"))[0] == 200
        code, document = await asker.ask("GET", "/api/v1/namespaces")
    assert (code, document["reason"]) == (403, "Forbidden")
