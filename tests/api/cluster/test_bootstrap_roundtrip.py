"""Whatever the schemas allow survives the way to the other version and back."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.structural import objects

from slipway.api.cluster.bootstrap import config, v1beta1
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.meta import decode, manifest
from slipway.api.cluster.names import CONVERSION_DATA_ANNOTATION as DATA_ANNOTATION
from slipway.api.machinery.openapi import schema_of

V1BETA1, V1BETA2 = v1beta1.API_VERSION, config.API_VERSION

# What v1beta2 does not have, as upstream says it.
LOST = ("useExperimentalRetryJoin", "networking", "kubernetesVersion", "clusterName")


def essence(value: Any, *, top: bool = False) -> Any:
    """What is said: without false, zero and what is empty, and without what v1beta2 has no place for."""
    if isinstance(value, dict):
        lost = () if top else LOST
        pairs = {key: essence(each) for key, each in value.items() if key not in lost}
        return {key: each for key, each in pairs.items() if each not in (None, False, 0, "", [], {})}
    return [essence(each) for each in value] if isinstance(value, list) else value


def without_type(spec: dict[str, Any]) -> dict[str, Any]:
    """kubeadm's own apiVersion and kind, which v1beta1 lets users write and nobody reads."""
    for configuration in ("clusterConfiguration", "initConfiguration", "joinConfiguration"):
        for key in ("apiVersion", "kind"):
            spec.get(configuration, {}).pop(key, None)
    return spec


CONFIGS_OF_V1BETA2 = objects("KubeadmConfig", V1BETA2, schema_of(config.KubeadmConfig))
TEMPLATES_OF_V1BETA2 = objects("KubeadmConfigTemplate", V1BETA2, schema_of(config.KubeadmConfigTemplate))
CONFIGS_OF_V1BETA1 = objects("KubeadmConfig", V1BETA1, schema_of(v1beta1.KubeadmConfig))
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@SLOW
@given(CONFIGS_OF_V1BETA2)
def test_a_config_of_v1beta2_comes_back_as_it_was(content: dict[str, Any]) -> None:
    assert convert(convert(content, V1BETA1), V1BETA2) == manifest(decode(content, config.KubeadmConfig))


@SLOW
@given(TEMPLATES_OF_V1BETA2)
def test_a_template_of_v1beta2_comes_back_as_it_was(content: dict[str, Any]) -> None:
    assert convert(convert(content, V1BETA1), V1BETA2) == manifest(decode(content, config.KubeadmConfigTemplate))


@SLOW
@given(CONFIGS_OF_V1BETA1)
def test_a_config_of_v1beta1_comes_back_with_what_it_said(content: dict[str, Any]) -> None:
    back = convert(convert(content, V1BETA2), V1BETA1)
    del back["metadata"]["annotations"][DATA_ANNOTATION]
    assert essence(back, top=True) == essence(content | {"spec": without_type(content["spec"])}, top=True)


@SLOW
@given(CONFIGS_OF_V1BETA2, st.integers(1, 9))
def test_a_change_in_v1beta1_changes_nothing_else_that_it_knows(content: dict[str, Any], verbosity: int) -> None:
    there = convert(content, V1BETA1)
    there["spec"]["verbosity"] = verbosity
    back = convert(there, V1BETA2)
    again = convert(back, V1BETA1)
    assert again["spec"] == there["spec"]
    assert back["spec"]["verbosity"] == verbosity
