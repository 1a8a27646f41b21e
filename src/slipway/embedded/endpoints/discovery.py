"""What the server says about itself: versions, groups and resources, one by one and all at once (aggregated discovery)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway.embedded.registry.resources import STATUS_VERBS, SUBRESOURCES, priority

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def wants_aggregated(accept: str) -> bool:
    """Whether the first choice of an Accept header is the aggregated form."""
    first = accept.partition(",")[0]
    parts = {part.strip() for part in first.split(";")}
    return {"application/json", "g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"} <= parts


def server_version(git_version: str) -> Manifest:
    major, minor = re.match(r"v(\d+)\.(\d+)", git_version).groups()  # type: ignore[union-attr]
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def api_versions(address: str) -> Manifest:
    """/api"""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(resources: Iterable[Resource]) -> Manifest:
    """/apis"""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name, versions) for name, versions in _groups(resources)]}


def group(resources: Iterable[Resource], name: str) -> Manifest | None:
    """/apis/GROUP"""
    for found, versions in _groups(resources):
        if found == name:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}
    return None


def resource_list(resources: Iterable[Resource], group_name: str, version: str) -> Manifest | None:
    """/api/v1 and /apis/GROUP/VERSION"""
    members = [resource for resource in resources if (resource.group, resource.version) == (group_name, version)]
    if not members:
        return None
    listed: list[Manifest] = []
    for resource in sorted(members, key=lambda member: member.plural):
        entry: Manifest = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        listed.append(entry)
        for name in sorted(resource.subresources):
            known = SUBRESOURCES.get(name)
            entry = {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": (known.kind if known else "") or resource.kind,
                "verbs": list(known.verbs if known else STATUS_VERBS),
            }
            if known and known.group:
                entry.update(group=known.group, version=known.version)
            listed.append(entry)
    api_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}


def aggregated(resources: Iterable[Resource], *, core: bool) -> Manifest:
    """The APIGroupDiscoveryList of /api (``core``) or /apis."""
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
            "versions": [
                {"version": version, "resources": [_described(member) for member in members], "freshness": "Current"}
                for version, members in versions
            ],
        }
        for name, versions in _grouped(resource for resource in resources if (not resource.group) is core)
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _described(resource: Resource) -> Manifest:
    described: Manifest = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.categories:
        described["categories"] = list(resource.categories)
    if resource.subresources:
        described["subresources"] = [_described_subresource(resource, name) for name in sorted(resource.subresources)]
    return described


def _described_subresource(resource: Resource, name: str) -> Manifest:
    known = SUBRESOURCES.get(name)
    group_name, version = (known.group, known.version) if known and known.group else (resource.group, resource.version)
    kind = {"group": group_name, "version": version, "kind": (known.kind if known else "") or resource.kind}
    return {"subresource": name, "responseKind": kind, "verbs": list(known.verbs if known else STATUS_VERBS)}


def _groups(resources: Iterable[Resource]) -> list[tuple[str, list[str]]]:
    return [
        (name, [version for version, _ in versions]) for name, versions in _grouped(resource for resource in resources if resource.group)
    ]


def _group(name: str, versions: list[str]) -> Manifest:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _grouped(resources: Iterable[Resource]) -> list[tuple[str, list[tuple[str, list[Resource]]]]]:
    """Groups in the order in which they came, their versions with the best one first."""
    found: dict[str, dict[str, list[Resource]]] = {}
    for resource in resources:
        found.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
    return [(name, [(version, versions[version]) for version in ordered(versions)]) for name, versions in found.items()]


def ordered(versions: Iterable[str]) -> list[str]:
    """Stable versions before betas before alphas, each the latest first; then names that are no versions, by name."""
    return sorted(sorted(versions), key=priority, reverse=True)
