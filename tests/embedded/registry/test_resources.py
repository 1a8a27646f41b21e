"""The table of built-in resources against the kinds of Kubernetes' own OpenAPI documents, and what discovery makes of it."""

from __future__ import annotations

import pytest

from slipway.embedded.endpoints import discovery
from slipway.embedded.registry import types
from slipway.embedded.registry.resources import Catalog, Resource, built_in

# Reviews are answered and not stored; the OpenAPI table leaves them out.
STORED = [resource for resource in built_in() if resource.verbs != ("create",)]


@pytest.mark.parametrize("resource", STORED, ids=lambda resource: f"{resource.plural}.{resource.group}")
def test_a_kind_is_one_of_kubernetes(resource: Resource) -> None:
    type_ = types.definition(resource.group, resource.version, resource.kind)
    assert type_ is not None
    assert type_.map is not None
    assert ("status" in type_.map.fields) or not resource.has_status


def test_no_name_is_taken_twice_in_a_group() -> None:
    catalog = Catalog()
    for group in {resource.group for resource in catalog.all()}:
        names = [name for member in catalog.of_group(group) for name in (member.plural, *member.short_names)]
        assert len(names) == len(set(names))


def test_events_are_stored_once() -> None:
    catalog = Catalog()
    faces = [resource.api_version for resource in catalog.all() if resource.bucket == "events"]
    assert faces == ["v1", "events.k8s.io/v1"]
    stored = catalog.stored_as("events")
    assert stored is not None
    assert stored.api_version == "v1"


@pytest.mark.parametrize(
    ("versions", "ordered"),
    [
        (["v1alpha1", "v1beta1", "v1"], ["v1", "v1beta1", "v1alpha1"]),
        (["v1", "v2", "v10"], ["v10", "v2", "v1"]),
        (
            ["v11alpha2", "v12alpha1", "v3beta1", "foo1", "v10", "foo10", "v2", "v1", "v11beta2", "v10beta3"],
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"],
        ),
    ],
)
def test_the_best_version_comes_first(versions: list[str], ordered: list[str]) -> None:
    """The last row is the example of the Kubernetes documentation."""
    assert discovery.ordered(versions) == ordered


def test_what_kubectl_needs_of_a_resource() -> None:
    listed = discovery.resource_list(built_in(), "apps", "v1")
    assert listed is not None
    found = {entry["name"]: entry for entry in listed["resources"]}
    deployments = found["deployments"]
    assert (deployments["kind"], deployments["shortNames"], deployments["categories"]) == ("Deployment", ["deploy"], ["all"])
    assert (found["deployments/scale"]["kind"], found["deployments/scale"]["group"]) == ("Scale", "autoscaling")


@pytest.mark.parametrize(
    ("accept", "aggregated"),
    [
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", True),
        ("application/json; g=apidiscovery.k8s.io; v=v2; as=APIGroupDiscoveryList", True),
        ("application/json", False),
        ("", False),
        ("application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", False),
    ],
)
def test_who_wants_everything_at_once(accept: str, aggregated: bool) -> None:
    assert discovery.wants_aggregated(accept) is aggregated


def test_aggregated_discovery_says_the_same() -> None:
    whole = discovery.aggregated(built_in(), core=False)
    for group in whole["items"]:
        for version in group["versions"]:
            listed = discovery.resource_list(built_in(), group["metadata"]["name"], version["version"])
            assert listed is not None
            plain = {entry["name"]: entry["verbs"] for entry in listed["resources"]}
            told = {entry["resource"]: entry["verbs"] for entry in version["resources"]}
            for entry in version["resources"]:
                told |= {f"{entry['resource']}/{part['subresource']}": part["verbs"] for part in entry.get("subresources", ())}
            assert told == plain
