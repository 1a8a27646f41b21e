"""Component configurations against what the real kubeadm made of the same documents (tests/oracles/components_record.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api import components
from slipway.api.kubeadm.internal import APIEndpoint, ClusterConfiguration, ComponentConfig, Networking, NodeRegistrationOptions
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.version import Version
from slipway.api.machinery.yaml import goyaml
from slipway.api.releases import Release, release_for

pytestmark = pytest.mark.recorded

KUBELET, KUBEPROXY = "kubelet.config.k8s.io", "kubeproxy.config.k8s.io"
RELEASES = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
CASES = [
    pytest.param(
        case, release_for(Version.parse(version)), case["outcome"].get("all") or case["outcome"][version], id=f"{case['name']} {version}"
    )
    for case in json.loads((Path(__file__).parents[1] / "golden/components/documents.json").read_text())
    for version in RELEASES
]
NEWEST = release_for(Version.parse("v1.36.3"))


def loaded(group: str, version: str, kind: str, content: dict[str, Any], release: Release) -> tuple[ComponentConfig, list[Any]]:
    [document] = goyaml.load(goyaml.dump({"apiVersion": f"{group}/{version}", "kind": kind, **content}))
    return components.load(document, release)


def completed(case: dict[str, Any], release: Release) -> tuple[ClusterConfiguration, list[str], list[str]]:
    """The cluster of a case with its component configurations, kubeadm's warnings, and the messages of strict decoding."""
    networking = {"serviceSubnet": "10.96.0.0/12", "dnsDomain": "cluster.local", "podSubnet": "", **case.get("networking", {})}
    cluster = ClusterConfiguration(
        certificates_dir=case.get("certificatesDir", "/etc/kubernetes/pki"),
        networking=Networking(
            service_subnet=networking["serviceSubnet"], pod_subnet=networking["podSubnet"], dns_domain=networking["dnsDomain"]
        ),
    )
    messages = []
    for key, group, version, kind in (
        ("kubeproxy", KUBEPROXY, "v1alpha1", "KubeProxyConfiguration"),
        ("kubelet", KUBELET, "v1beta1", "KubeletConfiguration"),
    ):
        if key in case:
            cluster.component_configs[group], problems = loaded(group, version, kind, case[key], release)
            messages += [problem.message for problem in problems]
    endpoint = APIEndpoint(advertise_address=case.get("address", "10.0.0.5"), bind_port=6443)
    warnings = components.default(cluster, endpoint, NodeRegistrationOptions(), release, systemd_resolved=False)
    return cluster, warnings, messages


@pytest.mark.parametrize(("case", "release", "outcome"), CASES)
def test_configurations_are_completed_and_written_as_kubeadm_does(case: dict[str, Any], release: Release, outcome: dict[str, Any]) -> None:
    cluster, _, _ = completed(case, release)
    assert components.marshal(cluster.component_configs[KUBELET], release) == outcome["kubelet"]
    assert components.marshal(cluster.component_configs[KUBEPROXY], release).rstrip("\n") == outcome["kubeproxy"].rstrip("\n")


@pytest.mark.parametrize(("case", "release", "outcome"), CASES)
def test_warnings_are_kubeadm_s(case: dict[str, Any], release: Release, outcome: dict[str, Any]) -> None:
    _, warnings, _ = completed(case, release)
    assert warnings == outcome["warnings"]


@pytest.mark.parametrize(("case", "release", "outcome"), CASES)
def test_unknown_fields_are_those_that_kubeadm_warns_of(case: dict[str, Any], release: Release, outcome: dict[str, Any]) -> None:
    _, _, messages = completed(case, release)
    found = {message for text in outcome["strict"] for message in text.split(", ")}
    assert set(messages) == found


