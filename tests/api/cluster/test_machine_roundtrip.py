"""Whatever the schemas of machines and control planes allow survives the way to v1beta1 and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.structural import objects

from slipway.api.cluster import crds
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.kinds import BOOTSTRAP_GROUP
from slipway.api.cluster.meta import decode, manifest
from slipway.api.machinery.openapi import schema_of

# Of these v1beta1 can say everything but an explicit 0 or an empty object.
WITHOUT_DATA = ("MachineSet", "MachineDrainRule", "ClusterResourceSet", "ClusterResourceSetBinding")
TYPES = {
    definition.kind: next(version.type for version in definition.versions if version.storage)
    for definition in crds.DEFINITIONS
    if definition.kind.group != BOOTSTRAP_GROUP and definition.kind.kind not in WITHOUT_DATA
}


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.kind)
def test_an_object_of_v1beta2_comes_back_as_it_was(kind: Any) -> None:
    old = kind._replace(version="v1beta1").api_version

    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(objects(kind.kind, kind.api_version, schema_of(TYPES[kind])), st.sampled_from(["v1beta2", "v9"]))
    def comes_back(content: dict[str, Any], version: str) -> None:
        there = convert(content, old, lambda group, _: f"{group}/{version}")
        assert convert(there, kind.api_version) == manifest(decode(content, TYPES[kind]))

    comes_back()
