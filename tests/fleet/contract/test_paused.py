"""Pause by a Cluster or by an annotation; the words are those of Cluster API's util/paused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slipway.fleet.contract import conditions
from slipway.fleet.contract.facts import ClusterFacts, paused_by
from slipway.fleet.contract.status import Status

_CLUSTER = ClusterFacts("n", "k")
_PAUSED_CLUSTER = _CLUSTER._replace(paused=True)


@pytest.mark.parametrize(
    ("cluster", "annotated", "status", "reason", "message"),
    [
        (None, False, "False", "NotPaused", ""),
        (_CLUSTER, False, "False", "NotPaused", ""),
        (_PAUSED_CLUSTER, False, "True", "Paused", "Cluster spec.paused is set to true"),
        (None, True, "True", "Paused", "KubeadmConfig has the cluster.x-k8s.io/paused annotation"),
        (
            _PAUSED_CLUSTER,
            True,
            "True",
            "Paused",
            "Cluster spec.paused is set to true, KubeadmConfig has the cluster.x-k8s.io/paused annotation",
        ),
    ],
)
def test_pause_in_the_words_of_cluster_api(cluster: ClusterFacts | None, annotated: bool, status: str, reason: str, message: str) -> None:
    annotations = {"cluster.x-k8s.io/paused": ""} if annotated else {}
    manifest: dict[str, Any] = {"kind": "KubeadmConfig", "metadata": {"name": "c", "generation": 7, "annotations": annotations}}
    causes = paused_by(cluster, manifest)
    assert bool(causes) is (status == "True")
    Status(manifest, datetime(2026, 5, 1, tzinfo=UTC)).paused(causes)
    found = conditions.find(conditions.of(manifest), "Paused")
    assert found is not None
    assert (found.status, found.reason, found.message, found.observed_generation) == (status, reason, message, 7)
