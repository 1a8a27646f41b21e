"""Who owns the labels and annotations of an object that was made by server-side apply.

Whoever creates a clone owns all of it at first.  Labels and annotations are then kept by another field manager, which can take away what is
no longer wanted without having to say the rest again: the creator gives up those, as Cluster API's controllers do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.kube.aio import PatchType

if TYPE_CHECKING:
    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

_GIVEN_UP = ("f:labels", "f:annotations")


async def give_up_metadata(client: AsyncClient, kind: Kind, created: Manifest, field_manager: str) -> Manifest:
    """The object after ``field_manager`` owns neither its labels nor its annotations any more; their values stay."""
    metadata = created["metadata"]
    entries = [without_metadata(entry, field_manager) for entry in metadata.get("managedFields") or ()]
    if entries == (metadata.get("managedFields") or []):
        return created
    # The version keeps us from bringing back what somebody else owned a moment ago.
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "managedFields": entries}}
    return await client.patch(kind, metadata["name"], metadata.get("namespace", ""), patch, type=PatchType.MERGE)


def without_metadata(entry: Manifest, field_manager: str) -> Manifest:
    """An entry of managedFields without labels and annotations, where it is what ``field_manager`` applied."""
    if (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "") != (field_manager, "Apply", ""):
        return entry
    fields = entry.get("fieldsV1") or {}
    kept = {name: owned for name, owned in (fields.get("f:metadata") or {}).items() if name not in _GIVEN_UP}
    rest = {name: owned for name, owned in fields.items() if name != "f:metadata"}
    return {**entry, "fieldsV1": {**rest, "f:metadata": kept} if kept else rest}
