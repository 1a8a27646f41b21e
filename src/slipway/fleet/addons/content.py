"""What a ConfigMap or a Secret of a ClusterResourceSet holds: manifests, in the order in which they are made, and a hash of all of it.

The hash is upstream's, so that neither manager applies again what the other has applied.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from slipway.api.cluster.kinds import SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

# What others need comes first; everything else keeps its place (Cluster API, util/resource).
_ORDER = (
    "Namespace",
    "CustomResourceDefinition",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Secret",
    "ConfigMap",
    "ServiceAccount",
    "LimitRange",
    "Pod",
    "ReplicaSet",
    "Endpoint",
)
_RANKS = {kind: rank for rank, kind in enumerate(_ORDER)}


class Content(NamedTuple):
    """``objects`` are those of each key of the data in turn."""

    hash: str
    objects: tuple[Manifest, ...]


def content(resource: Manifest) -> Content:
    """The manifests in a ConfigMap or a Secret; OperatorError says which of them is none."""
    where = f"{resource.get('kind')} {resource['metadata']['name']}"
    data: dict[str, Any] = resource.get("data") or {}
    if not data:
        raise OperatorError(f"the {where} has no data")
    digest = sha256()
    objects: list[Manifest] = []
    for key in sorted(data):
        raw = _decoded(resource, key, data[key], where)
        digest.update(raw)
        objects += sorted(_objects(raw, f"{key} of the {where}"), key=lambda each: _RANKS.get(each["kind"], len(_RANKS)))
    return Content(f"sha256:{digest.hexdigest()}", tuple(objects))


def _decoded(resource: Manifest, key: str, value: str, where: str) -> bytes:
    if resource.get("kind") != SECRET.kind:
        return value.encode()
    try:
        return b64decode(value, validate=True)
    except binascii.Error as error:
        raise OperatorError(f"{key} of the {where} is not base64: {error}") from None


def _objects(raw: bytes, where: str) -> list[Manifest]:
    """The objects of one text: YAML documents, JSON, or a JSON list."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise OperatorError(f"{where} is no text") from None
    listed = text.lstrip().startswith("[")
    found = _listed(text, where) if listed else [document.value for document in goyaml.load(text, where)]
    return [_object(each, number, where) for number, each in enumerate(found, 1) if each is not None]


def _listed(text: str, where: str) -> list[Any]:
    try:
        found: list[Any] = msgspec.json.decode(text, type=list[Any])
    except msgspec.DecodeError as error:
        raise OperatorError(f"{where} begins as a list of JSON and is none: {error}") from None
    return found


def _object(value: Any, number: int, where: str) -> Manifest:
    if not isinstance(value, dict):
        raise OperatorError(f"document {number} in {where} is no object")
    metadata = value.get("metadata")
    for field, given in (("apiVersion", value.get("apiVersion")), ("kind", value.get("kind"))):
        if not isinstance(given, str) or not given:
            raise OperatorError(f"document {number} in {where} has no {field}")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise OperatorError(f"document {number} in {where}, a {value['kind']}, has no metadata.name")
    return value
