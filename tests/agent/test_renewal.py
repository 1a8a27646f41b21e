"""A host's token is renewed in time, through its Secret, and whatever happens meanwhile the host keeps one that is good."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent.world import HOST, NAMESPACE, Site, shell
from support.waiting import eventually

from slipway.agent import connection, renewal
from slipway.agent.loop import Session
from slipway.agent.machine import RealMachine
from slipway.agent.mailbox import Mailbox
from slipway.agent.plan.decision import PlanSecret
from slipway.agent.plan.journal import Journal, JournalFile
from slipway.agent.secret import seen
from slipway.api.cluster.kinds import ROLE, ROLE_BINDING, SERVICE_ACCOUNT, path
from slipway.api.elemental import plan as plans
from slipway.api.elemental.plan import Plan
from slipway.host.real import RealHost
from slipway.kube import kubeconfig
from slipway.kube.aio import PatchType

YEAR = 365 * 24 * 3600.0
NOW = 1_800_000_000.0


def web_token(**claims: float) -> str:
    """RFC 7519: three parts in base64url without padding."""
    parts = (b'{"alg":"RS256"}', msgspec.json.encode(claims), b"signature")
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def aged(age: float, life: float = YEAR) -> str:
    return web_token(iat=NOW - age, exp=NOW - age + life)


def secret(**data: str) -> PlanSecret:
    return PlanSecret(data={key.replace("_", "-"): value.encode() for key, value in data.items()}, annotations={}, resource_version="1")


@pytest.mark.parametrize(
    ("token", "found", "what"),
    [
        (aged(0), secret(), ""),
        (aged(0.66 * YEAR), secret(), ""),
        (aged(0.67 * YEAR), secret(), "ask"),
        (aged(2 * YEAR), secret(), "ask"),
        (aged(3000, 3600), secret(), "ask"),
        (aged(0.67 * YEAR), secret(slipway_token_request="true"), ""),
        (aged(0.67 * YEAR), secret(slipway_token=aged(1)), "take"),
        (aged(0.67 * YEAR), secret(slipway_token=aged(0.67 * YEAR)), "clear"),
        (aged(1), secret(slipway_token=aged(YEAR)), "clear"),
        (aged(1), secret(slipway_token="garbage"), "clear"),
        ("abcdef.0123456789abcdef", secret(), ""),
        (web_token(iat=NOW), secret(), ""),
        ("", secret(), ""),
    ],
)
def test_what_is_done_about_a_token_of_this_age(token: str, found: PlanSecret, what: str) -> None:
    assert renewal.wanted(found, token, NOW)[0] == what


class Tokens:
    """The account of the host, as the inventory makes it, and its tokens."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def prepare(self) -> None:
        client, place = self._site.client, {"namespace": NAMESPACE, "name": HOST}
        rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [HOST], "verbs": ["get", "list", "watch", "update"]}
        await client.create(SERVICE_ACCOUNT, {"metadata": place})
        await client.create(ROLE, {"metadata": place, "rules": [rule]})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": HOST}
        subjects = [{"kind": "ServiceAccount", "name": HOST, "namespace": NAMESPACE}]
        await client.create(ROLE_BINDING, {"metadata": place, "roleRef": reference, "subjects": subjects})

    async def issue(self, seconds: int) -> str:
        request: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
        where = path(SERVICE_ACCOUNT, NAMESPACE, HOST, "token")
        answer = msgspec.json.decode(await self._site.client.raw(where, method="POST", body=msgspec.json.encode(request)))
        token: str = answer["status"]["token"]
        return token

    def hold(self, token: str) -> None:
        """As the registration leaves it."""
        server = self._site.server
        document = kubeconfig.document(server=server.server, cluster="c", user="u", ca=server.ca, credentials={"token": token})
        connection.save(self._site.machine, document, NAMESPACE, HOST)

    @property
    def held(self) -> str:
        place = connection.load(self._site.machine.host)
        assert place is not None
        return place.connection.token


class Ahead(RealHost):
    """A host whose clock is ahead of the server's."""

    def __init__(self, root: Path, ahead: timedelta) -> None:
        super().__init__(str(root), {"PATH": os.environ["PATH"]})
        self._ahead = ahead

    def now(self) -> datetime:
        return super().now() + self._ahead


