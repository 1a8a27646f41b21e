"""``metadata.managedFields``: who set which fields, read, kept up to date on writes that are not apply, and written.

Versions of an API are taken to have the same fields: a manager's fields are compared in the version of the write at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.fieldpath import quoted
from slipway.embedded.fieldmanager import typed
from slipway.embedded.fieldmanager.sets import FieldSet
from slipway.embedded.fieldmanager.types import DEDUCED, Type
from slipway.embedded.registry import types
from slipway.embedded.registry.metadata import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest


BEFORE_FIRST_APPLY = "before-first-apply"
_ANCIENT = "ancient-changes"
_MAX_UPDATERS = 10
_SERVER_OWN = FieldSet.of(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",)]
    + [
        ("f:metadata", f"f:{name}")
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ]
)
"""Fields that nobody owns."""


class Manager(NamedTuple):
    """Who: an applier is one for all versions of the API, an updater one per version."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def shown(self) -> str:
        """As messages about conflicts name it."""
        text = quoted(self.name)
        if self.subresource:
            text += f" with subresource {quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


class Owned(NamedTuple):
    """What a manager set, in which version, and when last."""

    fields: FieldSet
    api_version: str
    time: str = ""


Managers = dict[Manager, Owned]


def applier(name: str, subresource: str = "") -> Manager:
    return Manager(name or "unknown", "Apply", "", subresource)


def updater(name: str, api_version: str, subresource: str = "") -> Manager:
    return Manager(name or "unknown", "Update", api_version, subresource)


def decode(entries: Iterable[Mapping[str, Any]]) -> Managers:
    """Read managedFields; ValueError where an entry cannot be one."""
    managers: Managers = {}
    for position, entry in enumerate(entries):
        operation, api_version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not api_version:
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            shown = entry.get("fieldsType", "")
            what = f'invalid fieldsType "{shown}"' if shown else "missing fieldsType"
            raise ValueError(f"{what} in managed fields entry {position}")
        manager = Manager(entry.get("manager", ""), operation, api_version if operation == "Update" else "", entry.get("subresource", ""))
        managers[manager] = Owned(FieldSet.from_fields(entry.get("fieldsV1") or {}), api_version, entry.get("time", ""))
    return managers


def encode(managers: Managers) -> list[Manifest]:
    """managedFields in the real server's order: appliers first, then by time, name, version and sub-resource."""
    order = sorted(
        managers.items(), key=lambda item: (item[0].operation, item[1].time, item[0].name, item[1].api_version, item[0].subresource)
    )
    entries = []
    for manager, owned in order:
        entry: Manifest = {"manager": manager.name, "operation": manager.operation, "apiVersion": owned.api_version}
        if owned.time:
            entry["time"] = owned.time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": owned.fields.to_fields()}
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    return entries


def track(
    live: Manifest | None,
    new: Manifest,
    manager: str,
    type_: Type | None,
    *,
    now: datetime,
    subresource: str = "",
    reset: tuple[str, ...] = (),
) -> list[Manifest]:
    """The managedFields of an object after a write that is not apply: create (``live`` is None), update, and every other patch.

    ``reset`` are the top-level fields that the endpoint leaves as they are.  An object whose managedFields were given up has none
    until it is applied.
    """
    managers = _given(live, new, is_subresource=bool(subresource))
    if not managers and live is not None:
        return []
    changed = update(managers, live, new, updater(manager, new["apiVersion"], subresource), type_, now=now, reset=reset)
    return encode(_capped(changed))


def update(
    managers: Managers,
    live: Manifest | None,
    new: Manifest,
    manager: Manager,
    type_: Type | None,
    *,
    now: datetime,
    reset: tuple[str, ...] = (),
) -> Managers:
    """The owners after a change: who changes a field takes it from everybody else."""
    type_ = type_ or DEDUCED
    comparison = typed.compare(as_typed(live or _empty(new), type_), as_typed(new, type_), type_).without(reset)
    taken = comparison.modified | comparison.added
    left = {other: owned._replace(fields=owned.fields - taken - comparison.removed) for other, owned in managers.items()}
    own = taken - comparison.removed - _SERVER_OWN
    if not own.is_empty():
        before = left.get(manager, Owned(FieldSet(), new["apiVersion"]))
        left[manager] = Owned(own | before.fields, new["apiVersion"], timestamp(now))
    return {other: owned for other, owned in left.items() if not owned.fields.is_empty()}


def strip(fields: FieldSet) -> FieldSet:
    """Without what is the server's own."""
    return fields - _SERVER_OWN


def as_typed(manifest: Manifest, type_: Type) -> Manifest:
    """An object as its type holds it, without its managedFields."""
    bare = {**manifest, "metadata": {name: value for name, value in (manifest.get("metadata") or {}).items() if name != "managedFields"}}
    completed: Manifest = types.complete(bare, type_) if type_.is_go else bare
    return completed


def _empty(new: Manifest) -> Manifest:
    return {"apiVersion": new["apiVersion"], "kind": new["kind"]}


def _given(live: Manifest | None, new: Manifest, *, is_subresource: bool) -> Managers:
    """The owners that a write starts from: those that it carries, or those of the live object; an empty list gives them up."""
    stored = (live or {}).get("metadata", {}).get("managedFields") or []
    carried = (new.get("metadata") or {}).get("managedFields")
    if is_subresource or carried is None:
        return _readable(stored)
    if carried in ([], [{}]):
        return {}
    return _readable(carried) or _readable(stored)


def _readable(entries: Iterable[Mapping[str, Any]]) -> Managers:
    try:
        return decode(entries)
    except ValueError:
        # The real server drops managedFields that it cannot read, too: they are notes about an object, not the object.
        return {}


def _capped(managers: Managers) -> Managers:
    """At most ten updaters: the oldest become one."""
    updaters = sorted((m for m in managers if m.operation == "Update"), key=lambda m: (managers[m].time, m))
    excess = len(updaters) - _MAX_UPDATERS
    if excess <= 0:
        return managers
    capped = dict(managers)
    first: dict[str, Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        owned = capped[manager]
        bucket = updater(_ANCIENT, owned.api_version)
        if owned.api_version not in first:
            first[owned.api_version] = manager
            continue
        if bucket not in capped:
            capped[bucket] = capped.pop(first[owned.api_version])
        capped[bucket] = Owned(capped[bucket].fields | owned.fields, owned.api_version, owned.time)
        del capped[manager]
        excess -= 1
    return capped
