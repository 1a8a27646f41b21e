"""The data Secret as a value; writing it is in test_reconciler.py."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.bootstrap.data import secret as datasecret
from slipway.fleet.bootstrap.data.secret import Rendering

CONFIG = {"metadata": {"name": "w", "namespace": "ns", "uid": "u1"}}
OURS = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "name": "w", "uid": "u1", "controller": True}


def secret(*references: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "w", "namespace": "ns", "resourceVersion": "7", "ownerReferences": list(references)}}


def test_a_secret_that_is_ours_needs_nothing() -> None:
    assert datasecret.owner_patch(secret(OURS), CONFIG) is None


@pytest.mark.parametrize(
    "before",
    [
        [],
        [{**OURS, "uid": "before-the-move"}],
        [{**OURS, "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1"}],
        [{name: value for name, value in OURS.items() if name != "controller"}],
    ],
)
def test_a_secret_becomes_ours_with_the_version_that_was_read(before: list[dict[str, Any]]) -> None:
    assert datasecret.owner_patch(secret(*before), CONFIG) == {"metadata": {"resourceVersion": "7", "ownerReferences": [OURS]}}


def test_other_owners_stay() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u2"}
    patch = datasecret.owner_patch(secret(other), CONFIG)
    assert patch is not None
    assert patch["metadata"]["ownerReferences"] == [other, OURS]


def test_a_secret_of_another_controller_is_not_taken() -> None:
    with pytest.raises(OperatorError, match="it is already controlled by MachinePool p"):
        datasecret.owner_patch(secret({"apiVersion": "v1", "kind": "MachinePool", "name": "p", "uid": "u", "controller": True}), CONFIG)


def test_a_secret_tells_what_its_data_was_rendered_with() -> None:
    rendering = Rendering("v1.35.0", "abcdef")
    made = datasecret.data_secret(CONFIG, "c", b"data", "cloud-config", rendering)
    assert datasecret.rendering_of(made) == rendering
    assert "annotations" not in datasecret.data_secret(CONFIG, "c", b"data", "cloud-config", Rendering())["metadata"]
    assert datasecret.rendering_of(secret()) == Rendering()
