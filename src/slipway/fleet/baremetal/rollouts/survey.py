"""Reads what an upgrade's prerequisites are judged by: from the management cluster, and the Nodes through the cluster's own endpoint."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure.names import CATALOG_NAME
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    LEASE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NODE,
    SECRET,
    SEED_IMAGE,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal.options import REGISTRY_SECRET
from slipway.fleet.baremetal.plans import catalog
from slipway.fleet.baremetal.rollouts import guards
from slipway.fleet.baremetal.rollouts.preflight import HeldLease, Survey
from slipway.fleet.clustercache import connection_from, secret_name
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import ApiError, ForbiddenError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.manager import Lease

_PATIENCE = 10.0


async def no_such_cluster(client: AsyncClient, name: str, namespace: str) -> OperatorError:
    """That there is none, and where there is one of that name, for who forgot the namespace."""
    try:
        found = [str(each["metadata"]["namespace"]) for each in await client.list(CLUSTER, fields=f"metadata.name={name}")]
    except (ForbiddenError, NotFoundError):
        found = []
    way = f"say --namespace {' or '.join(found)}" if found else "look for it with slipway fleet status --all-namespaces"
    return OperatorError(f'there is no Cluster "{name}" in the namespace {namespace}: {way}')


async def survey(
    client: AsyncClient,
    namespace: str,
    name: str,
    leases: Sequence[tuple[str, Lease]],
    catalog_namespace: str = "",
    registry_secret: str = REGISTRY_SECRET,
) -> Survey:
    """Everything about the cluster of that name; an OperatorError where there is none."""
    cluster = await client.find(CLUSTER, name, namespace)
    if cluster is None:
        raise await no_such_cluster(client, name, namespace)
    place = catalog_namespace or namespace
    planes, deployments = await _listed(client, KUBEADM_CONTROL_PLANE, namespace), await _listed(client, MACHINE_DEPLOYMENT, namespace)
    machines = await _listed(client, BAREMETAL_MACHINE, namespace)
    config = await client.find(CONFIG_MAP, CATALOG_NAME, place)
    plane_name = ((cluster.get("spec") or {}).get("controlPlaneRef") or {}).get("name")
    nodes, nodes_error = await _nodes(client, namespace, name)
    own_deployments = [each for each in deployments if (each.get("spec") or {}).get("clusterName") == name]
    own_plane = next((each for each in planes if each["metadata"]["name"] == plane_name), None)
    return Survey(
        cluster=cluster,
        baremetal_cluster=await _infrastructure(client, cluster, namespace),
        control_plane=own_plane,
        deployments=own_deployments,
        other_rollouts=[
            *(_typed(KUBEADM_CONTROL_PLANE, each) for each in planes if each is not own_plane),
            *(_typed(MACHINE_DEPLOYMENT, each) for each in deployments if each not in own_deployments),
        ],
        templates=guards.template_pools(await _listed(client, BAREMETAL_MACHINE_TEMPLATE, namespace)),
        pools=await _listed(client, MACHINE_INVENTORY_POOL, namespace),
        inventories=await _listed(client, MACHINE_INVENTORY, namespace),
        machines=[each for each in machines if (each["metadata"].get("labels") or {}).get(CLUSTER_NAME_LABEL) == name],
        seed_images=await _listed(client, SEED_IMAGE, namespace),
        catalog=None if config is None else dict(config.get("data") or {}),
        catalog_place=f"{place}/{CATALOG_NAME}",
        platform_registry=catalog.platform_registry(await client.find(SECRET, registry_secret, place)),
        leases=[
            HeldLease(controllers, f"{lease.namespace}/{lease.name}", await client.find(LEASE, lease.name, lease.namespace))
            for controllers, lease in leases
        ],
        nodes=nodes,
        nodes_error=nodes_error,
        now=datetime.now(UTC),
    )


async def _listed(client: AsyncClient, kind: Kind, namespace: str) -> list[Manifest]:
    """All of a kind; none where the server does not have it."""
    try:
        return await client.list(kind, namespace)
    except NotFoundError:
        return []


def _typed(kind: Kind, content: Manifest) -> Manifest:
    return {"kind": kind.kind, "apiVersion": kind.api_version, **content}


async def _infrastructure(client: AsyncClient, cluster: Manifest, namespace: str) -> Manifest | None:
    reference = (cluster.get("spec") or {}).get("infrastructureRef") or {}
    if reference.get("kind") != BAREMETAL_CLUSTER.kind:
        return None
    return await client.find(BAREMETAL_CLUSTER, str(reference.get("name")), namespace)


async def _nodes(client: AsyncClient, namespace: str, cluster: str) -> tuple[list[Manifest] | None, str]:
    """The Nodes, as its administrator reads them through its endpoint; else why they cannot be read."""
    secret = await client.find(SECRET, secret_name(cluster), namespace)
    if secret is None:
        return None, f"there is no Secret {secret_name(cluster)} to reach it with"
    try:
        async with asyncio.timeout(_PATIENCE), AsyncClient(connection_from(secret)) as workload:
            return await workload.list(NODE), ""
    except TimeoutError:
        return None, f"no answer within {_PATIENCE:.0f} s"
    except (ApiError, OperatorError, OSError) as error:
        return None, str(error)