@pytest.mark.asyncio
@pytest.mark.parametrize("ahead", [timedelta(minutes=50), timedelta(days=3650)])
async def test_a_new_token_is_asked_for_once_tried_kept_and_taken_out_of_the_secret(site: Site, ahead: timedelta) -> None:
    tokens = Tokens(site)
    await tokens.prepare()
    tokens.hold(await tokens.issue(3600))

    async def asked() -> bool:
        return bool((await site.data()).get(plans.TOKEN_REQUEST))

    async def cleared() -> bool:
        data = await site.data()
        return not data[plans.TOKEN] and not data[plans.TOKEN_REQUEST]

    async with site.agent(machine=RealMachine(Ahead(site.root, ahead))):
        await site.settled("applied")
        await eventually(asked, "the host asks for a token")
        renewed = await tokens.issue(7200)
        await site.edit(plans.wire({plans.TOKEN: renewed, plans.TOKEN_REQUEST: b""}))
        await eventually(lambda: tokens.held == renewed, "the host keeps the new token")
        await eventually(cleared, "the Secret is cleared of it")
        await site.settled("applied", await site.give(Plan(instructions=(shell("a", "true"),))))
        assert not await asked()
    assert site.said.count("this host has a new token") == 1


@pytest.mark.asyncio
async def test_a_token_that_the_server_does_not_take_is_not_kept(site: Site) -> None:
    tokens = Tokens(site)
    await tokens.prepare()
    good = await tokens.issue(3600)
    tokens.hold(good)
    now = time.time()
    await site.edit(plans.wire({plans.TOKEN: web_token(iat=now, exp=now + YEAR)}))

    async def cleared() -> bool:
        return not (await site.data())[plans.TOKEN]

    async with site.agent():
        await eventually(cleared, "the token is thrown away")
    assert tokens.held == good
    assert any("of no use" in line for line in site.said)


@pytest.mark.asyncio
async def test_after_a_token_that_ends_before_the_one_there_is_no_other_is_asked_for_at_once(site: Site) -> None:
    """As an API server gives them whose longest life of a token was made shorter."""
    tokens = Tokens(site)
    await tokens.prepare()
    held, shorter = await tokens.issue(7200), await tokens.issue(3600)
    tokens.hold(held)
    await site.edit(plans.wire({plans.TOKEN: shorter}))

    async def cleared() -> bool:
        return not (await site.data())[plans.TOKEN]

    async with site.agent(machine=RealMachine(Ahead(site.root, timedelta(minutes=100)))):
        await eventually(cleared, "the token is thrown away")
        await site.settled("applied", await site.give(Plan(instructions=(shell("a", "true"),))))
        await site.settled("applied", await site.give(Plan(instructions=(shell("b", "true"),))))
        assert not (await site.data())[plans.TOKEN_REQUEST]
    assert tokens.held == held


@pytest.mark.asyncio
async def test_a_token_that_cannot_be_taken_out_of_the_secret_does_not_keep_the_host_busy(site: Site) -> None:
    tokens = Tokens(site)
    await tokens.prepare()
    held = await tokens.issue(3600)
    tokens.hold(held)
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [HOST], "verbs": ["get", "list", "watch"]}
    await site.client.patch(ROLE, HOST, NAMESPACE, {"rules": [rule]}, type=PatchType.MERGE)
    await site.edit(plans.wire({plans.TOKEN: held}))
    place = connection.load(site.machine.host)
    assert place is not None
    session = Session(site.machine, place, JournalFile(site.machine), Journal(), Mailbox(), site.said.append, threading.Event())
    seconds = await asyncio.to_thread(session._renew, seen(await site.secret()))
    assert any("cannot be written" in line for line in site.said)
    assert seconds


@pytest.mark.asyncio
async def test_an_agent_that_was_killed_after_it_kept_a_token_only_takes_it_out_of_the_secret(site: Site) -> None:
    tokens = Tokens(site)
    await tokens.prepare()
    held = await tokens.issue(3600)
    tokens.hold(held)
    await site.edit(plans.wire({plans.TOKEN: held}))

    async def cleared() -> bool:
        return not (await site.data())[plans.TOKEN]

    async with site.agent():
        await eventually(cleared, "the Secret is cleared of it")
    assert tokens.held == held
    assert "this host has a new token" not in site.said


@pytest.mark.asyncio
async def test_a_plan_in_flight_goes_on_while_a_token_is_offered(site: Site) -> None:
    tokens = Tokens(site)
    await tokens.prepare()
    tokens.hold(await tokens.issue(3600))
    log = site.root / "log"
    waits = f"echo begun >> {log}; while [ ! -e {site.root}/go ]; do sleep 0.02; done; echo ended >> {log}"
    async with site.agent():
        checksum = await site.give(Plan(instructions=(shell("waits", waits),)))
        await eventually(lambda: site.lines("log") == ["begun"], "the plan has begun")
        offered = await tokens.issue(7200)
        await site.edit(plans.wire({plans.TOKEN: offered}))
        (site.root / "go").touch()
        await site.settled("applied", checksum)
        await eventually(lambda: tokens.held == offered, "the host keeps the new token afterwards")
    assert site.lines("log") == ["begun", "ended"]
