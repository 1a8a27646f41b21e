"""The webhooks' certificates in an API server: shared by replicas, and told to whoever calls."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from runtime.widgets import CRD, SPACE, WIDGET, api_client

from slipway.api.cluster.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    MUTATING_WEBHOOK_CONFIGURATION,
    SECRET,
    VALIDATING_WEBHOOK_CONFIGURATION,
)
from slipway.credentials import x509
from slipway.fleet.manifests import MUTATING, VALIDATING, Installation, cluster_wide, manifests, targets
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.rbac import rule
from slipway.runtime.webhook.admission import Defaulter, Validator, Verdict
from slipway.runtime.webhook.certificates import OVERLAP, CertificateSet
from slipway.runtime.webhook.store import CertificateStore

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOOKS: list[Validator | Defaulter] = [Validator(WIDGET, lambda request: Verdict()), Defaulter(WIDGET, lambda request: request.object or {})]
INSTALLATION = Installation(
    rules=[rule(WIDGET, "get")],
    crds=[CRD],
    webhooks=HOOKS,
    controllers=("bootstrap",),
    image="slipway:test",
    namespace=SPACE,
    webhook_url="https://127.0.0.1:9/hooks",
)
TARGETS = targets([CRD], HOOKS, SPACE)


def _store(client: AsyncClient, name: str = "e-certificate") -> CertificateStore:
    return CertificateStore(client, SPACE, name, TARGETS, names=["localhost"])


async def _configure(client: AsyncClient) -> None:
    """The webhook configurations alone, in a namespace where nothing is created that they would refuse."""
    for manifest in manifests(INSTALLATION):
        if manifest["kind"] in ("CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            kind = next(target.kind for target in TARGETS if target.kind.kind == manifest["kind"])
            await client.patch(kind, manifest["metadata"]["name"], "", manifest, type=PatchType.APPLY, field_manager="slipway", force=True)


async def _bundles(client: AsyncClient) -> list[bytes]:
    crd = await client.get(CUSTOM_RESOURCE_DEFINITION, CRD["metadata"]["name"])
    hooks = [
        hook["clientConfig"]
        for kind, name in ((MUTATING_WEBHOOK_CONFIGURATION, MUTATING), (VALIDATING_WEBHOOK_CONFIGURATION, VALIDATING))
        for hook in (await client.get(kind, cluster_wide(name, SPACE)))["webhooks"]
    ]
    clients = [crd["spec"]["conversion"]["webhook"]["clientConfig"], *hooks]
    return [b64decode(client.get("caBundle", "")) for client in clients]


def _names(current: CertificateSet) -> tuple[str, ...]:
    profile = x509.profile_of(x509.parse(current.certificate)[0])
    return (*profile.dns_names, *profile.addresses)


async def _clean(client: AsyncClient) -> None:
    for target in TARGETS:
        if target.kind != CUSTOM_RESOURCE_DEFINITION:
            await client.delete(target.kind, target.name)
    await client.patch(
        CUSTOM_RESOURCE_DEFINITION, CRD["metadata"]["name"], "", {"spec": {"conversion": {"strategy": "None", "webhook": None}}},
        type=PatchType.MERGE,
    )  # fmt: skip


@pytest.mark.asyncio
async def test_everybody_who_calls_learns_of_the_authority() -> None:
    async with api_client() as client:
        await _configure(client)
        try:
            current = await _store(client).ensure(NOW)
            assert await _bundles(client) == [current.authorities] * 3
            assert _names(current) == ("localhost", "127.0.0.1"), "the host of the URL is served too"
            versions = [(await client.get(*target))["metadata"]["resourceVersion"] for target in TARGETS]
            assert await _store(client).ensure(NOW) == current, "another replica takes what is there"
            assert [(await client.get(*target))["metadata"]["resourceVersion"] for target in TARGETS] == versions
        finally:
            await _clean(client)


@pytest.mark.asyncio
async def test_an_authority_is_rotated_with_the_old_one_beside_it() -> None:
    async with api_client() as client:
        await _configure(client)
        try:
            first = await _store(client).ensure(NOW)
            # The serving certificate is younger than the authority, as it is in a cluster that lives.
            await _store(client).ensure(NOW + timedelta(days=200))
            rotated = await _store(client).ensure(NOW + timedelta(days=244))
            assert await _bundles(client) == [rotated.authorities] * 3
            assert rotated.authorities.endswith(first.authorities)
            signed = await _store(client).ensure(NOW + timedelta(days=244) + OVERLAP)
            newest = x509.parse(signed.authorities)[0]
            assert not x509.chain_problem(x509.parse(signed.certificate)[0], [], newest, NOW + timedelta(days=245))
        finally:
            await _clean(client)


@pytest.mark.asyncio
async def test_replicas_that_start_at_once_agree() -> None:
    async with api_client() as client:
        found = await asyncio.gather(*(_store(client).ensure(NOW) for _ in range(8)))
        assert len(set(found)) == 1


@pytest.mark.asyncio
async def test_a_secret_of_other_content_is_filled_and_keeps_what_else_is_in_it() -> None:
    async with api_client() as client:
        other: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "e-certificate", "namespace": SPACE}}
        await client.create(SECRET, {**deepcopy(other), "data": {"note": "aGk="}})
        current = await _store(client).ensure(NOW)
        secret = await client.get(SECRET, "e-certificate", SPACE)
        assert secret["data"]["note"] == "aGk="
        assert b64decode(secret["data"]["tls.crt"]) == current.certificate


@pytest.mark.asyncio
async def test_what_is_not_installed_is_not_missed() -> None:
    async with api_client() as client:
        current = await _store(client).ensure(NOW)
        assert _names(current) == ("localhost",)
