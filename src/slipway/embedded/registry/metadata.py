"""The metadata that every object has: what the server fills in, what it keeps from the object before, and what it refuses."""

from __future__ import annotations

import random
import re
from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from slipway.api.machinery import labels
from slipway.api.machinery.fieldpath import Path
from slipway.embedded import errors
from slipway.embedded.errors import FieldError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.call import Call


ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"

_PATH = Path("metadata")
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN, FOREGROUND})
_LABEL_NAMED = frozenset({"namespaces"})
_LABEL_1035_NAMED = frozenset({"services"})
_PATH_NAMED = frozenset(
    {
        "roles",
        "rolebindings",
        "clusterroles",
        "clusterrolebindings",
        "certificatesigningrequests",
        "apiservices",
        "customresourcedefinitions",
    }
)


def timestamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def generated_name(prefix: str) -> str:
    """A name with five random characters, after at most 58 of the prefix."""
    return prefix[:58] + "".join(random.choices(_SUFFIX, k=5))


def initialise(metadata: Manifest, now: datetime) -> None:
    """What only the server decides about a new object."""
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        metadata.pop(field, None)
    metadata["uid"] = str(uuid4())
    metadata["creationTimestamp"] = timestamp(now)


def address(call: Call, manifest: Manifest, *, fill: bool = True) -> None:
    """The object is of the kind, in the namespace and of the name that the path says; what it leaves out is filled in.

    ``fill`` is for the name and the namespace; an apply patch is taken as it is.
    """
    resource, namespace, name = call.resource, call.namespace, call.name
    api_version, kind = manifest.get("apiVersion") or "", manifest.get("kind") or ""
    if resource.custom is not None and not (api_version and kind):
        field = "Kind" if not kind else "apiVersion"
        text = msgspec.json.encode(manifest).decode()
        unknown = f"the object provided is unrecognized (must be of type {resource.kind})"
        raise errors.bad_request(f"{unknown}: Object '{field}' is missing in '{text}' ({text})")
    if api_version and api_version != resource.api_version and resource.custom is None:
        raise errors.bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: no kind "{kind or resource.kind}" '
            f'is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if api_version and api_version != resource.api_version:
        raise errors.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({resource.api_version})"
        )
    if kind and kind != resource.kind:
        if resource.custom is None:
            text = f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
            package = resource.group.partition(".")[0] or "core"
            raise errors.bad_request(f"{text}: converting ({resource.version}.{kind}) to ({package}.{resource.kind}): unknown conversion")
        given = manifest.get("metadata")
        named = str(given.get("name") or "") if isinstance(given, dict) else ""
        raise errors.invalid(resource.group, kind, named, [FieldError.invalid("kind", kind, f"must be {resource.kind}")])
    manifest["apiVersion"], manifest["kind"] = resource.api_version, resource.kind
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return
    stated = metadata.get("namespace") or ""
    if resource.namespaced and stated not in ("", namespace):
        raise errors.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if not resource.namespaced and stated:
        raise errors.bad_request("namespace may not be set on an object that is not in one")
    if resource.namespaced and fill:
        metadata["namespace"] = namespace
    if name:
        if not metadata.get("name"):
            if fill and not metadata.get("generateName"):
                metadata["name"] = name
        elif metadata["name"] != name:
            raise errors.bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")


def carry_over(new: Manifest, old: Manifest) -> None:
    """What an update cannot change; a uid that differs is an error, not ours to hide."""
    for field in ("generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        if field in old:
            new[field] = old[field]
        else:
            new.pop(field, None)
    if not new.get("uid"):
        new["uid"] = old.get("uid", "")


def tidy(metadata: Manifest) -> None:
    """Leave out what is empty, as the Go type does."""
    for field in [field for field, value in metadata.items() if value is None or value in ("", [], {})]:
        del metadata[field]


def name_rule(plural: str) -> Callable[[str], list[str]]:
    """What is wrong with a name of a resource."""
    if plural in _LABEL_NAMED:
        return label_problems
    if plural in _LABEL_1035_NAMED:
        return lambda name: _problems(name, _LABEL_1035, 63, _LABEL_1035_RULE)
    if plural in _PATH_NAMED:
        return path_segment_problems
    return subdomain_problems


def subdomain_problems(name: str) -> list[str]:
    return _problems(name, _SUBDOMAIN, 253, _SUBDOMAIN_RULE)


def label_problems(name: str) -> list[str]:
    return _problems(name, _LABEL, 63, _LABEL_RULE)


def path_segment_problems(name: str) -> list[str]:
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in ("/", "%") if sign in name]


