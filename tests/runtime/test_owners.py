"""Owner references, finalizers and pause."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.runtime import finalizers, owners

_CONFIG = {
    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
    "kind": "KubeadmConfig",
    "metadata": {"name": "c", "namespace": "n", "uid": "1", "generation": 7},
}
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def test_a_controllers_reference_is_that_of_new_controller_ref() -> None:
    assert owners.reference(_CONFIG) == {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        "name": "c",
        "uid": "1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_a_plain_reference_has_no_more_than_the_object() -> None:
    assert owners.reference(_CONFIG, controller=False) == {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        "name": "c",
        "uid": "1",
    }


def test_a_reference_to_the_same_object_in_another_version_is_replaced() -> None:
    old = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "name": "c", "uid": "0"}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "5"}
    new = owners.reference(_CONFIG)
    assert owners.ensure([old, other], new) == [new, other]
    assert owners.ensure(None, new) == [new]
    assert owners.remove([new, other], old) == [other]


def test_there_is_one_controller() -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "5", "controller": True}
    with pytest.raises(OperatorError, match="belongs to the ConfigMap x already"):
        owners.ensure_controller([theirs], owners.reference(_CONFIG))
    assert owners.ensure_controller([], owners.reference(_CONFIG)) == [owners.reference(_CONFIG)]


def test_who_controls_an_object_is_known_by_uid() -> None:
    secret: dict[str, Any] = {"metadata": {"name": "s", "ownerReferences": [owners.reference(_CONFIG)]}}
    assert owners.is_controlled_by(secret, _CONFIG)
    assert not owners.is_controlled_by(secret, {"metadata": {"uid": "2"}})
    assert not owners.is_controlled_by({"metadata": {}}, _CONFIG)
    assert owners.find(secret, "bootstrap.cluster.x-k8s.io", "KubeadmConfig") == owners.reference(_CONFIG)
    assert owners.find(secret, "", "KubeadmConfig") is None


def test_finalizers_come_and_go_once() -> None:
    manifest: dict[str, Any] = {"metadata": {"name": "x"}}
    assert finalizers.add(manifest, "f")
    assert not finalizers.add(manifest, "f")
    assert finalizers.has(manifest, "f")
    assert finalizers.remove(manifest, "f")
    assert not finalizers.remove(manifest, "f")
    assert manifest["metadata"]["finalizers"] == []


def test_a_deleted_object_takes_no_new_finalizer() -> None:
    manifest: dict[str, Any] = {"metadata": {"name": "x", "deletionTimestamp": "2026-05-01T00:00:00Z", "finalizers": ["f"]}}
    assert not finalizers.add(manifest, "g")
    assert finalizers.is_deleted(manifest)
    assert manifest["metadata"]["finalizers"] == ["f"]
