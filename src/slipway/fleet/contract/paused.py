"""Pause: a Cluster, or one object by its annotation, is left alone, and the Paused condition says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.contract import conditions
from slipway.fleet.contract.conditions import FALSE, TRUE, Condition

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest

ANNOTATION = "cluster.x-k8s.io/paused"
PAUSED = "Paused"


def is_paused(cluster: Manifest | None, manifest: Manifest) -> bool:
    return bool(_causes(cluster, manifest))


def condition(cluster: Manifest | None, manifest: Manifest) -> Condition:
    """The Paused condition, in the words of Cluster API's providers."""
    causes = _causes(cluster, manifest)
    return Condition(
        type=PAUSED,
        status=TRUE if causes else FALSE,
        reason="Paused" if causes else "NotPaused",
        message=", ".join(causes),
        observed_generation=manifest["metadata"].get("generation", 0),
    )


def set_paused(cluster: Manifest | None, manifest: Manifest, now: datetime) -> bool:
    """Set the condition; whether the object is paused."""
    wanted = condition(cluster, manifest)
    status = manifest.setdefault("status", {})
    status["conditions"] = conditions.set_condition(conditions.of(manifest), wanted, now)
    return wanted.status == TRUE


def _causes(cluster: Manifest | None, manifest: Manifest) -> list[str]:
    causes = []
    if cluster is not None and (cluster.get("spec") or {}).get("paused"):
        causes.append("Cluster spec.paused is set to true")
    if ANNOTATION in (manifest["metadata"].get("annotations") or {}):
        causes.append(f"{manifest.get('kind') or 'Object'} has the cluster.x-k8s.io/paused annotation")
    return causes
