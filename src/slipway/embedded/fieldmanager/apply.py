"""Server-side apply: a configuration merged into the live object, with an owner for every field.

Who applies a field that somebody else set to another value is told of the conflict, unless it forces; a field that its only owner
no longer applies goes.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import msgspec

from slipway.embedded import errors
from slipway.embedded.fieldmanager import managedfields, typed
from slipway.embedded.fieldmanager.managedfields import BEFORE_FIRST_APPLY, Manager, Managers, Owned, applier, as_typed, updater
from slipway.embedded.fieldmanager.sets import FieldSet, path_text
from slipway.embedded.fieldmanager.types import DEDUCED, Type
from slipway.embedded.registry import types
from slipway.embedded.registry.metadata import timestamp
from slipway.embedded.registry.write import Edit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.call import Call
    from slipway.embedded.fieldmanager.sets import Path

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Applied(Edit):
    """An apply patch: a configuration, in the name of a manager."""

    tracked = True

    def __init__(self, call: Call, configuration: Manifest, now: datetime) -> None:
        self._call, self._configuration, self._now = call, configuration, now
        self.creates = not call.subresource

    def of(self, live: Manifest | None) -> Manifest:
        call, given = self._call, self._configuration.get("metadata")
        if live is None and not (isinstance(given, dict) and given.get("name")):
            text = f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
            raise errors.bad_request(text)
        return apply(
            live,
            copy.deepcopy(self._configuration),
            call.manager,
            force=bool(call.force),
            type_=types.of(call.resource),
            now=self._now,
            subresource=call.subresource,
            reset=types.reset_fields(call.resource, call.subresource),
        )


def apply(
    live: Manifest | None,
    applied: Manifest,
    manager: str,
    *,
    force: bool,
    type_: Type | None,
    now: datetime,
    subresource: str = "",
    reset: tuple[str, ...] = (),
) -> Manifest:
    """The object after a configuration was applied, with its managedFields; StatusError for a conflict or a wrong configuration.

    ``live`` is None where there is no object yet; ``reset`` are the top-level fields that the endpoint leaves as they are.
    """
    type_ = type_ or DEDUCED
    if (applied.get("metadata") or {}).get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    try:
        typed.check(applied, type_)
    except typed.TypeMismatchError as error:
        raise errors.StatusError(500, "", f"failed to create typed patch object ({_described(applied)}): {error}") from error
    current = live if live is not None else {"apiVersion": applied["apiVersion"], "kind": applied["kind"]}
    try:
        managers = managedfields.decode((current.get("metadata") or {}).get("managedFields") or [])
    except ValueError as error:
        raise errors.StatusError(500, "", f"failed to decode managed fields: {error}") from error
    if not managers:
        before = updater(BEFORE_FIRST_APPLY, applied["apiVersion"], subresource)
        managers = managedfields.update(managers, None, current, before, type_, now=now, reset=reset)
    own = applier(manager, subresource)
    merged, owners, conflicts = _merged(current, applied, own, managers, type_, reset)
    allowed = _applied_before(current, type_) if manager == "kubectl" else FieldSet()
    if conflicts and not force:
        refused = {other: fields - allowed for other, fields in conflicts.items()}
        if any(not fields.is_empty() for fields in refused.values()):
            raise _conflict(refused)
    return _finished(current, applied, merged, owners, own, type_, now)


def _merged(
    live: Manifest, applied: Manifest, own: Manager, managers: Managers, type_: Type, reset: tuple[str, ...]
) -> tuple[Manifest, Managers, dict[Manager, FieldSet]]:
    """The merged object, its owners if the apply goes through, and what other managers hold against it."""
    current = as_typed(live, type_)
    merged = typed.merge(current, applied, type_)
    last = managers.get(own)
    owners = dict(managers)
    owners[own] = Owned(typed.field_set(applied, type_).without(reset), applied["apiVersion"], last.time if last else "")
    if last is not None and not last.fields.is_empty():
        merged = _without_abandoned(merged, owners, last.fields, type_)
    comparison = typed.compare(current, merged, type_).without(reset)
    changed = comparison.modified | comparison.added
    conflicts = {other: both for other, owned in managers.items() if other != own and not (both := owned.fields & changed).is_empty()}
    for other in [other for other in owners if other != own]:
        left = owners[other].fields - changed - comparison.removed
        owners[other] = owners[other]._replace(fields=left)
    owners[own] = owners[own]._replace(fields=managedfields.strip(owners[own].fields))
    return merged, {other: owned for other, owned in owners.items() if not owned.fields.is_empty()}, conflicts


def _without_abandoned(merged: Manifest, owners: Managers, last: FieldSet, type_: Type) -> Manifest:
    """Without the fields that the manager applied before and applies no more, unless somebody else owns them too."""
    held = FieldSet()
    for owned in owners.values():
        held = held | owned.fields
    all_fields = typed.field_set(merged, type_).with_named_fields(type_)
    last = last.with_named_fields(type_)
    pruned = typed.remove(merged, last, type_) or {}
    kept = typed.field_set(pruned, type_).with_named_fields(type_)
    pruned = typed.remove(merged, all_fields - (kept | held.with_named_fields(type_)), type_) or {}
    # What nobody owns and the manager never applied itself is not its to remove.
    kept = typed.field_set(pruned, type_).with_named_fields(type_)
    result: Manifest = typed.remove(merged, (all_fields - kept) & last, type_) or {}
    return result


def _finished(live: Manifest, applied: Manifest, merged: Manifest, owners: Managers, own: Manager, type_: Type, now: datetime) -> Manifest:
    """The object as it is stored; where nothing changed, the time of the apply is the old one."""
    if msgspec.json.encode(merged, order="sorted") != msgspec.json.encode(as_typed(live, type_), order="sorted") and own in owners:
        owners[own] = owners[own]._replace(time=timestamp(now))
    result: Manifest = copy.deepcopy(merged)
    metadata = result.setdefault("metadata", {})
    if own.name == "kubectl" and (metadata.get("annotations") or {}).get(LAST_APPLIED):
        metadata["annotations"][LAST_APPLIED] = _as_last_applied(applied)
    metadata["managedFields"] = managedfields.encode(owners)
    return result


def _as_last_applied(applied: Manifest) -> str:
    bare = copy.deepcopy(applied)
    annotations = (bare.get("metadata") or {}).get("annotations")
    if annotations is not None:
        annotations.pop(LAST_APPLIED, None)
    return msgspec.json.encode(bare, order="sorted").decode() + "\n"


def _applied_before(live: Manifest, type_: Type) -> FieldSet:
    """What ``kubectl apply`` once applied from the client and still stands: kubectl may take it over without force."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    if not text:
        return FieldSet()
    try:
        last = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return FieldSet()
    if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
        return FieldSet()
    comparison = typed.compare(last, as_typed(live, type_), type_)
    return typed.field_set(last, type_) - comparison.modified - comparison.added - comparison.removed


def _conflict(conflicts: Mapping[Manager, FieldSet]) -> errors.StatusError:
    """The answer of the real server, cause by cause."""
    listed: list[tuple[Manager, Path]] = [(manager, path) for manager in sorted(conflicts) for path in conflicts[manager]]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager.shown}", "field": path_text(path)}
        for manager, path in listed
    ]
    if len(listed) == 1:
        manager, path = listed[0]
        message = f"Apply failed with 1 conflict: conflict with {manager.shown}: {path_text(path)}"
    else:
        lines = []
        for manager in dict.fromkeys(manager for manager, _ in listed):
            lines.append(f"conflicts with {manager.shown}:")
            lines += [f"- {path_text(path)}" for other, path in listed if other == manager]
        message = f"Apply failed with {len(listed)} conflicts: " + "\n".join(lines)
    return errors.StatusError(409, "Conflict", message, {"causes": causes})


def _described(manifest: Manifest) -> str:
    """namespace/name; group/version, Kind=kind"""
    metadata = manifest.get("metadata") or {}
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {manifest['apiVersion']}, Kind={manifest['kind']}"
