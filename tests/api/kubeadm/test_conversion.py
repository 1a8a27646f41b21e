"""Between versions and the internal form; fixed rows from kubeadm's v1beta3/conversion_test.go, and any configuration there and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from api.kubeadm.strategies import objects
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.api.kubeadm import conversion, defaults, internal, v1beta3, v1beta4
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.strict import encode
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Object

pytestmark = pytest.mark.upstream_table

OLD, NEW = release_for(Version(1, 34, 10)), release_for(Version(1, 35, 4))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, []),
        ({"foo": "bar"}, [("foo", "bar")]),
        ({"c": "d", "a": "b", "e": "f"}, [("a", "b"), ("c", "d"), ("e", "f")]),
    ],
)
def test_a_map_of_arguments_becomes_a_sorted_list(arguments: dict[str, str], expected: list[tuple[str, str]]) -> None:
    assert [(argument.name, argument.value) for argument in conversion.args_from_map(arguments)] == expected


def test_of_a_repeated_argument_a_map_keeps_the_last() -> None:
    arguments = [internal.Arg(name="foo", value="bar1"), internal.Arg(name="foo", value="bar2")]
    assert conversion.args_to_map(arguments) == {"foo": "bar2"}


def test_v1beta3_gets_what_it_cannot_say() -> None:
    cluster = v1beta3.ClusterConfiguration(etcd=v1beta3.Etcd(external=v1beta3.ExternalEtcd(endpoints=["https://e:2379"])))
    converted = conversion.to_internal(cluster, internal.ClusterConfiguration, NEW)
    assert converted.encryption_algorithm == "RSA-2048"
    assert (str(converted.certificate_validity_period), str(converted.ca_certificate_validity_period)) == ("8760h0m0s", "87600h0m0s")
    assert converted.etcd.external is not None
    assert converted.etcd.external.http_endpoints == ["https://e:2379"]
    older = conversion.to_internal(cluster, internal.ClusterConfiguration, OLD)
    assert older.etcd.external is not None
    assert older.etcd.external.http_endpoints == []
    assert conversion.to_internal(v1beta3.NodeRegistrationOptions(), internal.NodeRegistrationOptions, NEW).image_pull_serial is True


def test_the_discovery_timeout_moves_to_the_timeouts() -> None:
    join = v1beta3.JoinConfiguration(discovery=v1beta3.Discovery(timeout=Duration.of(minutes=10)))
    converted = conversion.to_internal(join, internal.JoinConfiguration, NEW)
    assert converted.timeouts.discovery == Duration.of(minutes=10)
    assert converted.timeouts.kubernetes_api_call == Duration.of(minutes=1)
    assert conversion.to_version(converted, v1beta3.JoinConfiguration, NEW).discovery.timeout == Duration.of(minutes=10)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2030-01-02T03:04:05Z", "2030-01-02T03:04:05Z"),
        ("2030-01-02T03:04:05+01:30", "2030-01-02T01:34:05Z"),
        ("2030-01-02T03:04:05.999Z", "2030-01-02T03:04:05Z"),
    ],
)
def test_times_are_kept_in_utc(text: str, expected: str) -> None:
    assert conversion.utc_time(text) == expected


@pytest.mark.parametrize("text", ["", "tomorrow", "2030-01-02", "2030-01-02T03:04:05", "2030-13-02T03:04:05Z", "20300102T030405Z"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        conversion.utc_time(text)


def meaningful(config: Any) -> Any:
    """The same object with tokens, times, quantities and lists that mean something, as a decoded document has them."""
    for token in getattr(config, "bootstrap_tokens", ()):
        token.token = "abcdef.0123456789abcdef" if token.token else None
        token.expires = "2030-01-02T03:04:05Z" if token.expires is not None else None
    for taint in getattr(getattr(config, "node_registration", None), "taints", None) or ():
        taint.time_added = "2030-01-02T03:04:05Z" if taint.time_added is not None else None
    external = getattr(getattr(config, "etcd", None), "external", None)
    if external is not None:
        external.endpoints = external.endpoints or None
    for component in ("api_server", "controller_manager", "scheduler"):
        _quantities(getattr(getattr(config, component, None), "extra_envs", ()))
    _quantities(getattr(getattr(getattr(config, "etcd", None), "local", None), "extra_envs", ()))
    return config


def _quantities(variables: Any) -> None:
    for variable in variables:
        if variable.value_from is not None and variable.value_from.resource_field_ref is not None:
            variable.value_from.resource_field_ref.divisor = "1"


CASES = [
    pytest.param(module, cls, getattr(internal, cls.__name__), id=f"{module.__name__.rpartition('.')[2]}-{cls.__name__}")
    for module in (v1beta3, v1beta4)
    for cls in module.KINDS.values()
]


@pytest.mark.parametrize(("module", "cls", "inner"), CASES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_configuration_with_defaults_goes_to_the_internal_form_and_back(
    module: Any, cls: type[Object], inner: type[Object], data: st.DataObject
) -> None:
    config = meaningful(data.draw(objects(cls)))
    defaults.apply(config, NEW)
    before = encode(config)
    there = conversion.to_internal(config, inner, NEW)
    assert encode(conversion.to_version(there, cls, NEW)) == before
    # A conversion shares nothing with what it came from.
    assert encode(config) == before


@pytest.mark.parametrize(("module", "cls", "inner"), CASES)
def test_defaults_are_the_same_the_second_time(module: Any, cls: type[Object], inner: type[Object]) -> None:
    config = cls()
    defaults.apply(config, NEW)
    once = encode(config)
    defaults.apply(config, NEW)
    assert encode(config) == once


def test_an_object_without_defaults_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="has no defaults"):
        defaults.apply(internal.Arg(), NEW)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("file:///etc/a.conf", "/etc/a.conf"),
        ("FILE:///etc/a%20b.conf", "/etc/a b.conf"),
        ("/etc/a.conf", "/etc/a.conf"),
        ("https://url/file.conf", "https://url/file.conf"),
    ],
)
def test_a_file_url_for_discovery_is_a_path(location: str, expected: str) -> None:
    join = v1beta4.JoinConfiguration(discovery=v1beta4.Discovery(file=v1beta4.FileDiscovery(kube_config_path=location)))
    defaults.apply(join, NEW)
    assert join.discovery.file is not None
    assert join.discovery.file.kube_config_path == expected
