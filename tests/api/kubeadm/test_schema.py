"""The JSON Schema agrees with strict decoding: what one knows the other knows."""

from __future__ import annotations

from typing import Any

import pytest
from cases.config import VERSIONS, read_recorded

from slipway.api.kubeadm.schema import VERSIONS as API_VERSIONS
from slipway.api.kubeadm.schema import schema
from slipway.api.machinery.yaml import goyaml

SCHEMA = schema()


def misfits(document: Any, part: dict[str, Any], path: str = "") -> list[str]:
    """Where a document does not fit, for the keywords that our schema uses."""
    if "$ref" in part:
        return misfits(document, SCHEMA["$defs"][part["$ref"].removeprefix("#/$defs/")], path)
    if "anyOf" in part:
        outcomes = [misfits(document, option, path) for option in part["anyOf"]]
        return [] if [] in outcomes else outcomes[0]
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "null": type(None)}
    if "type" in part and not isinstance(document, kinds[part["type"]]):
        return [f"{path} is not of type {part['type']}"]
    if "enum" in part and document not in part["enum"]:
        return [f"{path} is none of {part['enum']}"]
    found = []
    if isinstance(document, dict):
        for key, value in document.items():
            allowed = part.get("properties", {}).get(key, part.get("additionalProperties"))
            found += [f"{path}.{key} is unknown"] if allowed is False else misfits(value, allowed or {}, f"{path}.{key}")
    if isinstance(document, list):
        for position, item in enumerate(document):
            found += misfits(item, part["items"], f"{path}[{position}]")
    return found


def branch(document: dict[str, Any]) -> dict[str, Any]:
    identity = {"apiVersion": {"const": document["apiVersion"]}, "kind": {"const": document["kind"]}}
    return next(item["then"] for item in SCHEMA["allOf"] if item["if"]["properties"] == identity)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_document_that_kubeadm_writes_fits(version: str) -> None:
    rows = {name: row for name, row in read_recorded(version).items() if name.startswith(("migrate", "print")) and row.stdout}
    assert len(rows) > 25
    for name, row in rows.items():
        for document in goyaml.load(row.stdout):
            if document.value["apiVersion"].startswith("kubeadm"):
                assert misfits(document.value, branch(document.value)) == [], name


@pytest.mark.parametrize(
    ("fields", "misfit"),
    [
        ({"clusterNam": "x"}, ".clusterNam is unknown"),
        ({"networking": {"podsubnet": "x"}}, ".networking.podsubnet is unknown"),
        ({"clusterName": 1}, ".clusterName is not of type string"),
        ({"apiServer": {"extraArgs": {"a": "b"}}}, ".apiServer.extraArgs is not of type array"),
        ({"encryptionAlgorithm": "RSA-1"}, ".encryptionAlgorithm is none of"),
    ],
)
def test_mistakes_do_not_fit(fields: dict[str, Any], misfit: str) -> None:
    document = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", **fields}
    (found,) = misfits(document, branch(document))
    assert found.startswith(misfit)


def test_every_version_has_its_kinds() -> None:
    versions = {item["if"]["properties"]["apiVersion"]["const"].rpartition("/")[2] for item in SCHEMA["allOf"]}
    assert versions == set(API_VERSIONS)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_a_schema_of_one_version_knows_no_other() -> None:
    assert {name.partition(".")[0] for name in schema("v1beta3")["$defs"]} == {"v1beta3"}
