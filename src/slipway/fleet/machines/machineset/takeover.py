"""Upstream's updates in place, which are behind a feature gate and which Slipway does not do: what is in the middle of one is left alone.

Annotations say who has what of a Machine that moves from one MachineSet to another; acting on half of that would delete machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.runtime.objects import Object

_UPDATE = "UpdateMachine"


def unfinished(objects: Iterable[Object]) -> str:
    """A sentence where one of these Machines or MachineSets is in the middle of an update in place; empty where none is."""
    found = sorted(f"{one.kind.kind} {one.name}" for one in objects if _is_updating(one))
    if not found:
        return ""
    shown = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return (
        f"an update in place of {shown} was begun by upstream's manager and is not finished: let that one finish it, "
        f"or remove the annotations {names.IN_PLACE_UPDATE_PREFIX}* and {names.PENDING_HOOKS_ANNOTATION}"
    )


def _is_updating(one: Object) -> bool:
    annotations = one.metadata.annotations
    if not annotations:
        return False
    pending = annotations.get(names.PENDING_HOOKS_ANNOTATION, "").split(",")
    return _UPDATE in pending or any(key.startswith(names.IN_PLACE_UPDATE_PREFIX) for key in annotations)
