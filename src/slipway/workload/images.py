"""The names of the container images of a cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway.api.machinery.version import Version

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import ClusterConfiguration
    from slipway.api.releases import Release

DEFAULT_REPOSITORY = "registry.k8s.io"
"""The community's registry, the only one that has CoreDNS in a folder of its own."""


def required(cluster: ClusterConfiguration, release: Release) -> list[str]:
    """The images that a control plane node needs, in the order in which kubeadm lists and pulls them."""
    components = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    if not cluster.proxy.disabled:
        components.append("kube-proxy")
    images = [kubernetes(cluster, component) for component in components]
    if not cluster.dns.disabled:
        images.append(coredns(cluster, release))
    images.append(pause(cluster, release))
    if cluster.etcd.local is not None:
        images.append(etcd(cluster, release))
    return images


def kubernetes(cluster: ClusterConfiguration, component: str) -> str:
    """The image of a component that is released with Kubernetes itself."""
    return f"{cluster.control_plane_image_repository}/{component}:{tag_of_version(cluster.kubernetes_version)}"


def coredns(cluster: ClusterConfiguration, release: Release) -> str:
    repository = cluster.dns.image_repository or cluster.image_repository
    if repository == DEFAULT_REPOSITORY:
        repository += "/coredns"
    return f"{repository}/coredns:{cluster.dns.image_tag or release.coredns_version}"


def pause(cluster: ClusterConfiguration, release: Release) -> str:
    return f"{cluster.image_repository}/pause:{release.pause_version}"


def etcd(cluster: ClusterConfiguration, release: Release) -> str:
    repository = (cluster.etcd.local.image_repository if cluster.etcd.local else "") or cluster.image_repository
    return f"{repository}/etcd:{etcd_tag(cluster, release)}"


def etcd_tag(cluster: ClusterConfiguration, release: Release) -> str:
    """The user's tag, or the one for the cluster's Kubernetes, which may be older than the release that is acted as."""
    if cluster.etcd.local is not None and cluster.etcd.local.image_tag:
        return cluster.etcd.local.image_tag
    try:
        minor = Version.parse(cluster.kubernetes_version).minor
    except ValueError:
        return release.etcd_version
    known = release.etcd_versions
    return known[min(max(minor, min(known)), max(known))]


def tag_of_version(kubernetes_version: str) -> str:
    """A version as an image tag, in which ``+`` is not allowed."""
    return re.sub(r"[^-\w.]", "_", kubernetes_version, flags=re.ASCII)


def tag_of(image: str) -> str:
    """The tag in the name of an image; empty where it has none."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]
