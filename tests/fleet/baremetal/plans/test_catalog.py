"""Images of versions: which reference a host pulls, and what is said where there is none."""

from __future__ import annotations

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal.plans.catalog import CatalogMissError, InvalidImageError, RegistryMissingError, image, platform_registry

DIGEST = "sha256:" + "0123456789abcdef" * 4
WHERE = "cpaas-system/elemental-image-catalog"


def resolved(entry: str, registry: str = "registry.lan:5000", version: str = "v1.34.5") -> str:
    return image({"v1.34.5": entry}, WHERE, version, registry, "cpaas-system/c")


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("elsewhere.example.com/tkestack/base:v1", "registry.lan:5000/tkestack/base:v1"),
        ("elsewhere.example.com:443/tkestack/base:v1", "registry.lan:5000/tkestack/base:v1"),
        ("localhost/base:v1", "registry.lan:5000/base:v1"),
        ("[fd00::1]:5000/base:v1", "registry.lan:5000/base:v1"),
        ("tkestack/base:v1", "registry.lan:5000/tkestack/base:v1"),
        ("base:v1", "registry.lan:5000/base:v1"),
        ("base", "registry.lan:5000/base"),
        (f"elsewhere.example.com/tkestack/base@{DIGEST}", f"registry.lan:5000/tkestack/base@{DIGEST}"),
        (f"elsewhere.example.com/tkestack/base:v1@{DIGEST}", f"registry.lan:5000/tkestack/base:v1@{DIGEST}"),
        (" elsewhere.example.com/base:v1\n", "registry.lan:5000/base:v1"),
    ],
)
def test_the_registry_is_replaced_and_the_rest_stays(entry: str, wanted: str) -> None:
    assert resolved(entry) == wanted


@pytest.mark.parametrize("registry", ["10.0.0.1:60080", "https://registry.lan/", "registry.lan/mirror"])
def test_an_address_may_be_written_in_several_ways(registry: str) -> None:
    assert resolved("x.io/base:v1", registry) == f"{registry.removeprefix('https://').rstrip('/')}/base:v1"


def test_a_version_without_its_v_has_the_key_with_it() -> None:
    assert resolved("base:v1", version="1.34.5") == "registry.lan:5000/base:v1"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, f"there is no ConfigMap {WHERE}"),
        ({}, 'has no key "v1.34.5"'),
        ({"v1.33.7-2": "x"}, "it has v1.33.7-2"),
        ({"1.34.5": "base:v1"}, 'rename it to "v1.34.5"'),
    ],
)
def test_a_miss_says_what_to_add(data: dict[str, str] | None, says: str) -> None:
    with pytest.raises(CatalogMissError) as error:
        image(data, WHERE, "v1.34.5", "registry.lan", "cpaas-system/c")
    assert says in error.value.message


def test_a_registry_that_nobody_named_is_told_with_the_annotation() -> None:
    with pytest.raises(RegistryMissingError) as error:
        resolved("base:v1", registry="")
    assert "set the annotation cpaas.io/registry-address on the Cluster cpaas-system/c" in error.value.message


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "  ",
        "Base:v1",
        "x.io/UPPER:v1",
        "x.io/base:",
        "x.io/base:v 1",
        "x.io/base@sha256:12",
        "x.io//base",
        "-",
        "a" * 300,
        "x.io/b;rm -rf",
    ],
)
def test_what_is_no_reference_is_told(entry: str) -> None:
    with pytest.raises(InvalidImageError) as error:
        resolved(entry)
    assert "the entry v1.34.5" in error.value.message


@pytest.mark.parametrize("registry", ["registry lan", "--tls-verify=false", "a/b c", "$(x)"])
def test_a_registry_that_is_none_is_told(registry: str) -> None:
    with pytest.raises(OperatorError, match="is no host"):
        resolved("base:v1", registry)


@pytest.mark.parametrize(
    ("type_", "address"),
    [("Opaque", "registry.lan:5000"), ("elemental.cattle.io/plan", "")],
)
def test_the_secret_of_a_host_is_not_that_of_the_platforms_registry(type_: str, address: str) -> None:
    assert platform_registry({"type": type_, "data": {"address": "cmVnaXN0cnkubGFuOjUwMDAK"}}) == address
