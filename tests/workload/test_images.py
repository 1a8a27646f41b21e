"""Rows of kubeadm's images/images_test.go and constants/constants_test.go, and lists recorded with ``config images list``."""

from __future__ import annotations

import pytest

from slipway.api import releases
from slipway.api.kubeadm.internal import DNS, ClusterConfiguration, Etcd, ExternalEtcd, LocalEtcd, Proxy
from slipway.api.machinery.version import Version
from slipway.workload import images

pytestmark = pytest.mark.upstream_table


def release(version: str) -> releases.Release:
    return releases.release_for(Version.parse(version))


LOCAL = Etcd(local=LocalEtcd())
V36 = release("v1.36.3")
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


@pytest.mark.parametrize(
    ("version", "proxied"),
    [
        # As kubeadm config images list --kubernetes-version printed them.
        ("v1.33.13", ["coredns/coredns:v1.12.0", "pause:3.10", "etcd:3.5.24-0"]),
        ("v1.34.10", ["coredns/coredns:v1.12.1", "pause:3.10.1", "etcd:3.6.5-0"]),
        ("v1.35.4", ["coredns/coredns:v1.13.1", "pause:3.10.1", "etcd:3.6.6-0"]),
        ("v1.36.3", ["coredns/coredns:v1.14.2", "pause:3.10.2", "etcd:3.6.8-0"]),
    ],
)
def test_each_release_lists_its_own_images(version: str, proxied: list[str]) -> None:
    cluster = ClusterConfiguration(kubernetes_version=version, image_repository="registry.k8s.io", etcd=LOCAL)
    expected = [*(f"{component}:{version}" for component in (*COMPONENTS, "kube-proxy")), *proxied]
    assert images.required(cluster, release(version)) == [f"registry.k8s.io/{image}" for image in expected]


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param(
            ClusterConfiguration(ci_image_repository="test.repo"),
            [*(f"test.repo/{name}:" for name in (*COMPONENTS, "kube-proxy")), "/coredns:v1.14.2", "/pause:3.10.2"],
            id="CI builds have a repository for Kubernetes alone",
        ),
        pytest.param(
            ClusterConfiguration(image_repository="real.repo"),
            [f"real.repo/{name}" for name in (*(f"{name}:" for name in (*COMPONENTS, "kube-proxy")), "coredns:v1.14.2", "pause:3.10.2")],
            id="another repository has no folder for CoreDNS",
        ),
        pytest.param(
            ClusterConfiguration(etcd=LOCAL),
            [*(f"/{name}:" for name in (*COMPONENTS, "kube-proxy")), "/coredns:v1.14.2", "/pause:3.10.2", "/etcd:3.6.8-0"],
            id="a local etcd needs an image",
        ),
        pytest.param(
            ClusterConfiguration(etcd=Etcd(external=ExternalEtcd(endpoints=["https://etcd:2379"]))),
            [*(f"/{name}:" for name in (*COMPONENTS, "kube-proxy")), "/coredns:v1.14.2", "/pause:3.10.2"],
            id="an external etcd needs none",
        ),
        pytest.param(
            ClusterConfiguration(dns=DNS(disabled=True)),
            [*(f"/{name}:" for name in (*COMPONENTS, "kube-proxy")), "/pause:3.10.2"],
            id="without CoreDNS",
        ),
        pytest.param(
            ClusterConfiguration(proxy=Proxy(disabled=True)),
            [*(f"/{name}:" for name in COMPONENTS), "/coredns:v1.14.2", "/pause:3.10.2"],
            id="without kube-proxy",
        ),
    ],
)
def test_the_configuration_decides_which_images_are_needed(cluster: ClusterConfiguration, expected: list[str]) -> None:
    assert images.required(cluster, V36) == expected


@pytest.mark.parametrize(
    ("version", "tag"),
    [
        ("v1.35.4", "v1.35.4"),
        ("v1.35.5-rc.1", "v1.35.5-rc.1"),
        ("v1.36.0-alpha.1.7+3c4596d0e2ab12", "v1.36.0-alpha.1.7_3c4596d0e2ab12"),
        ("v1.35.4+vendor.1", "v1.35.4_vendor.1"),
    ],
)
def test_a_version_becomes_a_tag_without_signs_that_tags_cannot_have(version: str, tag: str) -> None:
    cluster = ClusterConfiguration(image_repository="registry.k8s.io", kubernetes_version=version)
    assert images.kubernetes(cluster, "kube-proxy") == f"registry.k8s.io/kube-proxy:{tag}"


@pytest.mark.parametrize(
    ("repository", "dns", "expected"),
    [
        ("foo.io", DNS(), "foo.io/coredns:v1.14.2"),
        ("registry.k8s.io", DNS(), "registry.k8s.io/coredns/coredns:v1.14.2"),
        ("foo.io", DNS(image_repository="foo.io/coredns"), "foo.io/coredns/coredns:v1.14.2"),
        ("foo.io", DNS(image_repository="registry.k8s.io"), "registry.k8s.io/coredns/coredns:v1.14.2"),
        ("foo.io/coredns", DNS(image_tag="v1.0"), "foo.io/coredns/coredns:v1.0"),
    ],
)
def test_coredns_has_a_folder_only_in_the_default_repository(repository: str, dns: DNS, expected: str) -> None:
    assert images.coredns(ClusterConfiguration(image_repository=repository, dns=dns), V36) == expected


@pytest.mark.parametrize(
    ("etcd", "expected"),
    [
        (LOCAL, "real.repo/etcd:3.6.8-0"),
        (Etcd(local=LocalEtcd(image_tag="override")), "real.repo/etcd:override"),
        (Etcd(local=LocalEtcd(image_repository="override")), "override/etcd:3.6.8-0"),
        (Etcd(), "real.repo/etcd:3.6.8-0"),
    ],
)
def test_etcd_may_have_a_repository_and_a_tag_of_its_own(etcd: Etcd, expected: str) -> None:
    assert images.etcd(ClusterConfiguration(image_repository="real.repo", kubernetes_version="v1.99.0", etcd=etcd), V36) == expected


@pytest.mark.parametrize(
    ("kubeadm", "kubernetes_version", "tag"),
    [
        ("v1.33.13", "v1.32.0", "3.5.24-0"),
        ("v1.34.10", "v1.33.1", "3.5.24-0"),
        ("v1.34.10", "v1.34.1", "3.6.5-0"),
        ("v1.35.4", "v1.33.9", "3.5.24-0"),
        ("v1.35.4", "v1.34.4", "3.6.6-0"),
        ("v1.36.3", "v1.35.0", "3.6.8-0"),
        # Beyond what the release knows, the nearest that it does know; without a version, its own.
        ("v1.34.10", "v1.99.0", "3.6.5-0"),
        ("v1.34.10", "v1.7.0", "3.5.24-0"),
        ("v1.34.10", "", "3.6.5-0"),
    ],
)
def test_the_etcd_tag_belongs_to_the_cluster_version(kubeadm: str, kubernetes_version: str, tag: str) -> None:
    cluster = ClusterConfiguration(kubernetes_version=kubernetes_version, etcd=LOCAL)
    assert images.etcd_tag(cluster, release(kubeadm)) == tag
