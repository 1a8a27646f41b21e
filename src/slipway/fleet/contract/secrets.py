"""Secrets that a provider makes for an object of its own, which controls them: writing them, and never over somebody else's.

The cache has the metadata of a Cluster's Secrets alone: enough to see that one is missing or whose it is, and nothing that is secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster.kinds import SECRET
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, SECRET_TYPE
from slipway.api.machinery.errors import OperatorError
from slipway.kube.aio import PatchType
from slipway.kube.errors import AlreadyExistsError
from slipway.runtime import owners

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object


class TakenError(OperatorError):
    """A Secret of the wanted name is there and is somebody else's."""


def restrict(cache: Cache) -> None:
    """Let the cache have Secrets of Clusters only, and of them the metadata alone; to be said before the first use."""
    cache.restrict(SECRET, labels=CLUSTER_NAME_LABEL, metadata_only=True)


def owner_of(found: Object, owner: Manifest) -> bool:
    """Whether a cached Secret has just this owner reference."""
    wanted = (owner["apiVersion"], owner["kind"], owner["name"], owner["uid"], True)
    references = found.metadata.owner_references
    return any((one.api_version, one.kind, one.name, one.uid, one.controller) == wanted for one in references)


def require_ours(found: Mapping[str, Any], owner: Manifest, keys: Collection[str]) -> None:
    """An error unless the Secret is the owner's already, or is one of Cluster API's type, with these keys, that nobody controls.

    An owner is known by its name: after a move to another management cluster it has another uid.
    """
    metadata = found["metadata"]
    references = metadata.get("ownerReferences") or []
    if any(owners.same_owner(reference, owner) for reference in references):
        return
    where = f"{metadata.get('namespace')}/{metadata['name']}"
    controller = owners.controller_of({"metadata": metadata})
    if controller is not None:
        raise TakenError(
            f"could not add {owner['kind']} {owner['name']} as ownerReference to bootstrap Secret {metadata['name']}, "
            f"it is already controlled by {controller.get('kind')} {controller.get('name')}"
        )
    if found.get("type") != SECRET_TYPE or not set(keys) <= set(found.get("data") or ()):
        raise TakenError(
            f"the Secret {where} was not made for the {owner['kind']} {owner['name']} and is left as it is: it is of type "
            f"{found.get('type') or 'Opaque'}. Rename it, and whatever refers to it, or delete it"
        )


async def store(client: AsyncClient, secret: Manifest) -> Manifest:
    """Write the Secret of its first owner; what the server has then.  One that a killed reconcile left behind is brought up to date."""
    metadata = secret["metadata"]
    owner = metadata["ownerReferences"][0]
    try:
        return await client.create(SECRET, secret)
    except AlreadyExistsError:
        found = await client.get(SECRET, metadata["name"], metadata["namespace"])
    require_ours(found, owner, secret["data"])
    if _same(found, secret):
        return found
    had = found["metadata"]
    merged = {
        **had,
        "labels": {**(had.get("labels") or {}), **metadata["labels"]},
        "annotations": {**(had.get("annotations") or {}), **metadata.get("annotations", {})},
        "ownerReferences": owners.ensure(had.get("ownerReferences"), owner),
    }
    return await client.update(SECRET, {**found, "metadata": merged, "data": secret["data"]})


async def require_free(client: AsyncClient, secret: Manifest) -> None:
    """An error where :func:`store` would refuse to write the Secret."""
    metadata = secret["metadata"]
    found = await client.find(SECRET, metadata["name"], metadata["namespace"])
    if found is not None:
        require_ours(found, metadata["ownerReferences"][0], secret["data"])


async def adopt(client: AsyncClient, name: str, namespace: str, owner: Manifest, keys: Collection[str]) -> Manifest | None:
    """Make the Secret the owner's, where it may be; what was written, None where there was nothing to write."""
    found = await client.find(SECRET, name, namespace)
    if found is None:
        return None
    patch = owner_patch(found, owner, keys)
    return None if patch is None else await client.patch(SECRET, name, namespace, patch, type=PatchType.MERGE)


def owner_patch(found: Mapping[str, Any], owner: Manifest, keys: Collection[str]) -> Manifest | None:
    """The patch that makes the Secret the owner's; None where it is already."""
    metadata = found["metadata"]
    references = metadata.get("ownerReferences") or []
    if any(all(reference.get(field) == value for field, value in owner.items()) for reference in references):
        return None
    require_ours(found, owner, keys)
    return {"metadata": {"resourceVersion": metadata["resourceVersion"], "ownerReferences": owners.ensure(references, owner)}}


def _same(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    have, want = found["metadata"], wanted["metadata"]
    return (
        found.get("data") == wanted["data"]
        and want["labels"].items() <= (have.get("labels") or {}).items()
        and want.get("annotations", {}).items() <= (have.get("annotations") or {}).items()
        and want["ownerReferences"][0] in (have.get("ownerReferences") or ())
    )