def _problems(name: str, pattern: re.Pattern[str], limit: int, rule: str) -> list[str]:
    found = [f"must be no more than {limit} bytes"] if len(name) > limit else []
    return found if pattern.match(name) else [*found, rule]


def validate(metadata: Manifest, plural: str, *, custom: bool, old: Manifest | None = None) -> list[FieldError]:
    """What is wrong with the metadata of an object, whatever its kind; what it has from the old one was looked at when that was written."""
    found: list[FieldError] = []
    if old is None:
        rule = name_rule(plural)
        prefix, name = metadata.get("generateName") or "", metadata.get("name") or ""
        if prefix:
            # A prefix may end with what a name may not end with.
            found += [FieldError.invalid("metadata.generateName", prefix, text) for text in rule(prefix.rstrip("-") or "x")]
        if not name:
            found.append(FieldError.required("metadata.name", "name or generateName is required"))
        found += [FieldError.invalid("metadata.name", name, text) for text in (rule(name) if name else ())]
    before = old or {}
    if (given := metadata.get("labels") or {}) != (before.get("labels") or {}):
        found += _label_errors(given)
    if (given := metadata.get("annotations") or {}) != (before.get("annotations") or {}):
        found += map(FieldError.of, labels.validate_annotations(given, _PATH.child("annotations")))
    found += _owner_errors(metadata.get("ownerReferences") or [])
    finalizers = metadata.get("finalizers") or []
    for finalizer in finalizers:
        if len(found) >= errors.MOST:
            break
        found += [FieldError.invalid("metadata.finalizers", finalizer, text) for text in labels.key_problems(finalizer)]
    if not custom:
        unqualified = [(index, name) for index, name in enumerate(finalizers) if "/" not in name and name not in _STANDARD_FINALIZERS]
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        found += [FieldError.invalid(f"metadata.finalizers[{index}]", name, detail) for index, name in unqualified[: errors.MOST]]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        found.append(FieldError.invalid("metadata.finalizers", finalizers, f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"))
    return found


def validate_update(new: Manifest, old: Manifest) -> list[FieldError]:
    """What is wrong with the metadata as a successor of the old one."""
    found: list[FieldError] = []
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
            found.append(FieldError.forbidden("metadata.finalizers", detail))
    found += [
        FieldError.invalid(f"metadata.{field}", new.get(field) or "", "field is immutable")
        for field in ("name", "namespace", "uid")
        if (new.get(field) or "") != (old.get(field) or "")
    ]
    return found


def _label_errors(given: dict[str, str]) -> list[FieldError]:
    found: list[FieldError] = []
    items = iter(given.items())
    while (some := dict(islice(items, errors.MOST))) and len(found) < errors.MOST:
        found += map(FieldError.of, labels.validate_labels(some, _PATH.child("labels")))
    return found


def _owner_errors(references: list[Manifest]) -> list[FieldError]:
    found: list[FieldError] = []
    controller = ""
    for reference in references:
        if len(found) >= errors.MOST:
            break
        for field, detail in (("apiVersion", "version must not be empty"), ("kind", ""), ("name", ""), ("uid", "")):
            if not reference.get(field):
                found.append(
                    FieldError.invalid(f"metadata.ownerReferences.{field}", reference.get(field) or "", detail or "must not be empty")
                )
        if reference.get("apiVersion") == "v1" and reference.get("kind") == "Event":
            detail = "/v1, Kind=Event is disallowed from being an owner"
            found.append(FieldError.invalid("metadata.ownerReferences", reference, detail))
        if reference.get("controller"):
            current = f"{reference.get('kind')}/{reference.get('name')}"
            if controller:
                detail = f'Only one reference can have Controller set to true. Found "true" in references for {controller} and {current}'
                found.append(FieldError.invalid("metadata.ownerReferences", references, detail))
            controller = controller or current
    return found
