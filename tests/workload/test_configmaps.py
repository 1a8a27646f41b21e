"""The ConfigMaps of the configuration: hashes, secrets and read access."""

from __future__ import annotations

import pytest
import yaml
from node import recorded
from node.conftest import VERSIONS

from slipway.api.kubeadm.internal import ClusterConfiguration, Etcd, LocalEtcd, Networking
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.workload import configmaps

pytestmark = pytest.mark.upstream_table


def cluster(version: str) -> ClusterConfiguration:
    return ClusterConfiguration(
        kubernetes_version=version,
        certificates_dir="/etc/kubernetes/pki",
        cluster_name="kubernetes",
        image_repository="registry.k8s.io",
        encryption_algorithm="RSA-2048",
        certificate_validity_period=Duration.of(hours=8760),
        ca_certificate_validity_period=Duration.of(hours=87600),
        etcd=Etcd(local=LocalEtcd(data_dir="/var/lib/etcd")),
        networking=Networking(service_subnet="10.96.0.0/12", dns_domain="cluster.local"),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_cluster_configuration_is_kept_as_the_real_kubeadm_keeps_it(version: str) -> None:
    expected = recorded.objects(version)
    made = configmaps.kubeadm_config(cluster(version), release_for(Version.parse(version)))
    assert made[0]["data"] == expected["ConfigMap", "kubeadm-config"]["data"]
    for manifest in made[1:]:
        identity = manifest["kind"], "kubeadm:nodes-kubeadm-config"
        assert {key: manifest[key] for key in ("rules", "roleRef", "subjects") if key in manifest} == {
            key: value for key, value in expected[identity].items() if key in ("rules", "roleRef", "subjects")
        }


def test_a_ci_build_is_kept_under_its_label() -> None:
    config = cluster("v1.36.3")
    config.ci_kubernetes_version = "ci/v1.36.3-1+abc"
    text = configmaps.cluster_configuration(config, release_for(Version(1, 36, 3)))
    assert yaml.safe_load(text)["kubernetesVersion"] == "ci/v1.36.3-1+abc"


@pytest.mark.parametrize("name", ["kubelet-config", "kube-proxy"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_hash_is_the_real_ones(version: str, name: str) -> None:
    expected = recorded.objects(version)["ConfigMap", name]
    unsigned = {"metadata": {"name": name}, "data": expected["data"]}
    made = configmaps.signed(unsigned)
    assert made["metadata"]["annotations"] == expected["metadata"]["annotations"]
    assert configmaps.is_signed(made)


def test_a_change_is_noticed() -> None:
    made = configmaps.signed(configmaps.config_map("x", {"b": "2", "a": "1"}))
    assert configmaps.is_signed(made)
    made["data"]["a"] = "3"
    assert not configmaps.is_signed(made)
    assert not configmaps.is_signed(configmaps.config_map("x", {"a": "1"}))


def test_binary_values_count_after_the_others() -> None:
    # componentconfigs/checksums_test.go: the digest of the values alone, here of "Foo" and "Bar" and the bytes "Baz".
    manifest = {"metadata": {"name": "x"}, "data": {"a": "Foo", "b": "Bar"}, "binaryData": {"c": "QmF6"}}
    whole = {"metadata": {"name": "x"}, "data": {"a": "FooBarBaz"}}
    assert configmaps.signed(manifest)["metadata"]["annotations"] == configmaps.signed(whole)["metadata"]["annotations"]
