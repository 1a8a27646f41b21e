"""What the cases of Cluster API's Machine controller are made of.

A time is written as {{seconds from now}}, so that a row means the same whenever it is asked.
"""

from __future__ import annotations

import json
from typing import Any

from slipway.api.machinery.patches.jsonpatch import merge

Manifest = dict[str, Any]
Row = tuple[str, Manifest]

CORE = "cluster.x-k8s.io/v1beta2"
INFRA = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "TestMachine", "metadata": {"name": "m", "namespace": "default"}}
CONFIG = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1", "kind": "TestConfig", "metadata": {"name": "m", "namespace": "default"}}
CONTROL_PLANE = {
    "apiVersion": "controlplane.cluster.x-k8s.io/v1",
    "kind": "TestControlPlane",
    "metadata": {"name": "cp", "namespace": "default"},
}
CONTROL_PLANE_REF = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "TestControlPlane", "name": "cp"}
MACHINE = {
    "apiVersion": CORE,
    "kind": "Machine",
    "metadata": {"name": "m", "namespace": "default", "uid": "m-uid", "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
    "spec": {
        "clusterName": "c",
        "version": "v1.34.0",
        "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "TestConfig", "name": "m"}},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachine", "name": "m"},
    },
}
CLUSTER = {
    "apiVersion": CORE,
    "kind": "Cluster",
    "metadata": {"name": "c", "namespace": "default", "uid": "c-uid", "labels": {"stage": "test"}},
    "spec": {},
    "status": {
        "initialization": {"infrastructureProvisioned": True},
        "conditions": [
            {
                "type": "ControlPlaneInitialized",
                "status": "True",
                "reason": "Initialized",
                "message": "",
                "lastTransitionTime": "{{-3600}}",
            }
        ],
    },
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "spec": {"providerID": "test://m"},
    "status": {"nodeInfo": {"kubeletVersion": "v1.34.0"}},
}
DELETED = {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["machine.cluster.x-k8s.io"]}}
PROVISIONED = {
    "spec": {"providerID": "test://m"},
    "status": {"initialization": {"infrastructureProvisioned": True, "bootstrapDataSecretCreated": True}},
}
RUNNING = merge(dict(PROVISIONED), {"status": {"nodeRef": {"name": "n"}}})


def over(base: Manifest, *changes: Manifest) -> Manifest:
    made: Manifest = json.loads(json.dumps(base))
    for change in changes:
        made = merge(made, json.loads(json.dumps(change)))
    return made


def condition(kind: str, status: str, reason: str = "R", message: str = "", at: str = "{{-600}}") -> Manifest:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def with_conditions(*conditions: Manifest) -> Manifest:
    return {"status": {"conditions": list(conditions)}}


def node_with(ready: str = "True", pressure: str = "False", message: str = "") -> Manifest:
    kinds = (("Ready", ready), ("MemoryPressure", pressure), ("DiskPressure", pressure), ("PIDPressure", pressure))
    return over(NODE, with_conditions(*(condition(kind, status, "R", message) for kind, status in kinds)))


WELL = node_with()
