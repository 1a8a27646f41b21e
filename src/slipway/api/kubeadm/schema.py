"""The JSON Schema of the configuration, made from the types, for editors that complete and check files while they are written."""

from __future__ import annotations

import importlib
from types import GenericAlias, UnionType
from typing import Any

from slipway.api.machinery import strict
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object
from slipway.api.releases import NEWEST, release_for

VERSIONS = ("v1beta4", "v1beta3", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_GROUP = "kubeadm.k8s.io"
_DURATION = r"^[-+]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$"
_SCALARS: dict[type, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Duration: {"type": "string", "pattern": _DURATION},
}
# Texts of which only some are valid, by the type that has them and their name on the wire.
_CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("ClusterConfiguration", "encryptionAlgorithm"): release_for(NEWEST).encryption_algorithms,
    ("NodeRegistrationOptions", "imagePullPolicy"): ("Always", "IfNotPresent", "Never"),
    ("UpgradeApplyConfiguration", "imagePullPolicy"): ("Always", "IfNotPresent", "Never"),
    ("UpgradeNodeConfiguration", "imagePullPolicy"): ("Always", "IfNotPresent", "Never"),
    ("Taint", "effect"): ("NoSchedule", "PreferNoSchedule", "NoExecute"),
    ("HostPathMount", "pathType"): ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"),
}


def schema(*versions: str) -> dict[str, Any]:
    """The schema of every kind of some versions, of all versions where none is named."""
    definitions: dict[str, Any] = {}
    branches = []
    kinds: set[str] = set()
    chosen = versions or VERSIONS
    for version in chosen:
        module = importlib.import_module(f"slipway.api.kubeadm.{version}")
        for kind, cls in module.KINDS.items():
            kinds.add(kind)
            identity = {"apiVersion": {"const": f"{_GROUP}/{version}"}, "kind": {"const": kind}}
            _define(cls, version, definitions)
            branches.append({"if": {"properties": identity}, "then": {"$ref": f"#/$defs/{version}.{cls.__name__}"}})
            definitions[f"{version}.{cls.__name__}"]["properties"].update(apiVersion={"type": "string"}, kind={"type": "string"})
    return {
        "$schema": _DIALECT,
        "title": "kubeadm configuration",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": {"enum": [f"{_GROUP}/{version}" for version in chosen]},
            "kind": {"enum": sorted(kinds)},
        },
        "allOf": branches,
        "$defs": definitions,
    }


def _define(cls: type[Object], version: str, definitions: dict[str, Any]) -> None:
    name = f"{version}.{cls.__name__}"
    if name in definitions:
        return
    definition: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {}}
    definitions[name] = definition
    for wire, (_, wanted) in strict.fields(cls).items():
        field = _schema_of(wanted, version, definitions)
        choices = _CHOICES.get((cls.__name__, wire))
        definition["properties"][wire] = {**field, "enum": list(choices)} if choices else field


def _schema_of(wanted: Any, version: str, definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(wanted, UnionType):
        present = [_schema_of(option, version, definitions) for option in wanted.__args__ if option is not type(None)]
        return {"anyOf": [*present, {"type": "null"}]} if type(None) in wanted.__args__ else {"anyOf": present}
    if isinstance(wanted, GenericAlias):
        if wanted.__origin__ is list:
            return {"type": "array", "items": _schema_of(wanted.__args__[0], version, definitions)}
        return {"type": "object", "additionalProperties": _schema_of(wanted.__args__[1], version, definitions)}
    if wanted is Any:
        return {}
    if issubclass(wanted, Object):
        _define(wanted, version, definitions)
        return {"$ref": f"#/$defs/{version}.{wanted.__name__}"}
    return dict(_SCALARS[wanted])