@pytest.mark.parametrize(("case", "release", "outcome"), CASES)
def test_the_checksum_is_kubeadm_s_and_only_on_what_it_generated(case: dict[str, Any], release: Release, outcome: dict[str, Any]) -> None:
    cluster, _, _ = completed(case, release)
    data = {
        "kubelet": {"kubelet": outcome["kubelet"]},
        "kubeproxy": {"config.conf": outcome["kubeproxy"], "kubeconfig.conf": outcome["kubeproxy_kubeconfig"]},
    }
    for key, group in (("kubelet", KUBELET), ("kubeproxy", KUBEPROXY)):
        if cluster.component_configs[group].user_supplied:
            assert outcome[f"{key}_hash"] == ""
        else:
            assert components.checksum({"data": data[key]}) == outcome[f"{key}_hash"]


def test_a_checksum_is_that_of_the_values_in_the_order_of_their_keys() -> None:
    config_map: dict[str, Any] = {"data": {"b": "2", "a": "1"}, "binaryData": {"c": "Mw=="}}
    # printf 123 | sha256sum
    assert components.checksum(config_map) == "sha256:a665a45920422f9d417e4867efdc4fb8a04a1f3fff1fa07e998e86f7f7a27ae3"


def test_the_resolver_of_systemd_is_taken_where_it_runs() -> None:
    cluster = ClusterConfiguration()
    warnings = components.default(cluster, APIEndpoint(), NodeRegistrationOptions(), NEWEST, systemd_resolved=True)
    assert (warnings, cluster.component_configs[KUBELET].value["resolvConf"]) == ([], "/run/systemd/resolve/resolv.conf")


def test_another_resolver_is_warned_of_where_systemd_s_runs() -> None:
    component, _ = loaded(KUBELET, "v1beta1", "KubeletConfiguration", {"resolvConf": "/etc/resolv.conf"}, NEWEST)
    cluster = ClusterConfiguration(component_configs={KUBELET: component})
    [warning] = components.default(cluster, APIEndpoint(), NodeRegistrationOptions(), NEWEST, systemd_resolved=True)
    assert warning == (
        'The recommended value for "resolvConf" in "KubeletConfiguration" is: /run/systemd/resolve/resolv.conf; '
        "the provided value is: /etc/resolv.conf"
    )
    assert component.value["resolvConf"] == "/etc/resolv.conf"


def test_completing_twice_changes_nothing() -> None:
    cluster = ClusterConfiguration()
    components.default(cluster, APIEndpoint(), NodeRegistrationOptions(), NEWEST, systemd_resolved=True)
    once = {group: components.marshal(component, NEWEST) for group, component in cluster.component_configs.items()}
    assert components.default(cluster, APIEndpoint(), NodeRegistrationOptions(), NEWEST, systemd_resolved=True) == []
    assert {group: components.marshal(component, NEWEST) for group, component in cluster.component_configs.items()} == once


@pytest.mark.parametrize(
    ("api_version", "kind", "words"),
    [
        ("kubelet.config.k8s.io/v1alpha1", "KubeletConfiguration", 'unsupported apiVersion "kubelet.config.k8s.io/v1alpha1"'),
        ("kubeproxy.config.k8s.io/v1", "KubeProxyConfiguration", 'manual conversion to "kubeproxy.config.k8s.io/v1alpha1"'),
        ("kubelet.config.k8s.io/v1beta1", "CredentialProviderConfig", 'no kind "CredentialProviderConfig"'),
        ("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration", "not the API group of a component"),
    ],
)
def test_other_versions_and_kinds_are_refused(api_version: str, kind: str, words: str) -> None:
    [document] = goyaml.load(f"apiVersion: {api_version}\nkind: {kind}\n")
    with pytest.raises(ConfigurationError, match=words):
        components.load(document, NEWEST)


def test_problems_come_with_their_lines() -> None:
    text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: x\nfoo: 1\nmaxPods: y\n"
    [document] = goyaml.load(text)
    _, problems = components.load(document, NEWEST)
    assert [(problem.kind, problem.path, problem.line) for problem in problems] == [
        ("unknown", "foo", 4),
        ("type", "maxPods", 5),
        ("duplicate", "maxPods", 5),
    ]
