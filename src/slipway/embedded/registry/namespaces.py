"""The life of namespaces: what may be created in one, and how a terminating one is emptied and goes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.apiextensions.resources import with_condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.store import Store, Stored


IMMORTAL = ("default", "kube-system", "kube-public")


def check_creation(store: Store, resource: Resource, metadata: Manifest) -> None:
    """A new object needs a namespace that is there and is to stay."""
    if not resource.namespaced:
        return
    namespace = metadata.get("namespace") or ""
    stored = store.get("namespaces", "", namespace)
    if stored is None:
        raise errors.not_found("", "namespaces", namespace)
    if stored.deleting:
        refusal = errors.forbidden(
            resource.group,
            resource.plural,
            metadata.get("name") or "",
            f"unable to create new content in namespace {namespace} because it is being terminated",
        )
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated", "field": "metadata.namespace"}
        refusal.details = {**(refusal.details or {}), "causes": [cause]}
        raise refusal


def check_deletion(resource: Resource, name: str) -> None:
    """The namespaces that every cluster has stay."""
    if resource.bucket == "namespaces" and name in IMMORTAL:
        raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")


def terminating_status(status: Manifest, left: Sequence[tuple[Resource, Stored]], now: str) -> Manifest:
    """The status of a namespace that is being emptied: what is left, and whose finalizers it waits for."""
    conditions = list(status.get("conditions") or ())
    quiet = [
        ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ("NamespaceDeletionContentFailure", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    ]
    for type_, reason, message in quiet:
        conditions = with_condition(conditions, type_, "False", reason, message, now)
    resources = Counter(f"{resource.plural}.{resource.group}" for resource, _ in left)
    finalizers = Counter(name for _, stored in left for name in stored.manifest()["metadata"].get("finalizers") or ())
    listed = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(resources.items()))
    waiting = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    content, held = "NamespaceContentRemaining", "NamespaceFinalizersRemaining"
    if listed:
        text = f"Some resources are remaining: {listed}"
        conditions = with_condition(conditions, content, "True", "SomeResourcesRemain", text, now)
    else:
        conditions = with_condition(conditions, content, "False", "ContentRemoved", "All content successfully removed", now)
    if waiting:
        text = f"Some content in the namespace has finalizers remaining: {waiting}"
        conditions = with_condition(conditions, held, "True", "SomeFinalizersRemain", text, now)
    else:
        conditions = with_condition(conditions, held, "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished", now)
    return {**status, "conditions": conditions}
