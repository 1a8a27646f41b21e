"""What the contract says of every object that a Cluster's controlPlaneRef leads to, KubeadmControlPlane's included.

To be read, never to be written back: a control plane has more fields than these.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from slipway.api.cluster.meta import Condition, StatusVersion, Type


class ControlPlaneSpec(Type):
    version: str = ""
    replicas: int | None = None


class ControlPlaneInitializationStatus(Type):
    control_plane_initialized: bool | None = None


class ControlPlaneStatus(Type):
    conditions: list[Condition] = field(default_factory=list)
    initialization: ControlPlaneInitializationStatus = field(default_factory=ControlPlaneInitializationStatus)
    version: str = ""
    versions: list[StatusVersion] = field(default_factory=list)
    replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    up_to_date_replicas: int | None = None


class ControlPlane(Type):
    """A control plane of any provider."""

    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    spec: ControlPlaneSpec = field(default_factory=ControlPlaneSpec)
    status: ControlPlaneStatus = field(default_factory=ControlPlaneStatus)
