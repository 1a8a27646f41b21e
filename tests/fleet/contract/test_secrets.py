"""Whose a Secret is, as values; writing them is in tests/fleet/bootstrap/test_reconciler.py."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.fleet.contract import secrets
from slipway.fleet.contract.secrets import TakenError

KEYS = ("value", "format")
OURS = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "name": "w", "uid": "u1", "controller": True}
TYPE = "cluster.x-k8s.io/secret"


def secret(*references: dict[str, Any], kind: str = TYPE, keys: tuple[str, ...] = KEYS) -> dict[str, Any]:
    metadata = {"name": "w", "namespace": "ns", "resourceVersion": "7", "ownerReferences": list(references)}
    return {"metadata": metadata, "type": kind, "data": dict.fromkeys(keys, "")}


def test_a_secret_that_is_ours_needs_nothing() -> None:
    assert secrets.owner_patch(secret(OURS), OURS, KEYS) is None


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
    assert secrets.owner_patch(secret(*before), OURS, KEYS) == {"metadata": {"resourceVersion": "7", "ownerReferences": [OURS]}}


def test_other_owners_stay() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u2"}
    patch = secrets.owner_patch(secret(other), OURS, KEYS)
    assert patch is not None
    assert patch["metadata"]["ownerReferences"] == [other, OURS]


def test_a_secret_of_another_controller_is_not_taken() -> None:
    with pytest.raises(TakenError, match="it is already controlled by MachinePool p"):
        secrets.owner_patch(secret({"apiVersion": "v1", "kind": "MachinePool", "name": "p", "uid": "u", "controller": True}), OURS, KEYS)


def test_a_secret_of_another_kubeadmconfig_is_not_taken() -> None:
    with pytest.raises(TakenError, match="it is already controlled by KubeadmConfig other"):
        secrets.require_ours(secret({**OURS, "name": "other"}), OURS, KEYS)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [("Opaque", KEYS), ("Opaque", ("password",)), (TYPE, ("value",)), (TYPE, ("tls.crt", "tls.key")), (TYPE, ())],
    ids=["another type", "a user's", "a kubeconfig", "a certificate", "nothing in it"],
)
def test_a_secret_that_nobody_controls_and_that_is_no_data_is_not_taken(kind: str, keys: tuple[str, ...]) -> None:
    with pytest.raises(TakenError, match=f"the Secret ns/w was not made for the KubeadmConfig w .*: it is of type {kind}"):
        secrets.require_ours(secret(kind=kind, keys=keys), OURS, KEYS)


def test_a_secret_that_is_ours_by_its_owner_may_hold_anything() -> None:
    secrets.require_ours(secret({**OURS, "uid": "before-the-move"}, kind="Opaque", keys=()), OURS, KEYS)
