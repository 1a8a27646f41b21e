"""Webhooks that the real kube-apiserver calls, manifests that it takes, and controllers under just the roles that are made for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from e2e.planes import connection_of, management_plane, real_server
from runtime.widgets import CRD, SPACE, WIDGET, prepare, widget
from support.ports import free_port

from slipway.api.cluster import kinds
from slipway.api.cluster.kinds import KUBEADM_CONFIG, Kind
from slipway.api.machinery.errors import OperatorError
from slipway.fleet import manifests as made
from slipway.fleet import registry
from slipway.fleet.manifests import Installation
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.connection import Connection
from slipway.kube.errors import ApiError, ForbiddenError, NotFoundError
from slipway.runtime import rbac
from slipway.runtime.apply import install, kind_of
from slipway.runtime.webhook.admission import AdmissionRequest, Defaulter, Problem, Validator, Verdict
from slipway.runtime.webhook.certificates import OVERLAP
from slipway.runtime.webhook.server import Certified, WebhookServer
from slipway.runtime.webhook.store import CertificateStore

pytestmark = real_server
V2 = Kind(WIDGET.group, "v2", WIDGET.kind, WIDGET.plural)


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with management_plane(tmp_path_factory.mktemp("management")) as plane:
        yield connection_of(plane.kubeconfig)


def _validate(request: AdmissionRequest) -> Verdict:
    assert request.object is not None
    size = request.object["spec"].get("size")
    if isinstance(size, int) and size > 0:
        return Verdict(warnings=[f"{size} is large"] if size > 100 else ())
    return Verdict([Problem("spec.size", "FieldValueInvalid", f"spec.size: Invalid value: {size}: must be at least 1")])


def _default(request: AdmissionRequest) -> dict[str, Any]:
    manifest = request.object or {}
    manifest.setdefault("spec", {}).setdefault("size", 5)
    return manifest


def _convert(manifest: dict[str, Any], desired: str) -> dict[str, Any]:
    """``size`` is ``extent`` in v2."""
    spec = dict(manifest.get("spec") or {})
    old, new = ("size", "extent") if desired.endswith("/v2") else ("extent", "size")
    if spec.get(old) == 13:
        raise OperatorError("13 cannot be converted")
    if old in spec:
        spec[new] = spec.pop(old)
    return {**manifest, "apiVersion": desired, "spec": spec}


HOOKS: list[Validator | Defaulter] = [Validator(WIDGET, _validate), Defaulter(WIDGET, _default)]


class _Clock:
    def __init__(self, now: datetime) -> None:
        self.now = now


@asynccontextmanager
async def _webhooks(
    admin: Connection, now: datetime | None = None
) -> AsyncIterator[tuple[AsyncClient, WebhookServer, _Clock, Installation]]:
    """The widgets' webhooks on a free port of this machine, known to the API server by URL."""
    async with AsyncClient(admin) as client:
        await prepare(client)
        clock, port = _Clock(now or datetime.now(UTC)), free_port()
        installation = Installation(
            rules=[], crds=[CRD], webhooks=HOOKS, controllers=(), image="none", namespace=SPACE, webhook_url=f"https://127.0.0.1:{port}"
        )
        store = CertificateStore(client, SPACE, made.WEBHOOK_SECRET, made.targets([CRD], HOOKS, SPACE))
        server = WebhookServer(Certified(store, lambda: clock.now), address="127.0.0.1", port=port, look=0.1, retry=0.1)
        server.add(*HOOKS)
        server.add_conversion(_convert)
        await install(client, made.manifests(installation), lambda line: None)
        stop = asyncio.Event()
        task = asyncio.create_task(server.run(stop))
        try:
            await _until(lambda: _is_ready(server))
            await _until(lambda: _accepted(client))
            yield client, server, clock, installation
        finally:
            stop.set()
            await task
            for target in made.targets([CRD], HOOKS, SPACE):
                await client.delete(target.kind, target.name)
            await _until(lambda: _is_gone(client))


