"""How references name kinds; following them is in tests/fleet/bootstrap/test_reconciler.py."""

from __future__ import annotations

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.references import contract_version, crd_name


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"cluster.x-k8s.io/v1beta2": "v1beta2"}, "v1beta2"),
        ({"cluster.x-k8s.io/v1beta1": "v1beta1"}, "v1beta1"),
        ({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}, "v1beta2"),
        ({"cluster.x-k8s.io/v1beta2": "v1alpha1_v1beta1_v1_v2alpha1"}, "v1"),
        ({"cluster.x-k8s.io/v1beta2": "v1beta2_v1beta10"}, "v1beta10"),
    ],
)
def test_the_contract_label_names_the_api_version(labels: dict[str, str], expected: str) -> None:
    assert contract_version(labels, "crd") == expected


@pytest.mark.parametrize("labels", [{}, {"cluster.x-k8s.io/v1beta2": ""}, {"cluster.x-k8s.io/v1alpha4": "v1alpha4"}])
def test_a_crd_without_the_contract_label_is_an_error(labels: dict[str, str]) -> None:
    with pytest.raises(OperatorError, match="says by no label"):
        contract_version(labels, "crd")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("KubeadmControlPlane", "kubeadmcontrolplanes.g"),
        ("AProxy", "aproxies.g"),
        ("HostedBus", "hostedbuses.g"),
        ("Gateway", "gateways.g"),
        ("Mesh", "meshes.g"),
    ],
)
def test_crds_are_named_by_the_plural_of_their_kind(kind: str, expected: str) -> None:
    assert crd_name("g", kind) == expected
