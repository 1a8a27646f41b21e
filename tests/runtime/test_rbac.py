"""Roles from declared needs."""

from __future__ import annotations

import pytest

from slipway.api.cluster.kinds import CLUSTER, CONFIG_MAP, KUBEADM_CONFIG, MACHINE, SECRET
from slipway.runtime import rbac
from slipway.runtime.rbac import Rule, merged, rule


def test_rules_are_merged_by_group_and_verbs() -> None:
    assert merged(
        [
            rule(CLUSTER, "watch", "list", "get"),
            rule(MACHINE, "get"),
            rule(MACHINE, "list", "watch"),
            rule(KUBEADM_CONFIG, "patch", subresource="status"),
            Rule(("",), ("secrets", "configmaps"), ("get",)),
            rule(SECRET, "create", "get"),
        ]
    ) == [
        Rule(("",), ("configmaps",), ("get",)),
        Rule(("",), ("secrets",), ("get", "create")),
        Rule(("bootstrap.cluster.x-k8s.io",), ("kubeadmconfigs/status",), ("patch",)),
        Rule(("cluster.x-k8s.io",), ("clusters", "machines"), ("get", "list", "watch")),
    ]


def test_a_permission_for_some_objects_goes_into_that_for_all() -> None:
    given = [rule(SECRET, "get"), rule(SECRET, "get", "update", names=("a",)), rule(CONFIG_MAP, "get", names=("b", "a"))]
    assert merged(given) == [
        Rule(("",), ("configmaps",), ("get",), ("a", "b")),
        Rule(("",), ("secrets",), ("get",)),
        Rule(("",), ("secrets",), ("update",), ("a",)),
    ]


@pytest.mark.parametrize(
    ("verb", "resource", "name", "expected"),
    [
        ("get", "secrets", "x", True),
        ("update", "secrets", "a", True),
        ("update", "secrets", "x", False),
        ("create", "secrets", "", False),
        ("get", "configmaps", "x", False),
    ],
)
def test_merging_changes_no_permission(verb: str, resource: str, name: str, expected: bool) -> None:
    given = [rule(SECRET, "get"), rule(SECRET, "get", "update", names=("a",))]
    assert rbac.allows(given, verb, "", resource, name) is expected
    assert rbac.allows(merged(given), verb, "", resource, name) is expected


def test_a_role_and_its_binding() -> None:
    role = rbac.role("r", "n", [rule(SECRET, "get", names=("a",))])
    assert role == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": "n"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["a"]}],
    }
    assert rbac.binding(role, rbac.user("me")) == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "r", "namespace": "n"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "me"}],
    }
