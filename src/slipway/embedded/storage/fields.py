"""What field selectors can ask for, kind by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.embedded import errors
from slipway.embedded.storage import selectors

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.selectors import FieldRequirement
    from slipway.embedded.storage.store import Stored


_COMMON = ("metadata.name", "metadata.namespace")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: dict[str, tuple[str, ...]] = {
    "events": (*(f"involvedObject.{field}" for field in _REFERENCE), "reason", "reportingComponent", "source", "type"),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "replicasets.apps": ("status.replicas",),
    "replicationcontrollers": ("status.replicas",),
    "secrets": ("type",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
    "services": ("spec.clusterIP", "spec.type"),
}
_FALSE = frozenset({"spec.unschedulable", "spec.hostNetwork"})
_EVENT_ALIASES = {"reportingController": "reportingComponent", "regarding.": "involvedObject."}


def parse(resource: Resource, text: str) -> list[FieldRequirement]:
    """The requirements of a selector, all on fields that the resource has."""
    known = (*_COMMON, *_FIELDS.get(resource.bucket, ()), *(resource.custom.selectable if resource.custom is not None else ()))
    found = []
    for requirement in selectors.parse_fields(text):
        field = requirement.field
        if resource.group == "events.k8s.io":
            field = _EVENT_ALIASES.get(field, field.replace("regarding.", "involvedObject."))
        if field not in known:
            raise errors.bad_request(_unknown(resource, requirement.field))
        found.append(requirement._replace(field=field))
    return found


def _unknown(resource: Resource, field: str) -> str:
    if resource.custom is not None or resource.bucket in _FIELDS:
        return f"field label not supported: {field}"
    listed = ", ".join(f'"{name}"' for name in _COMMON)
    return f'"{field}" is not a known field selector: only {listed}'


def matches(resource: Resource, requirements: list[FieldRequirement], stored: Stored) -> bool:
    for requirement in requirements:
        if requirement.field == "metadata.name":
            value = stored.name
        elif requirement.field == "metadata.namespace":
            value = stored.namespace
        else:
            if stored.fields is None:
                stored.fields = _fields_of(resource, stored.manifest())
            value = stored.fields.get(requirement.field, "")
        if (value == requirement.value) is not requirement.equal:
            return False
    return True


def _fields_of(resource: Resource, manifest: Manifest) -> dict[str, str]:
    names = resource.custom.selectable if resource.custom is not None else _FIELDS.get(resource.bucket, ())
    return {name: _text(name, _value(manifest, name)) for name in names}


def _value(manifest: Manifest, path: str) -> Any:
    value: Any = manifest
    if path == "source":
        return (manifest.get("source") or {}).get("component") or manifest.get("reportingComponent")
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if name in _FALSE else ""
    return str(value)
