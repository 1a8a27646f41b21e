"""The old versions' types have the fields of kubeadm's sources (tests/oracles/history/record_types.py), no more and no fewer."""

from __future__ import annotations

import json
from pathlib import Path
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Any

import pytest
from api.kubeadm.strategies import objects
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.api.kubeadm.history import VERSIONS, kinds
from slipway.api.machinery import strict
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object
from slipway.api.machinery.strict import encode
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.recorded

RECORDED = Path(__file__).parents[2] / "golden" / "history" / "types"
OLD = VERSIONS[:5]

# kubeadm 1.12 renamed these types, not the kinds on the wire (v1alpha2/register.go).
GO_NAMES = {
    "v1alpha2": {
        "MasterConfiguration": ("MasterConfiguration", "InitConfiguration"),
        "NodeConfiguration": ("NodeConfiguration", "JoinConfiguration"),
    }
}
# Types of other packages: k8s.io/api/core/v1.
FOREIGN = {
    "Taint": {
        "key": {"type": "string", "omitempty": False},
        "value": {"type": "string", "omitempty": True},
        "effect": {"type": "v1.TaintEffect", "omitempty": False},
        "timeAdded": {"type": "*metav1.Time", "omitempty": True},
    }
}
PLAIN = {
    "string": str,
    "bool": bool,
    "int32": int,
    "metav1.Duration": Duration,
    "metav1.Time": str,
    "BootstrapTokenString": str,
    "DNSAddOnType": str,
    "v1.HostPathType": str,
    "v1.PullPolicy": str,
    "v1.TaintEffect": str,
}


def go_fields(version: str, name: str) -> dict[str, dict[str, Any]]:
    recorded = json.loads((RECORDED / f"{version}.json").read_text()) | FOREIGN
    fields: dict[str, dict[str, Any]] = {}
    for go_name in GO_NAMES.get(version, {}).get(name, (name,)):
        for wire, field in recorded.get(go_name, {}).items():
            if wire.startswith("inline "):
                fields |= go_fields(version, wire.removeprefix("inline "))
            else:
                fields[wire] = field
    return fields


def all_types(version: str) -> Iterator[type[Object]]:
    waiting, seen = list(kinds(version).values()), set[type[Object]]()
    while waiting:
        cls = waiting.pop()
        if cls not in seen:
            seen.add(cls)
            yield cls
            waiting += [part for _, wanted in strict.fields(cls).values() for part in object_types(wanted)]


def object_types(wanted: Any) -> Iterator[type[Object]]:
    if isinstance(wanted, UnionType | GenericAlias):
        for part in wanted.__args__:
            yield from object_types(part)
    elif isinstance(wanted, type) and issubclass(wanted, Object):
        yield wanted


def python_type(go: str, version: str) -> Any:
    """What a Go type is in our declarations."""
    if go.startswith("map[string]"):
        return GenericAlias(dict, (str, python_type(go.removeprefix("map[string]"), version)))
    if go.startswith("[]"):
        return GenericAlias(list, (python_type(go.removeprefix("[]"), version),))
    bare = go.removeprefix("*")
    if bare.startswith(("kubeletconfig", "kubeproxyconfig")):
        return dict[str, Any]
    if bare in PLAIN:
        return PLAIN[bare]
    name = bare.removeprefix("v1.")
    return next(cls for cls in all_types(version) if cls.__name__ == name)


TYPES = [pytest.param(version, cls, id=f"{version}-{cls.__name__}") for version in OLD for cls in all_types(version)]


@pytest.mark.parametrize(("version", "cls"), TYPES)
def test_a_type_has_the_fields_of_the_source(version: str, cls: type[Object]) -> None:
    assert set(strict.fields(cls)) == set(go_fields(version, cls.__name__))


@pytest.mark.parametrize(("version", "cls"), TYPES)
def test_a_field_has_the_type_of_the_source(version: str, cls: type[Object]) -> None:
    for wire, field in go_fields(version, cls.__name__).items():
        _, wanted = strict.fields(cls)[wire]
        bare = next(part for part in wanted.__args__ if part is not type(None)) if isinstance(wanted, UnionType) else wanted
        assert bare == python_type(field["type"], version), wire
        if field["type"].startswith("*"):
            assert isinstance(wanted, UnionType), f"{wire} is a pointer in Go"


@pytest.mark.parametrize(("version", "cls"), TYPES)
def test_a_field_is_printed_when_empty_as_the_source_says(version: str, cls: type[Object]) -> None:
    attributes = {wire: name for wire, (name, _) in strict.fields(cls).items()}
    for wire, field in go_fields(version, cls.__name__).items():
        is_struct = isinstance(getattr(cls(), attributes[wire]), Object)
        assert is_struct or (attributes[wire] in cls.always_printed) == (not field["omitempty"]), wire


@pytest.mark.parametrize(("version", "kind"), [(version, kind) for version in VERSIONS for kind in kinds(version)])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_every_configuration_survives_a_round_trip(version: str, kind: str, data: st.DataObject) -> None:
    cls = kinds(version)[kind]
    printed = encode(data.draw(objects(cls)))
    (document,) = goyaml.load(goyaml.dump(printed))
    decoded, problems = strict.decode(cls, document)
    assert problems == []
    assert encode(decoded) == printed
