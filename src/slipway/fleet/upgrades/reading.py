"""Reads what an upgrade is judged by: the objects of one cluster, again and again, and so no more of them than it needs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure.names import CATALOG_NAME
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY_POOL,
    MACHINE_POOL,
    MACHINE_SET,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal.rollouts.survey import no_such_cluster
from slipway.fleet.overview.objects import Objects
from slipway.kube.errors import ForbiddenError, NotFoundError

if TYPE_CHECKING:
    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient


async def read(client: AsyncClient, namespace: str, name: str) -> Objects:
    """The Cluster with all that rolls its machines, and the machines; hosts and Events are not among it."""
    labels = f"{CLUSTER_NAME_LABEL}={name}"

    async def listed(kind: Kind, selector: str = "") -> list[Manifest]:
        try:
            return await client.list(kind, namespace, labels=selector)
        except NotFoundError:
            # Of a provider that is not installed.
            return []

    cluster = await client.find(CLUSTER, name, namespace)
    if cluster is None:
        await _require_served(client, CLUSTER, namespace)
        raise await no_such_cluster(client, name, namespace)
    planes, deployments, sets, machines, bases, ours, pools = await asyncio.gather(
        listed(KUBEADM_CONTROL_PLANE),
        listed(MACHINE_DEPLOYMENT),
        listed(MACHINE_SET, labels),
        listed(MACHINE, labels),
        listed(BAREMETAL_CLUSTER),
        listed(BAREMETAL_MACHINE, labels),
        listed(MACHINE_INVENTORY_POOL),
    )
    if not planes:
        await _require_served(client, KUBEADM_CONTROL_PLANE, namespace)
    return Objects([cluster], planes, deployments, sets, machines, bases, ours, pools)


async def _require_served(client: AsyncClient, kind: Kind, namespace: str) -> None:
    """An object that is not found may be there in a version that is not spoken here."""
    try:
        await client.list(kind, namespace)
    except NotFoundError:
        raise OperatorError(
            f"the management cluster does not serve {kind.plural} of {kind.api_version}: Cluster API 1.11 and newer do; upgrade it first"
        ) from None


async def machine_pools(client: AsyncClient, namespace: str, name: str) -> list[str]:
    """Of the MachinePools of a cluster, which an upgrade does not reach, a sentence each."""
    try:
        found = await client.list(MACHINE_POOL, namespace)
    except NotFoundError:
        return []
    except ForbiddenError:
        return ["whether the cluster has MachinePools may not be seen: an upgrade does not reach them"]
    own = [each for each in found if (each.get("spec") or {}).get("clusterName") == name]
    return [f"the MachinePool {each['metadata']['name']} is not upgraded from here: patch its version when this is done" for each in own]


async def catalog_keys(client: AsyncClient, objects: Objects, place: str) -> list[str] | None:
    """The versions that there are images of; None where the cluster is not on bare metal, and none are needed."""
    reference = (objects.clusters[0].get("spec") or {}).get("infrastructureRef") or {}
    if reference.get("kind") != BAREMETAL_CLUSTER.kind:
        return None
    found = await client.find(CONFIG_MAP, CATALOG_NAME, place)
    return list((found or {}).get("data") or {})
