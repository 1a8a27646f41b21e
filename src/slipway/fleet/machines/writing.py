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


async def write_metadata(client: AsyncClient, cache: Cache, kind: Kind, manifest: Manifest, field: str) -> Manifest:
    """Write one field of the metadata, unless somebody else was faster; the object then."""
    metadata = manifest["metadata"]
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], field: metadata[field]}}
    written = await client.patch(kind, metadata["name"], metadata["namespace"], patch, type=PatchType.MERGE)
    cache.wrote(kind, written)
    return written


async def own(client: AsyncClient, cache: Cache, kind: Kind, manifest: Manifest, owner: Manifest) -> Manifest:
    """Give an object this owner, where it has not just this one; the object then."""
    references = manifest["metadata"].get("ownerReferences") or []
    if owner in references:
        return manifest
    manifest["metadata"]["ownerReferences"] = owners.ensure(references, owner)
    return await write_metadata(client, cache, kind, manifest, "ownerReferences")
