"""The objects of a management cluster that tell how its clusters and hosts stand, read once.

Whoever looks may not be allowed to see all of it, and not every management cluster has all kinds: what is missing is named with a sentence,
and everything else is read all the same.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure.names import CATALOG_NAME
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    CONFIG_MAP,
    CORE_EVENT,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_SET,
    SECRET,
)
from slipway.api.elemental.names import MANAGED, MANAGED_LABEL, PLAN_EMPTY
from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.fleet.overview.stages import place
from slipway.kube.errors import ApiError, ForbiddenError, GoneError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

NOT_INSTALLED = "is not installed in this management cluster"
"""How the sentence about a kind ends that nobody can have objects of."""
PLAN_SECRETS = f"{MANAGED_LABEL}={MANAGED}"
"""The label selector of plan Secrets."""
# How often a list is begun anew whose place the server has forgotten.
_TRIES = 2
# Of so many hosts at a time it is asked what they are doing.
_AT_ONCE = 16


class Objects(NamedTuple):
    """Manifests by kind, of one namespace or of all."""

    clusters: Sequence[Manifest] = ()
    control_planes: Sequence[Manifest] = ()
    """KubeadmControlPlanes; of others' control planes the Cluster says how they stand."""
    machine_deployments: Sequence[Manifest] = ()
    machine_sets: Sequence[Manifest] = ()
    machines: Sequence[Manifest] = ()
    baremetal_clusters: Sequence[Manifest] = ()
    baremetal_machines: Sequence[Manifest] = ()
    pools: Sequence[Manifest] = ()
    inventories: Sequence[Manifest] = ()
    plan_secrets: Sequence[Manifest] = ()
    """With their data where the plan is under way; of all others the metadata is enough."""
    events: Sequence[Manifest] = ()
    catalogs: Sequence[Manifest] = ()
    missing: Mapping[str, str] = MappingProxyType({})
    """By kind: why there is nothing of it."""


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "clusters": CLUSTER,
        "control_planes": KUBEADM_CONTROL_PLANE,
        "machine_deployments": MACHINE_DEPLOYMENT,
        "machine_sets": MACHINE_SET,
        "machines": MACHINE,
        "baremetal_clusters": BAREMETAL_CLUSTER,
        "baremetal_machines": BAREMETAL_MACHINE,
        "pools": MACHINE_INVENTORY_POOL,
        "inventories": MACHINE_INVENTORY,
    }
)
"""What is read whole, by its field of Objects."""


async def gather(client: AsyncClient, namespace: str = "", *, events: bool = True) -> Objects:
    """Everything of one namespace, or of all where it is empty; an OperatorError where the server does not answer, or not to us.

    Events are many, and not everybody needs them.
    """
    missing: dict[str, str] = {}

    async def listed(kind: Kind, *, labels: str = "", fields: str = "", metadata_only: bool = False) -> list[Manifest]:
        try:
            return await _listed(client, kind, namespace, labels=labels, fields=fields, metadata_only=metadata_only)
        except (ForbiddenError, NotFoundError) as error:
            missing[kind.kind] = why_missing(kind, namespace, absent=isinstance(error, NotFoundError))
            return []

    whole, secrets, told, catalogs = await asyncio.gather(
        asyncio.gather(*(listed(kind) for kind in KINDS.values())),
        listed(SECRET, labels=PLAN_SECRETS, metadata_only=True),
        listed(CORE_EVENT) if events else _nothing(),
        listed(CONFIG_MAP, fields=f"metadata.name={CATALOG_NAME}"),
    )
    found = dict(zip(KINDS, whole, strict=True))
    return Objects(
        **found,
        plan_secrets=await _under_way(client, secrets, found["inventories"]),
        events=[each for each in told if is_told(each)],
        catalogs=catalogs,
        missing=missing,
    )


async def chosen(client: AsyncClient, namespace: str, selector: str) -> set[tuple[str, str]]:
    """The hosts that a label selector finds, by namespace and name: the API server alone says what a selector means."""
    try:
        found = await client.list(MACHINE_INVENTORY, namespace, labels=selector, metadata_only=True)
    except ForbiddenError:
        raise OperatorError(why_missing(MACHINE_INVENTORY, namespace, absent=False)) from None
    except ApiError as error:
        if error.code != HTTPStatus.BAD_REQUEST:
            raise
        raise UsageError(f'"{selector}" is no label selector: {error.message}') from None
    return {place(each) for each in found}


def is_told(event: Manifest) -> bool:
    """Whether an Event is about a kind that is looked at here."""
    about = event.get("involvedObject") or {}
    group = str(about.get("apiVersion") or "").rpartition("/")[0]
    return any(kind.kind == about.get("kind") and kind.group == group for kind in KINDS.values())


def is_under_way(inventory: Manifest) -> bool:
    """Whether a host has a plan of ours that it has not ended."""
    plan = (inventory.get("status") or {}).get("plan") or {}
    return plan.get("type") not in (None, "", PLAN_EMPTY) and not plan.get("state")


async def _listed(client: AsyncClient, kind: Kind, namespace: str, *, labels: str, fields: str, metadata_only: bool) -> list[Manifest]:
    for _ in range(_TRIES):
        try:
            return await client.list(kind, namespace, labels=labels, fields=fields, metadata_only=metadata_only)
        except GoneError:
            continue
    return await client.list(kind, namespace, labels=labels, fields=fields, metadata_only=metadata_only)


async def _nothing() -> list[Manifest]:
    return []


async def _under_way(client: AsyncClient, secrets: Sequence[Manifest], inventories: Sequence[Manifest]) -> list[Manifest]:
    """The plan Secrets; those whose hosts work on a plan with their data, which says what they are doing."""
    busy = {place(each) for each in inventories if is_under_way(each)}
    turn = asyncio.Semaphore(_AT_ONCE)

    async def whole(secret: Manifest) -> Manifest:
        if place(secret) not in busy:
            return secret
        async with turn:
            try:
                return await client.find(SECRET, secret["metadata"]["name"], secret["metadata"]["namespace"]) or secret
            except ForbiddenError:
                return secret

    return list(await asyncio.gather(*(whole(each) for each in secrets)))


def why_missing(kind: Kind, namespace: str, *, absent: bool) -> str:
    """The sentence about a kind of which nothing is seen: it is not there, or may not be listed."""
    if absent:
        return f"{kind.kind} ({kind.api_version}) {NOT_INSTALLED}"
    where = f"in the namespace {namespace}" if namespace else "in all namespaces (name one with --namespace, or ask for the right)"
    return f"you may not list {kind.plural}{'.' if kind.group else ''}{kind.group} {where}"
