"""Who owns the labels and annotations of an object that was made by server-side apply.

Whoever creates a clone owns all of it at first.  Labels and annotations are then kept by another field manager, which can take away what is
no longer wanted without having to say the rest again: the creator gives up those, as Cluster API's controllers do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.kube.aio import PatchType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

_GIVEN_UP = ("f:labels", "f:annotations")
# The name of all managers of Cluster API that do not apply.
_CLASSIC = "manager"


async def give_up_metadata(client: AsyncClient, kind: Kind, created: Manifest, field_manager: str) -> Manifest:
    """The object after ``field_manager`` owns neither its labels nor its annotations any more; their values stay."""
    metadata = created["metadata"]
    entries = [without_metadata(entry, field_manager) for entry in metadata.get("managedFields") or ()]
    if entries == (metadata.get("managedFields") or []):
        return created
    # The version keeps us from bringing back what somebody else owned a moment ago.
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "managedFields": entries}}
    return await client.patch(kind, metadata["name"], metadata.get("namespace", ""), patch, type=PatchType.MERGE)


async def give_up_updates(client: AsyncClient, kind: Kind, applied: Manifest, field_manager: str) -> Manifest:
    """The object after what Cluster API's managers before 1.12 own of it is nobody's, where they made it; its values stay.

    To be called with what an apply of labels and annotations gave back: from then on these have one owner, which can take them away.
    """
    metadata = applied["metadata"]
    entries = without_updates(metadata.get("managedFields") or (), field_manager)
    if entries is None:
        return applied
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "managedFields": entries}}
    return await client.patch(kind, metadata["name"], metadata.get("namespace", ""), patch, type=PatchType.MERGE)


def without_updates(entries: Sequence[Manifest], field_manager: str) -> list[Manifest] | None:
    """managedFields without those two: who made the object by an update, and ``field_manager``, which applied labels and annotations alone.

    None where it was not made so: since 1.12 ``field_manager`` applies all the rest, and another one labels and annotations.
    """
    if not any(_is_applied_by(entry, field_manager) and _is_metadata_alone(entry) for entry in entries):
        return None
    return [entry for entry in entries if not _is_applied_by(entry, field_manager) and _identity(entry) != (_CLASSIC, "Update", "")]


def _is_applied_by(entry: Manifest, field_manager: str) -> bool:
    return _identity(entry) == (field_manager, "Apply", "")


def _identity(entry: Manifest) -> tuple[str, str, str]:
    return entry.get("manager") or "", entry.get("operation") or "", entry.get("subresource") or ""


def _is_metadata_alone(entry: Manifest) -> bool:
    fields = entry.get("fieldsV1") or {}
    metadata = fields.get("f:metadata") or {}
    owns_label = f"f:{CLUSTER_NAME_LABEL}" in (metadata.get("f:labels") or {})
    return owns_label and set(fields) == {"f:metadata"} and set(metadata) <= set(_GIVEN_UP)


def without_metadata(entry: Manifest, field_manager: str) -> Manifest:
    """An entry of managedFields without labels and annotations, where it is what ``field_manager`` applied."""
    if not _is_applied_by(entry, field_manager):
        return entry
    fields = entry.get("fieldsV1") or {}
    kept = {name: owned for name, owned in (fields.get("f:metadata") or {}).items() if name not in _GIVEN_UP}
    rest = {name: owned for name, owned in fields.items() if name != "f:metadata"}
    return {**entry, "fieldsV1": {**rest, "f:metadata": kept} if kept else rest}
