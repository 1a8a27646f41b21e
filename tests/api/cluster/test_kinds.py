"""Where kinds are in the API."""

from __future__ import annotations

import pytest

from slipway.api.cluster import kinds


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (kinds.path(kinds.SECRET, "default", "a"), "/api/v1/namespaces/default/secrets/a"),
        (kinds.path(kinds.SECRET), "/api/v1/secrets"),
        (kinds.path(kinds.SECRET, "default"), "/api/v1/namespaces/default/secrets"),
        (kinds.path(kinds.NODE, name="n1"), "/api/v1/nodes/n1"),
        (kinds.path(kinds.NODE, "ignored", "n1", "status"), "/api/v1/nodes/n1/status"),
        (kinds.path(kinds.CLUSTER_ROLE, name="system:node"), "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"),
        (
            kinds.path(kinds.KUBEADM_CONFIG, "a/b", "c d", "status"),
            "/apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/a%2Fb/kubeadmconfigs/c%20d/status",
        ),
    ],
)
def test_an_object_has_one_path(path: str, expected: str) -> None:
    assert path == expected


def test_an_object_of_a_namespace_is_not_asked_for_without_one() -> None:
    with pytest.raises(ValueError, match='the Secret "a" is wanted without saying in which namespace it is'):
        kinds.path(kinds.SECRET, name="a")


def test_a_subresource_belongs_to_an_object() -> None:
    with pytest.raises(ValueError, match="without a name"):
        kinds.path(kinds.MACHINE, "default", subresource="status")


def test_the_api_version_of_the_core_group_is_its_version() -> None:
    assert kinds.SECRET.api_version == "v1"
    assert kinds.MACHINE.api_version == "cluster.x-k8s.io/v1beta2"
    assert kinds.MACHINE.list_kind == "MachineList"
