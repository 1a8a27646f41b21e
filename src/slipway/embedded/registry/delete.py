"""Deletes: at once, after a grace period, or once finalizers and dependents are gone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.embedded import errors
from slipway.embedded.apiextensions import resources
from slipway.embedded.errors import FieldError
from slipway.embedded.registry import metadata, namespaces, strategies, types
from slipway.embedded.registry.metadata import FOREGROUND, ORPHAN, timestamp
from slipway.embedded.storage.store import ConflictError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.call import Call
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.registry.write import Registry


_POLICIES = ("Foreground", "Background", "Orphan")
_RETURNED = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""Resources whose deletion answers with the object instead of a Status."""


class Deleted(NamedTuple):
    """The last state, encoded in the version of the request; ``gone`` where nothing holds the object."""

    raw: bytes
    gone: bool
    uid: str


class DeleteOptions(msgspec.Struct, kw_only=True):
    """metav1.DeleteOptions."""

    propagation: str = ""
    orphan: bool | None = None
    grace: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def options_of(body: Manifest, query: Mapping[str, str]) -> DeleteOptions:
    """The options of a request: its body, or its query where there is none."""
    if mismatch := types.mismatch(body, types.delete_options(), "DeleteOptions"):
        raise errors.bad_request(f'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: {mismatch}')
    conditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    orphan = body.get("orphanDependents", query.get("orphanDependents"))
    if isinstance(grace, str) and not re.fullmatch("[+-]?[0-9]{1,18}", grace):
        raise errors.bad_request(f'strconv.ParseInt: parsing "{grace}": invalid syntax')
    seconds = None if grace is None else int(grace)
    options = DeleteOptions(
        propagation=str(body.get("propagationPolicy") or query.get("propagationPolicy") or ""),
        orphan=None if orphan is None else orphan in (True, "true", "1"),
        grace=seconds,
        uid=str(conditions.get("uid") or ""),
        resource_version=str(conditions.get("resourceVersion") or ""),
        dry_run=bool(body.get("dryRun") or query.get("dryRun")),
    )
    wrong = []
    if options.propagation and options.orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        wrong.append(FieldError.invalid("propagationPolicy", options.propagation, detail))
    if options.propagation and options.propagation not in _POLICIES:
        wrong.append(FieldError.not_supported("propagationPolicy", options.propagation, (*_POLICIES, "nil")))
    if wrong:
        raise errors.invalid("meta.k8s.io", "DeleteOptions", "", wrong)
    return options


async def delete(registry: Registry, call: Call, options: DeleteOptions) -> Deleted:
    """Delete an object, or mark it as to be deleted; other writes in between are seen."""
    resource = call.resource
    while True:
        stored = registry.store.get(resource.bucket, call.namespace, call.name)
        if stored is None:
            raise errors.not_found(resource.group, resource.plural, call.name)
        namespaces.check_deletion(resource, call.name)
        manifest = stored.manifest()
        await registry.admission.validate(call, "DELETE", None, await registry.decoded(resource, stored))
        _check(resource, manifest, options)
        step = next_step(resource, manifest, options, registry.clock())
        if options.dry_run:
            return Deleted(await registry.encoded(resource, stored), step != "mark", stored.uid)
        try:
            if step == "nothing":
                return Deleted(await registry.encoded(resource, stored), False, stored.uid)
            if step == "mark":
                marked = registry.store.put(resource.bucket, manifest, stored.version)
                return Deleted(await registry.encoded(resource, marked), False, stored.uid)
            final = registry.store.delete(resource.bucket, manifest, stored.version)
            return Deleted(await registry.encoded(resource, final), True, stored.uid)
        except ConflictError:
            continue


def returns_object(resource: Resource) -> bool:
    return resource.bucket in _RETURNED


def _check(resource: Resource, manifest: Manifest, options: DeleteOptions) -> None:
    given = manifest["metadata"]
    # The real server names the kind here where it names the resource elsewhere.
    if options.uid and options.uid != given["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({given['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise errors.conflict(resource.group, resource.kind, given["name"], why)
    if options.resource_version and options.resource_version != given["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion in record "
            f"({given['resourceVersion']}). The object might have been modified"
        )
        raise errors.conflict(resource.group, resource.kind, given["name"], why)


def next_step(resource: Resource, manifest: Manifest, options: DeleteOptions, now: datetime) -> str:
    """What the deletion does now: ``mark`` (the manifest is changed accordingly), ``remove`` or ``nothing``."""
    given = manifest["metadata"]
    if resource.bucket == "namespaces":
        return _step_of_namespace(manifest, now)
    if resource.bucket == "customresourcedefinitions.apiextensions.k8s.io":
        return _step_of_definition(manifest, now)
    strategy = strategies.of(resource)
    seconds = None if options.grace is None else max(options.grace, 1) if options.grace < 0 else options.grace
    pending = given.get("deletionGracePeriodSeconds") or 0
    if "deletionTimestamp" in given and pending and strategy.grace_period(manifest, seconds) is not None:
        if seconds is None or seconds >= pending:
            return "nothing"
        started = datetime.fromisoformat(given["deletionTimestamp"]) - timedelta(seconds=pending)
        _mark(given, started + timedelta(seconds=seconds), seconds)
        return "mark" if seconds or given.get("finalizers") else "remove"
    finalizers = _finalizers(given.get("finalizers") or [], options)
    changed = finalizers != (given.get("finalizers") or [])
    if finalizers:
        given["finalizers"] = finalizers
    else:
        given.pop("finalizers", None)
    if "deletionTimestamp" in given:
        return ("mark" if changed else "nothing") if finalizers else "remove"
    grace = strategy.grace_period(manifest, seconds)
    if finalizers or grace:
        _mark(given, now + timedelta(seconds=grace or 0), grace or 0)
        if given.get("generation"):
            given["generation"] += 1
        return "mark"
    return "remove"


def _mark(given: Manifest, when: datetime, grace: int) -> None:
    given["deletionTimestamp"] = timestamp(when)
    given["deletionGracePeriodSeconds"] = grace


def _finalizers(present: list[str], options: DeleteOptions) -> list[str]:
    """The finalizers that the garbage collector works off, set as the policy says; without one, those that are there stay."""
    policy = options.propagation
    if options.orphan is not None:
        policy = "Orphan" if options.orphan else "Background"
    if not policy:
        return list(present)
    kept = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    return [*kept, *{"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])]


def _step_of_namespace(manifest: Manifest, now: datetime) -> str:
    given = manifest["metadata"]
    if "deletionTimestamp" in given:
        empty = not (manifest.get("spec") or {}).get("finalizers") and not given.get("finalizers")
        return "remove" if empty else "nothing"
    given["deletionTimestamp"] = timestamp(now)
    manifest["status"] = {**(manifest.get("status") or {}), "phase": "Terminating"}
    return "mark"


def _step_of_definition(manifest: Manifest, now: datetime) -> str:
    given = manifest["metadata"]
    if "deletionTimestamp" in given:
        return "nothing" if given.get("finalizers") else "remove"
    given["deletionTimestamp"] = timestamp(now)
    finalizers = given.get("finalizers") or []
    given["finalizers"] = finalizers if resources.CLEANUP in finalizers else [*finalizers, resources.CLEANUP]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    manifest["status"] = resources.terminating_status(manifest, "InstanceDeletionPending", message, metadata.timestamp(now))
    return "mark"
