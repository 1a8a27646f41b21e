"""Owner references: who an object belongs to, and goes with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest


def reference(owner: Manifest, *, controller: bool = True, block_deletion: bool | None = None) -> Manifest:
    """A reference to ``owner``; ``controller`` makes it the one that the object is managed by.

    ``block_deletion`` holds up a deletion of the owner in the foreground; a controller's reference does so unless it is told not to.
    """
    metadata = owner["metadata"]
    made: Manifest = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    if controller:
        made["controller"] = True
    if controller if block_deletion is None else block_deletion:
        made["blockOwnerDeletion"] = True
    return made


def ensure(references: Iterable[Manifest] | None, new: Manifest) -> list[Manifest]:
    """The references with ``new`` among them; one to the same object, in whatever version, becomes the new one."""
    found = list(references or ())
    for position, current in enumerate(found):
        if same_owner(current, new):
            return [*found[:position], new, *found[position + 1 :]]
    return [*found, new]


def ensure_controller(references: Iterable[Manifest] | None, new: Manifest) -> list[Manifest]:
    """The references with ``new`` as the one controller; an error where somebody else is it already."""
    found = list(references or ())
    other = next((current for current in found if current.get("controller") and not same_owner(current, new)), None)
    if other is not None:
        raise OperatorError(
            f"it belongs to the {other.get('kind')} {other.get('name')} already and cannot belong to the {new['kind']} {new['name']} too"
        )
    return ensure(found, new)


def remove(references: Iterable[Manifest] | None, owner: Manifest) -> list[Manifest]:
    return [current for current in references or () if not same_owner(current, owner)]


def controller_of(manifest: Manifest) -> Manifest | None:
    """The reference to the controller."""
    return next((current for current in manifest["metadata"].get("ownerReferences") or () if current.get("controller")), None)


def is_controlled_by(manifest: Manifest, owner: Manifest) -> bool:
    """Whether the object is managed by just this owner: by its uid, as a name comes back after a deletion."""
    controller = controller_of(manifest)
    return controller is not None and controller.get("uid") == owner["metadata"].get("uid")


def find(manifest: Manifest, group: str, kind: str) -> Manifest | None:
    """The first reference to an object of a kind, in whatever version."""
    for current in manifest["metadata"].get("ownerReferences") or ():
        if current.get("kind") == kind and group_of(current) == group:
            found: Manifest = current
            return found
    return None


def same_owner(one: Manifest, other: Manifest) -> bool:
    """Cluster API compares group, kind and name: versions change, and a uid changes when an object moves to another cluster."""
    return one.get("kind") == other.get("kind") and one.get("name") == other.get("name") and group_of(one) == group_of(other)


def group_of(reference: Manifest) -> str:
    return str(reference.get("apiVersion") or "").rpartition("/")[0]
