"""Resources from CustomResourceDefinitions: what one declares, when it is good, and what the server says about it.

The functions here are pure; :mod:`slipway.embedded.apiextensions.definitions` writes their results and serves the resources.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from slipway.embedded.apiextensions.schema import StructuralSchema
from slipway.embedded.errors import FieldError
from slipway.embedded.registry import metadata
from slipway.embedded.registry.resources import Resource, bucket_of, priority

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest


CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


class CustomVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a custom resource."""

    definition: str
    """The name of the CustomResourceDefinition."""
    schema: StructuralSchema
    columns: tuple[Manifest, ...] = ()
    selectable: tuple[str, ...] = ()
    scale: Manifest | None = None
    conversion: Manifest
    """spec.conversion of the definition."""
    deprecation: str = ""


def default(manifest: Manifest) -> None:
    """The defaults of a CustomResourceDefinition."""
    spec = manifest.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names["singular"] = names.get("singular") or names["kind"].lower()
        names["listKind"] = names.get("listKind") or f"{names['kind']}List"
    conversion = spec.get("conversion")
    if not conversion:
        conversion = spec["conversion"] = {"strategy": "None"}
    webhook = conversion.get("webhook") or {}
    service = (webhook.get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)
    for version in spec.get("versions") or ():
        if "served" not in version:
            version["served"] = False
        if "storage" not in version:
            version["storage"] = False


