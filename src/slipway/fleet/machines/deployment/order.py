"""Who is rolled out first: beyond Cluster API, which orders nothing outside of a ClusterClass.

*The control plane before workers*: a MachineDeployment whose new version is above its control plane's waits for that, unless the annotation
``machineset.cluster.x-k8s.io/skip-preflight-checks`` names ControlPlaneVersionSkew or All.

*Workers in an order*: ``slipway.io/rollout-order`` is an integer on MachineDeployments of one Cluster.  One waits until all with a lower
number have no machine of an old template left and as many available as they need.  One without the annotation waits for nobody, and nobody
for it; nor for one with the strategy OnDelete, whose rollout ends when a person wants.

What waits keeps its machines and follows changes of its number of replicas.  The first machines of a MachineDeployment wait for nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.fleet.machines.machineset.preflight import ControlPlane

ORDER_ANNOTATION = "slipway.io/rollout-order"


class Sibling(NamedTuple):
    """Another MachineDeployment of the Cluster."""

    name: str
    order: int
    finished: bool


def position(annotations: Mapping[str, str]) -> int | None:
    """The number of a MachineDeployment in the order; None where it takes no part in it."""
    text = annotations.get(ORDER_ANNOTATION)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise OperatorError(f'the annotation {ORDER_ANNOTATION} is "{text}" and must be an integer') from None


def earlier(own: int | None, siblings: Iterable[Sibling]) -> list[str]:
    """What a MachineDeployment waits for among the others, a sentence each."""
    if own is None:
        return []
    return [
        f"Waiting for MachineDeployment {one.name} to be rolled out first ({ORDER_ANNOTATION} {one.order} is before {own})"
        for one in sorted(siblings, key=lambda one: (one.order, one.name))
        if one.order < own and not one.finished
    ]


def control_plane_first(control_plane: ControlPlane | None, version: str, skip: frozenset[str]) -> list[str]:
    """What a MachineDeployment waits for in its control plane."""
    if control_plane is None or not version or skip & {names.PREFLIGHT_ALL, names.PREFLIGHT_CONTROL_PLANE_VERSION_SKEW}:
        return []
    try:
        behind = Version.tolerant(control_plane.version) < Version.tolerant(version)
    except ValueError:
        # The checks before a Machine is made say so.
        return []
    return [f"Waiting for {control_plane} to have version {version} first, its spec.version is {control_plane.version}"] if behind else []
