"""Beyond what is recorded: a CoreDNS that follows Kubernetes, and where etcd listens."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.controlplane.workload import addons
from slipway.fleet.controlplane.workload.etcdaccess import CLIENT_URLS_ANNOTATION, addresses

COREFILE = {"metadata": {"name": "coredns"}, "data": {"Corefile": ".:53 {\n    errors\n}\n"}}


def deployment(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "coredns", "image": image}]}}}}


def test_coredns_follows_kubernetes_where_that_is_asked_for() -> None:
    old = deployment("registry.k8s.io/coredns/coredns:v1.12.0")
    assert addons.core_dns(COREFILE, old, {}, "v1.36.3") is None
    wanted = addons.core_dns(COREFILE, old, {}, "v1.36.3", follows=True)
    assert wanted is not None
    assert wanted.image == "registry.k8s.io/coredns/coredns:v1.14.2"


def test_a_coredns_that_is_newer_or_named_is_not_followed() -> None:
    newer = deployment("registry.k8s.io/coredns/coredns:v1.14.2")
    assert addons.core_dns(COREFILE, newer, {}, "v1.33.13", follows=True) is None
    old = deployment("registry.k8s.io/coredns/coredns:v1.12.0")
    wanted = addons.core_dns(COREFILE, old, {"dns": {"imageTag": "v1.13.1"}}, "v1.36.3", follows=True)
    assert wanted is not None
    assert wanted.image.endswith(":v1.13.1")


@pytest.mark.parametrize("image", ["coredns:v1.12.0", "registry.k8s.io/coredns/coredns"])
def test_an_image_without_repository_or_tag_is_refused(image: str) -> None:
    with pytest.raises(OperatorError):
        addons.core_dns(COREFILE, deployment(image), {"dns": {"imageTag": "v1.13.1"}}, "v1.35.4")


def test_a_member_is_where_its_pod_says() -> None:
    node = {"status": {"addresses": [{"type": "Hostname", "address": "a"}, {"type": "InternalIP", "address": "10.0.0.1"}]}}
    pod = {"metadata": {"annotations": {CLIENT_URLS_ANNOTATION: "https://10.0.0.9:2379,https://[fd00::9]:2380"}}}
    assert addresses(node, pod) == [("10.0.0.9", 2379), ("fd00::9", 2380)]
    assert addresses(node, None) == [("10.0.0.1", 2379)]
    assert addresses(None, None) == []
