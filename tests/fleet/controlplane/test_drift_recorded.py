"""Machines are found to fit their control plane, and their objects are made, just as Cluster API's own code does."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from fleet.controlplane.recordings import names, rows

from slipway.api.cluster.bootstrap.config import KubeadmConfig
from slipway.api.cluster.controlplane.kubeadmcontrolplane import KubeadmControlPlane
from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.meta import decode
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.controlplane import desired
from slipway.fleet.controlplane.drift import drift

pytestmark = pytest.mark.recorded

DRIFTS = rows("drift")
DESIRED = rows("desired")

# Upstream reads the template whenever it compares, and stops where it is gone; only its name is compared, and that is known.
TEMPLATE_GONE = "a template that is gone"


@pytest.mark.parametrize("row", DRIFTS, ids=names(DRIFTS))
def test_finds_what_upstream_finds(row: dict[str, Any]) -> None:
    case, answer = row["case"], row["answer"]
    config = decode(case["config"], KubeadmConfig) if case.get("config") else None
    found = drift(
        decode(case["controlPlane"], KubeadmControlPlane),
        decode(case["machine"], Machine),
        config,
        case.get("infra"),
        datetime.fromisoformat(case["now"]),
    )
    if row["name"] == TEMPLATE_GONE:
        assert answer == {"error": True}
        assert found.up_to_date
        return
    assert {"fits": found.up_to_date, "messages": list(found.messages) or None, "logged": list(found.log)} == answer


@pytest.mark.parametrize("row", DESIRED, ids=names(DESIRED))
def test_makes_what_upstream_makes(row: dict[str, Any]) -> None:
    case, answer = row["case"], row["answer"]
    plane, cluster = decode(case["controlPlane"], KubeadmControlPlane), case["cluster"]["metadata"]["name"]
    if "error" in answer:
        with pytest.raises(OperatorError):
            desired.config(plane, cluster, name=desired.machine_name(plane, cluster), join=case["join"])
        return
    existing = decode(case["machine"], Machine) if case.get("machine") else None
    made = desired.machine(plane, cluster, name="name", failure_domain=case.get("domain", ""), existing=existing)
    assert made == _as_sent(answer["machine"], None if existing else "name")
    assert desired.config(plane, cluster, name="name", join=case["join"]) == {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        **_as_sent(answer["config"], "name"),
    }
    if "infra" in answer:
        assert desired.infrastructure(plane, case["template"], cluster, name="name") == answer["infra"]


def _as_sent(made: dict[str, Any], name: str | None) -> dict[str, Any]:
    """Without what the client leaves out or the server fills in, and with our name where upstream's is random."""
    metadata = {key: value for key, value in made["metadata"].items() if key not in ("creationTimestamp", "uid")}
    if name is not None:
        metadata["name"] = name
    kept = {key: value for key, value in made.items() if key != "status" and value != {}}
    typed = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine"} if "clusterName" in made.get("spec", {}) else {}
    return {**typed, **kept, "metadata": metadata}