async def _until(check: Any, seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not await check():
            await asyncio.sleep(0.1)


async def _is_gone(client: AsyncClient) -> bool:
    return await client.find(kinds.CUSTOM_RESOURCE_DEFINITION, CRD["metadata"]["name"]) is None


async def _is_ready(server: WebhookServer) -> bool:
    return not server.ready()


async def _accepted(client: AsyncClient) -> bool:
    """Whether the API server has learned of the webhooks' authority: it takes a moment after the configuration was written."""
    try:
        await client.create(WIDGET, widget("probe", size=1))
        await client.get(V2, "probe", SPACE)
    except ApiError as error:
        await client.delete(WIDGET, "probe", SPACE)
        if not any(word in error.message for word in ("x509", "connect", "not found")):
            raise
        return False
    await client.delete(WIDGET, "probe", SPACE)
    return True


@pytest.mark.asyncio
async def test_the_api_server_defaults_validates_and_converts_by_our_webhooks(admin: Connection) -> None:
    async with _webhooks(admin) as (client, _, _, _):
        created = await client.create(WIDGET, widget("a"))
        assert created["spec"] == {"size": 5}, "defaulted"
        with pytest.raises(ApiError) as refused:
            await client.create(WIDGET, widget("b", size=0))
        assert refused.value.code == 422
        assert refused.value.message == (
            'admission webhook "validation.widget.e.test.slipway.io" denied the request: '
            'Widget.e.test.slipway.io "b" is invalid: spec.size: Invalid value: 0: must be at least 1'
        )
        with pytest.raises(ApiError, match="must be at least 1"):
            await client.patch(WIDGET, "a", SPACE, {"spec": {"size": -1}}, type=PatchType.MERGE)
        second = await client.get(V2, "a", SPACE)
        assert (second["apiVersion"], second["spec"]) == ("e.test.slipway.io/v2", {"extent": 5})
        assert second["metadata"]["uid"] == created["metadata"]["uid"]
        through = await client.create(V2, {**widget("c", extent=7), "apiVersion": V2.api_version})
        assert through["spec"] == {"extent": 7}
        assert (await client.get(WIDGET, "c", SPACE))["spec"] == {"size": 7}
        assert sorted(item["spec"]["extent"] for item in await client.list(V2, SPACE)) == [5, 7]
        await client.create(WIDGET, widget("d", size=13))
        with pytest.raises(ApiError, match="13 cannot be converted"):
            await client.get(V2, "d", SPACE)


class _Writer:
    """Creates objects one after another; every one needs the webhooks."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.count = 0

    async def run(self) -> None:
        while True:
            await self._client.create(WIDGET, widget(f"r{self.count}", size=1))
            self.count += 1

    async def more(self, number: int) -> None:
        wanted = self.count + number

        async def made_them() -> bool:
            return self.count >= wanted

        await _until(made_them)


@pytest.mark.asyncio
async def test_certificates_rotate_while_the_api_server_calls(admin: Connection) -> None:
    """The authority is from 300 days ago; the API server judges by the real clock, the renewal by one that is moved up to it."""
    start = datetime.now(UTC) - timedelta(days=300)
    async with AsyncClient(admin) as client:
        await prepare(client)
        await client.delete(kinds.SECRET, made.WEBHOOK_SECRET, SPACE)
        store = CertificateStore(client, SPACE, made.WEBHOOK_SECRET, [], names=["127.0.0.1"])
        for day in (0, 75, 150, 225):
            await store.ensure(start + timedelta(days=day))

    async with _webhooks(admin, start + timedelta(days=225)) as (client, _, clock, _):

        async def kept() -> dict[str, str]:
            data: dict[str, str] = (await client.get(kinds.SECRET, made.WEBHOOK_SECRET, SPACE))["data"]
            return data

        before = await kept()

        async def differs(key: str) -> bool:
            return (await kept())[key] != before[key]

        writer = _Writer(client)
        writing = asyncio.create_task(writer.run())
        await writer.more(10)
        clock.now = start + timedelta(days=244)
        await _until(lambda: differs("ca.crt"))
        assert not await differs("tls.crt"), "the new authority is told before it signs"
        await writer.more(100)
        clock.now += OVERLAP
        await _until(lambda: differs("tls.crt"))
        await writer.more(100)
        assert not writing.done(), "no object was refused"
        writing.cancel()


@pytest.mark.asyncio
@pytest.mark.parametrize("url", ["", "https://192.0.2.1:9443"], ids=["deployment", "outside"])
async def test_the_api_server_takes_the_manifests(admin: Connection, url: str) -> None:
    """By a dry run of server-side apply, strictly: an unknown field is an error."""
    declared = registry.declarations(registry.chosen(["all"]))
    installation = Installation(
        rules=declared.rules,
        crds=declared.crds,
        webhooks=declared.webhooks,
        controllers=declared.names,
        image="slipway:v1",
        namespace="default",
        provider="bootstrap-kubeadm",
        webhook_url=url,
    )
    async with AsyncClient(admin) as client:
        for manifest in made.manifests(installation):
            kind, metadata = kind_of(manifest), manifest["metadata"]
            path = kinds.path(kind, metadata.get("namespace", ""), metadata["name"])
            query = "fieldManager=slipway&force=true&dryRun=All&fieldValidation=Strict"
            answer = await client.raw(
                f"{path}?{query}", method="PATCH", body=msgspec.json.encode(manifest), content_type="application/apply-patch+yaml"
            )
            assert msgspec.json.decode(answer)["kind"] == manifest["kind"]


async def _as_manager(client: AsyncClient, connection: Connection, namespace: str) -> Connection:
    """A connection as the ServiceAccount of an installation."""
    body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}'
    path = kinds.path(kinds.SERVICE_ACCOUNT, namespace, made.NAME, "token")
    token = msgspec.json.decode(await client.raw(path, method="POST", body=body))["status"]["token"]
    return Connection(server=connection.server, ca=connection.ca, token=token)


@pytest.mark.asyncio
async def test_the_installed_role_is_what_was_declared_and_no_more(admin: Connection) -> None:
    declared = registry.declarations(registry.chosen(["bootstrap"]))
    installation = Installation(
        rules=declared.rules,
        crds=declared.crds,
        webhooks=declared.webhooks,
        controllers=declared.names,
        image="slipway:v1",
        namespace="e-manager",
        webhook_url="https://192.0.2.1:9443",
    )
    async with AsyncClient(admin) as client:
        wanted = [one for one in made.manifests(installation) if not one["kind"].endswith("WebhookConfiguration")]
        await install(client, wanted, lambda line: None)
        rules = made.cluster_rules(declared.rules, declared.crds, declared.webhooks)
        async with AsyncClient(await _as_manager(client, admin, "e-manager")) as manager:
            assert isinstance(await manager.list(KUBEADM_CONFIG), list)
            for kind in (kinds.NODE, kinds.NAMESPACE, kinds.CLUSTER_ROLE, kinds.POD):
                assert not rbac.allows(rules, "list", kind.group, kind.plural)
                with pytest.raises(ForbiddenError):
                    await manager.list(kind)
            with pytest.raises(ForbiddenError):
                await manager.patch(kinds.CLUSTER_ROLE, made.NAME, "", {"rules": []}, type=PatchType.MERGE)
            with pytest.raises(ForbiddenError):
                await manager.delete(KUBEADM_CONFIG, "x", "default")
            # Its own Secret, by its name, and no other of its namespace unless the reconcilers declare it.
            with pytest.raises(NotFoundError):
                await manager.get(kinds.SECRET, made.WEBHOOK_SECRET, "e-manager")