def errors(manifest: Manifest) -> list[FieldError]:
    """What is wrong with a CustomResourceDefinition."""
    found: list[FieldError] = []
    spec = manifest["spec"]
    group, names = spec.get("group") or "", spec.get("names") or {}
    name = manifest["metadata"].get("name") or ""
    if name != f"{names.get('plural') or ''}.{group}":
        found.append(FieldError.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if not group:
        found.append(FieldError.required("spec.group"))
    elif "." not in group:
        found.append(FieldError.invalid("spec.group", group, "should be a domain with at least one dot"))
    scope = spec.get("scope") or ""
    if not scope:
        found.append(FieldError.required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        found.append(FieldError.not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    found += _version_errors(spec)
    for field in ("plural", "singular", "kind", "listKind"):
        value = names.get(field) or ""
        if not value:
            found.append(FieldError.required(f"spec.names.{field}"))
        found += [FieldError.invalid(f"spec.names.{field}", value, text) for text in _label_1035(value.lower()) if value]
    return found + _conversion_errors(spec.get("conversion") or {}) + _rule_errors(spec)


def _rule_errors(spec: Manifest) -> list[FieldError]:
    """Rules that do not compile.  A schema that all versions have counts as the definition's own."""
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in spec.get("versions") or ()]
    encoded = [msgspec.json.encode(schema) if isinstance(schema, dict) else b"" for schema in schemas]
    if len(set(encoded)) == 1:
        return _schema(encoded[0]).definition_errors("spec.validation.openAPIV3Schema") if encoded[0] else []
    found: list[FieldError] = []
    for index, each in enumerate(encoded):
        if each:
            found += _schema(each).definition_errors(f"spec.versions[{index}].schema.openAPIV3Schema")
    return found


def _version_errors(spec: Manifest) -> list[FieldError]:
    found: list[FieldError] = []
    versions = spec.get("versions") or []
    if sum(1 for version in versions if version.get("storage")) != 1:
        found.append(FieldError.invalid("spec.versions", versions or None, "must have exactly one version marked as storage version"))
    seen: set[str] = set()
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = version.get("name") or ""
        found += [FieldError.invalid(f"{path}.name", name, text) for text in _label_1035(name)]
        if name in seen:
            found.append(FieldError.invalid(f"{path}.name", name, "must be unique"))
        seen.add(name)
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            found.append(FieldError.required(f"{path}.schema.openAPIV3Schema"))
    return found


def _conversion_errors(conversion: Manifest) -> list[FieldError]:
    strategy = conversion.get("strategy")
    if strategy not in ("None", "Webhook"):
        return [FieldError.not_supported("spec.conversion.strategy", strategy or "", ("None", "Webhook"))]
    webhook = conversion.get("webhook")
    if strategy == "Webhook" and not (webhook or {}).get("clientConfig"):
        return [FieldError.required("spec.conversion.webhook.clientConfig", "required when strategy is set to Webhook")]
    if strategy == "None" and webhook:
        return [FieldError.forbidden("spec.conversion.webhook", "should not be set when strategy is not set to Webhook")]
    return []


def update_errors(manifest: Manifest, old: Manifest) -> list[FieldError]:
    """What may not change once names were accepted."""
    if not condition_is(old, "Established"):
        return []
    new, before = manifest["spec"], old["spec"]
    values = {f"spec.{field}": (new.get(field), before.get(field)) for field in ("group", "scope")}
    values |= {f"spec.names.{field}": (new["names"].get(field), before["names"].get(field)) for field in ("plural", "kind")}
    return [FieldError.invalid(path, value, "field is immutable") for path, (value, was) in values.items() if value != was]


def _label_1035(name: str) -> list[str]:
    return metadata.name_rule("services")(name)


def stored_versions(spec: Manifest, status: Manifest) -> list[str]:
    """The versions in which objects may be stored: those of before, and the one that is used now."""
    found = list(status.get("storedVersions") or ())
    for version in spec.get("versions") or ():
        if version.get("storage") and version["name"] not in found:
            found.append(version["name"])
    return found


def condition_is(manifest: Manifest, type_: str, status: str = "True") -> bool:
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == type_ and condition.get("status") == status for condition in conditions)


def established_status(manifest: Manifest, others: Iterable[Manifest], now: str) -> Manifest:
    """The status of a definition: whether its names are free in its group, and, once they were accepted, that it is established."""
    status = dict(manifest.get("status") or {})
    status["acceptedNames"], conflict = _accept(manifest, others)
    conditions = list(status.get("conditions") or ())
    if conflict is not None:
        reason, message = conflict
        conditions = with_condition(conditions, "NamesAccepted", "False", reason, message, now)
        if not condition_is(manifest, "Established"):
            conditions = with_condition(conditions, "Established", "False", "NotAccepted", "not all names are accepted", now)
    else:
        conditions = with_condition(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
        if not condition_is(manifest, "Established"):
            conditions = with_condition(
                conditions, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now
            )
    status["conditions"] = conditions
    status["storedVersions"] = stored_versions(manifest["spec"], status)
    return status


def terminating_status(manifest: Manifest, reason: str, message: str, now: str) -> Manifest:
    status = dict(manifest.get("status") or {})
    status["conditions"] = with_condition(list(status.get("conditions") or ()), "Terminating", "True", reason, message, now)
    return status


def _accept(manifest: Manifest, others: Iterable[Manifest]) -> tuple[Manifest, tuple[str, str] | None]:
    """The names of a definition that nobody else in its group has, and the last conflict over one, if any."""
    wanted = manifest["spec"]["names"]
    before = (manifest.get("status") or {}).get("acceptedNames") or {}
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] == manifest["spec"]["group"] and other["metadata"]["name"] != manifest["metadata"]["name"]:
            taken = (other.get("status") or {}).get("acceptedNames") or {}
            resources |= {taken.get("plural") or "", taken.get("singular") or "", *(taken.get("shortNames") or ())}
            kinds |= {taken.get("kind") or "", taken.get("listKind") or ""}
    names, conflict = dict(before), None
    for field, taken_names in (
        ("plural", resources),
        ("singular", resources),
        ("shortNames", resources),
        ("kind", kinds),
        ("listKind", kinds),
    ):
        value = wanted.get(field)
        asked = value if isinstance(value, list) else [value]
        refused = [name for name in asked if name and name in taken_names and value != before.get(field)]
        if refused:
            texts = [f'"{name}" is already in use' for name in refused]
            conflict = f"{field[0].upper()}{field[1:]}Conflict", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        elif value:
            names[field] = value
        else:
            names.pop(field, None)
    names.pop("categories", None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    return {"plural": "", "kind": "", **names}, conflict


def with_condition(conditions: list[Manifest], type_: str, status: str, reason: str, message: str, now: str) -> list[Manifest]:
    """The conditions with one set; its time changes with its status."""
    before = next((condition for condition in conditions if condition.get("type") == type_), None)
    since = before.get("lastTransitionTime") if before is not None and before.get("status") == status else now
    new = {"lastTransitionTime": since, "message": message, "reason": reason, "status": status, "type": type_}
    if before is None:
        return [*conditions, new]
    return [new if condition is before else condition for condition in conditions]


def served(manifest: Manifest) -> list[Resource]:
    """The resources that an established definition makes the server serve, one a served version."""
    spec = manifest["spec"]
    names = (manifest.get("status") or {}).get("acceptedNames") or spec["names"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return [
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            singular=names.get("singular") or names["kind"].lower(),
            list_kind=names.get("listKind") or f"{names['kind']}List",
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(name for name in ("status", "scale") if name in (version.get("subresources") or {})),
            bucket=bucket_of(spec["group"], names["plural"]),
            storage_version=f"{spec['group']}/{storage}",
            generation=True,
            unconditional=False,
            custom=_custom(manifest, version),
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _deprecated(spec: Manifest, version: str) -> str:
    """The warning of a deprecated version: it names the best version that is not deprecated."""
    group, kind = spec["group"], spec["names"]["kind"]
    good = [other["name"] for other in spec["versions"] if other.get("served") and not other.get("deprecated")]
    better = max(good, key=priority, default="")
    text = f"{group}/{version} {kind} is deprecated"
    return f"{text}; use {group}/{better} {kind}" if better and priority(better) > priority(version) else text


def _custom(manifest: Manifest, version: Manifest) -> CustomVersion:
    spec = manifest["spec"]
    schema = None if spec.get("preserveUnknownFields") else (version.get("schema") or {}).get("openAPIV3Schema")
    warning = version.get("deprecationWarning") or _deprecated(spec, version["name"])
    return CustomVersion(
        definition=manifest["metadata"]["name"],
        schema=_schema(msgspec.json.encode(schema)),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        selectable=tuple(field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()),
        scale=(version.get("subresources") or {}).get("scale"),
        conversion=spec.get("conversion") or {"strategy": "None"},
        deprecation=warning if version.get("deprecated") else "",
    )


@lru_cache(maxsize=256)
def _schema(encoded: bytes) -> StructuralSchema:
    """A schema, read once for all servers of the process and all definitions that have the same."""
    return StructuralSchema(msgspec.json.decode(encoded))
