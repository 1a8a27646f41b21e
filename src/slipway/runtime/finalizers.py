"""Finalizers: what must be done before an object may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest


def is_deleted(manifest: Manifest) -> bool:
    """Whether the object goes as soon as its finalizers are gone."""
    return bool(manifest["metadata"].get("deletionTimestamp"))


def has(manifest: Manifest, finalizer: str) -> bool:
    return finalizer in (manifest["metadata"].get("finalizers") or ())


def add(manifest: Manifest, finalizer: str) -> bool:
    """Whether it was not there yet.  An object that is deleted takes no new ones: the API server refuses them."""
    if has(manifest, finalizer) or is_deleted(manifest):
        return False
    manifest["metadata"]["finalizers"] = [*(manifest["metadata"].get("finalizers") or ()), finalizer]
    return True


def remove(manifest: Manifest, finalizer: str) -> bool:
    """Whether it was there."""
    if not has(manifest, finalizer):
        return False
    manifest["metadata"]["finalizers"] = [other for other in manifest["metadata"]["finalizers"] if other != finalizer]
    return True
