"""Small writes to the metadata of objects: a finalizer, an owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.kube.aio import PatchType
from slipway.runtime import owners

if TYPE_CHECKING:
    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache


async def write_metadata(client: AsyncClient, cache: Cache, kind: Kind, manifest: Manifest, field: str) -> None:
    """Write one field of the metadata, unless somebody else was faster."""
    metadata = manifest["metadata"]
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], field: metadata[field]}}
    cache.wrote(kind, await client.patch(kind, metadata["name"], metadata["namespace"], patch, type=PatchType.MERGE))


async def own(client: AsyncClient, cache: Cache, kind: Kind, manifest: Manifest, owner: Manifest) -> None:
    """Give an object this owner, where it has not just this one."""
    references = manifest["metadata"].get("ownerReferences") or []
    if owner not in references:
        manifest["metadata"]["ownerReferences"] = owners.ensure(references, owner)
        await write_metadata(client, cache, kind, manifest, "ownerReferences")
