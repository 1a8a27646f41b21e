"""What providers read of a MachinePool of ``cluster.x-k8s.io/v1beta2``.  Not the whole of the kind: its CRD is upstream's.

A controller that writes a MachinePool changes the manifest that it has read, and never writes one of these types back.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from slipway.api.cluster.core.machine import MachineInitializationStatus, MachineTemplateSpec
from slipway.api.cluster.meta import Condition, ObjectReference, Type


class MachinePoolSpec(Type):
    cluster_name: str = ""
    replicas: int | None = None
    template: MachineTemplateSpec = field(default_factory=MachineTemplateSpec)
    provider_id_list: list[str] = field(default_factory=list, name="providerIDList")
    failure_domains: list[str] = field(default_factory=list)


class MachinePoolStatus(Type):
    conditions: list[Condition] = field(default_factory=list)
    initialization: MachineInitializationStatus = field(default_factory=MachineInitializationStatus)
    node_refs: list[ObjectReference] = field(default_factory=list)
    replicas: int | None = None
    ready_replicas: int | None = None
    phase: str = ""
    observed_generation: int = 0


class MachinePool(Type):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    spec: MachinePoolSpec = field(default_factory=MachinePoolSpec)
    status: MachinePoolStatus = field(default_factory=MachinePoolStatus)
