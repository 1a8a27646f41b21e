"""Upgrades over several minor versions, one minor at a time.

Kubernetes upgrades a control plane by one minor version only.  With ``slipway.io/multi-step-upgrade: "true"`` a KubeadmControlPlane may be
given a version further away: it is kept in ``slipway.io/upgrade-target``, and spec.version goes there step by step.  A step is made when
the whole control plane is at the one before and well, so whoever is killed and started again goes on from where spec.version is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import KNOWN_PATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.fleet.controlplane.decisions.machines import ControlPlane

CONDITION = "slipway.io/MultiStepUpgrade"
"""Whether an upgrade over several minor versions is on its way, where it is, and what its next step waits for."""

# A kubelet may be so many minor versions older than the API server (Kubernetes' version skew policy).
_KUBELET_SKEW = 3


def next_version(current: str, target: str) -> str:
    """The version to go to next; the target itself where it is at most one minor away.

    On the way it is the newest patch of the minor that is known, as the first ones have the most mistakes.
    """
    try:
        at, to = Version.tolerant(current), Version.tolerant(target)
    except ValueError as error:
        raise OperatorError(f"the way from {current} to {target} cannot be found: {error}") from None
    if to < at:
        raise OperatorError(f"the version {target} to upgrade to is older than {current}: a control plane cannot be downgraded")
    if to.major != at.major:
        raise OperatorError(f"there is no way from the version {current} to {target} by one minor version after the other")
    if to.minor - at.minor <= 1:
        return target
    minor = at.minor + 1
    return f"v{at.major}.{minor}.{KNOWN_PATCHES.get(minor, 0)}"


def wait_for(plane: ControlPlane, following: str, kubelets: Iterable[str]) -> str:
    """What the next step waits for; empty where it may be made.

    ``kubelets`` are the versions of all machines of the cluster, workers too: none may fall too far behind.
    """
    behind = [machine for machine in plane.machines if machine.version != plane.version or not machine.up_to_date]
    if behind or len(plane.machines) != plane.replicas:
        done = len(plane.machines) - len(behind)
        return f"{done} of {plane.replicas} Machines to be at {plane.version}"
    ill = [
        machine.name for machine in plane.machines if machine.deleting or not machine.node or not all(map(machine.is_well, plane.checks))
    ]
    if ill:
        return f"the Machines {', '.join(ill)} to be healthy at {plane.version}"
    limit = Version.tolerant(following).minor - _KUBELET_SKEW
    old = sorted({version for version in kubelets if _minor(version) < limit})
    if old:
        return f"Machines at {', '.join(old)} to be upgraded: no kubelet may be more than {_KUBELET_SKEW} minor versions behind {following}"
    return ""


def _minor(version: str) -> float:
    try:
        return Version.tolerant(version).minor
    except ValueError:
        # What is no version cannot be waited for.
        return math.inf
