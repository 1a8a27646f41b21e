"""The paths of the Kubernetes API: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris."""

from __future__ import annotations

import pytest

from slipway.kube import resources


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (("v1", "Pod", "default", "a"), "/api/v1/namespaces/default/pods/a"),
        (("v1", "Pod", "default"), "/api/v1/namespaces/default/pods"),
        (("v1", "Pod"), "/api/v1/pods"),
        (("v1", "Node", "", "n"), "/api/v1/nodes/n"),
        (("v1", "Namespace", "", "n"), "/api/v1/namespaces/n"),
        (("apps/v1", "Deployment", "kube-system", "coredns"), "/apis/apps/v1/namespaces/kube-system/deployments/coredns"),
        (
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:coredns"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns",
        ),
        (("v1", "Secret", "a", "b/../c?d"), "/api/v1/namespaces/a/secrets/b%2F..%2Fc%3Fd"),
    ],
)
def test_a_kind_has_a_path(of: tuple[str, ...], path: str) -> None:
    assert resources.path(*of) == path


def test_a_kind_that_is_not_in_the_table_is_named() -> None:
    with pytest.raises(ValueError, match="the kind Widget"):
        resources.path("example.com/v1", "Widget")


def test_an_object_of_a_namespace_is_not_looked_for_without_it() -> None:
    with pytest.raises(ValueError, match='the Pod "a" is wanted without saying in which namespace'):
        resources.path("v1", "Pod", "", "a")
