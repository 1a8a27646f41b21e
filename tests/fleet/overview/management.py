"""A fleet on an embedded API server."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fleet.overview.fleets import SPACE, Manifest
from fleet.world import preserving_crd

from slipway.api.cluster.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, SECRET, Kind
from slipway.fleet.overview.objects import KINDS, Objects
from slipway.kube.aio import AsyncClient
from slipway.runtime import rbac

READERS = "readers"


async def fill(client: AsyncClient, objects: Objects) -> None:
    """The kinds, a namespace, and the objects with their statuses."""
    await client.create(NAMESPACE, {"metadata": {"name": SPACE}})
    for kind in KINDS.values():
        await client.create(CUSTOM_RESOURCE_DEFINITION, preserving_crd(kind))
    uids: dict[str, str] = {}
    for field, kind in KINDS.items():
        for each in getattr(objects, field):
            made = await put(client, kind, each, uids)
            uids.setdefault(made["metadata"]["name"], made["metadata"]["uid"])
    for secret in objects.plan_secrets:
        await client.create(SECRET, secret)


async def put(client: AsyncClient, kind: Kind, manifest: Manifest, uids: Mapping[str, str] = MappingProxyType({})) -> Manifest:
    """``uids`` of owners by name: what has an owner that is not there does not stay."""
    owners = [{**each, "uid": uids[each["name"]]} for each in manifest["metadata"].get("ownerReferences") or ()]
    metadata = {**manifest["metadata"], "ownerReferences": owners}
    made = await client.create(kind, {"metadata": metadata, "spec": manifest["spec"]})
    return await client.update(kind, {**made, "status": manifest["status"]}, subresource="status")


async def let_read(client: AsyncClient, user: str, *kinds: Kind) -> None:
    """A user who may read some kinds in all namespaces, and nothing else."""
    rules = [rbac.rule(kind, *rbac.READ) for kind in kinds]
    role = rbac.cluster_role(READERS, rules)
    await client.create(CLUSTER_ROLE, role)
    await client.create(CLUSTER_ROLE_BINDING, rbac.binding(role, rbac.user(user)))
