"""What a KubeadmControlPlane counts: its Machines, those that are ready, available and up to date, and their versions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.machinery.version import Version
from slipway.fleet.contract.conditions import TRUE
from slipway.fleet.controlplane.status.conditions import created, says

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.core.machine import Machine
    from slipway.api.machinery.objects import Manifest


def selector(cluster: str) -> str:
    """Which Machines are of the control plane, for ``/scale``."""
    return f"{names.CLUSTER_NAME_LABEL}={cluster},{names.CONTROL_PLANE_LABEL}"


def counts(machines: Sequence[Machine]) -> dict[str, int]:
    return {
        "replicas": len(machines),
        "readyReplicas": sum(says(machine, names.READY_CONDITION, TRUE) for machine in machines),
        "availableReplicas": sum(says(machine, names.AVAILABLE_CONDITION, TRUE) for machine in machines),
        "upToDateReplicas": sum(says(machine, names.UP_TO_DATE_CONDITION, TRUE) for machine in machines),
    }


def versions(machines: Sequence[Machine]) -> list[Manifest]:
    """How many machines are at which version, the oldest version first; a kubelet that runs tells more than the spec."""
    known = Counter(filter(None, map(_version, sorted(machines, key=lambda machine: (created(machine), machine.metadata["name"])))))
    return [{"version": version, "replicas": count} for version, count in sorted(known.items(), key=lambda item: _order(item[0]))]


def _version(machine: Machine) -> str:
    info = machine.status.node_info
    return (info.kubelet_version if info is not None else "") or machine.spec.version


def _order(text: str) -> tuple[bool, Version, str]:
    try:
        return False, Version.tolerant(text), text
    except ValueError:
        # What is no version comes last.
        return True, Version(0, 0), text
