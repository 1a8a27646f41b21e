"""How references name kinds; following them is in tests/fleet/bootstrap/test_reconciler.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from slipway.api.cluster.kinds import MACHINE_INVENTORY
from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.references import References, besides_status, contract_version, crd_name
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.runtime.cache.cache import Cache
from slipway.runtime.objects import Object


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"cluster.x-k8s.io/v1beta2": "v1beta2"}, "v1beta2"),
        ({"cluster.x-k8s.io/v1beta1": "v1beta1"}, "v1beta1"),
        ({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}, "v1beta2"),
        ({"cluster.x-k8s.io/v1beta2": "v1alpha1_v1beta1_v1_v2alpha1"}, "v1"),
        ({"cluster.x-k8s.io/v1beta2": "v1beta2_v1beta10"}, "v1beta10"),
    ],
)
def test_the_contract_label_names_the_api_version(labels: dict[str, str], expected: str) -> None:
    assert contract_version(labels, "crd") == expected


@pytest.mark.parametrize("labels", [{}, {"cluster.x-k8s.io/v1beta2": ""}, {"cluster.x-k8s.io/v1alpha4": "v1alpha4"}])
def test_a_crd_without_the_contract_label_is_an_error(labels: dict[str, str]) -> None:
    with pytest.raises(OperatorError, match="says by no label"):
        contract_version(labels, "crd")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("KubeadmControlPlane", "kubeadmcontrolplanes.g"),
        ("AProxy", "aproxies.g"),
        ("HostedBus", "hostedbuses.g"),
        ("Gateway", "gateways.g"),
        ("Mesh", "meshes.g"),
    ],
)
def test_crds_are_named_by_the_plural_of_their_kind(kind: str, expected: str) -> None:
    assert crd_name("g", kind) == expected


@pytest.mark.asyncio
async def test_an_object_that_is_missing_says_nothing_of_its_kind_and_a_version_that_is_not_served_does() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path.endswith("/customresourcedefinitions/things.g"):
            spec = {"names": {"plural": "things"}, "scope": "Namespaced"}
            return web.json_response({"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": "v1"}}, "spec": spec})
        if request.path.endswith("/gone"):
            details = {"name": "gone", "group": "g", "kind": "things"}
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound", "details": details}, status=404)
        return web.Response(text="404 page not found", status=404)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application) as server, AsyncClient(Connection(server=str(server.make_url("")))) as client:
        references = References(client, Cache(client), watch=lambda kind: None)
        for name, times in (("gone", 1), ("gone", 1), ("other", 1), ("gone", 2)):
            assert await references.find(Reference(api_group="g", kind="Thing", name=name), "n") is None
            assert sum("customresourcedefinitions" in path for path in asked) == times


_METADATA: dict[str, Any] = {"name": "m-1", "uid": "1", "resourceVersion": "7", "generation": 1, "finalizers": ["a/b"]}


def _inventory(status: str = "", **metadata: Any) -> Object:
    return Object(MACHINE_INVENTORY, json.dumps({"metadata": _METADATA | metadata, "status": {"hostFacts": {"image": status}}}).encode())


@pytest.mark.parametrize(
    "change",
    [
        {"generation": 2},
        {"labels": {"rack": "b"}},
        {"annotations": {"slipway.io/pool": "workers"}},
        {"finalizers": []},
        {"deletionTimestamp": "2026-05-01T00:00:00Z"},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "2"}]},
        # Deleted and made anew, and the watch told of neither.
        {"uid": "2"},
    ],
)
def test_who_writes_a_status_is_told_of_everything_else(change: dict[str, Any]) -> None:
    assert besides_status(_inventory(), _inventory(resourceVersion="8", **change))


def test_who_writes_a_status_is_not_told_of_that() -> None:
    before = _inventory()
    assert not besides_status(before, _inventory("v1.35.4", resourceVersion="8"))
    # What comes, what goes, and what is looked at again.
    assert besides_status(None, before)
    assert besides_status(before, None)
    assert besides_status(before, before)
