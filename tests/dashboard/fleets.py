"""Fleets as manifests: clusters with their hosts, as the controllers write them, and as many more hosts as a test wants."""

from __future__ import annotations

from typing import Any

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    Kind,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, CONTROL_PLANE_NAME_LABEL

Manifest = dict[str, Any]
MADE = "2026-01-02T03:04:05Z"


def condition(type_: str, status: str, reason: str, message: str = "") -> Manifest:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": MADE}


def named(kind: Kind, namespace: str, name: str, **metadata: Any) -> Manifest:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"namespace": namespace, "name": name, "creationTimestamp": MADE, **metadata},
    }


def host(namespace: str, name: str, *, pool: str = "", cluster: str = "", machine: str = "", state: str = "") -> Manifest:
    annotations = {
        names.POOL_ANNOTATION: pool,
        names.ALLOCATION_STATE_ANNOTATION: state,
        names.OWNER_CLUSTER_ANNOTATION: cluster,
        names.OWNER_MACHINE_ANNOTATION: machine,
    }
    found = named(MACHINE_INVENTORY, namespace, name, annotations={key: value for key, value in annotations.items() if value})
    return {**found, "spec": {}, "status": {"conditions": [condition("Ready", "True", "PlanSuccessfullyApplied")]}}


def pool(namespace: str, name: str, cluster: str, members: list[str]) -> Manifest:
    spec = {"clusterName": cluster, "machineInventories": [{"name": each} for each in members]}
    counts = dict.fromkeys(("allocated", "preparing", "reprovisioning", "unavailable"), 0)
    return {
        **named(MACHINE_INVENTORY_POOL, namespace, name),
        "spec": spec,
        "status": {"total": len(members), "available": len(members), **counts},
    }


def cluster(namespace: str, name: str) -> Manifest:
    plane = {"apiGroup": KUBEADM_CONTROL_PLANE.group, "kind": KUBEADM_CONTROL_PLANE.kind, "name": f"{name}-control-plane"}
    counts = {"desiredReplicas": 3, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "upToDateReplicas": 3}
    return {
        **named(CLUSTER, namespace, name),
        "spec": {"controlPlaneRef": plane},
        "status": {"phase": "Provisioned", "controlPlane": counts, "conditions": [condition("Available", "True", "Available")]},
    }


def machine(namespace: str, name: str, of: str, host_name: str, *, problem: Manifest | None = None) -> tuple[Manifest, Manifest]:
    """A Machine of a control plane and its BaremetalMachine, on a host."""
    labels = {CLUSTER_NAME_LABEL: of, CONTROL_PLANE_LABEL: "", CONTROL_PLANE_NAME_LABEL: f"{of}-control-plane"}
    reference = {"apiGroup": BAREMETAL_MACHINE.group, "kind": BAREMETAL_MACHINE.kind, "name": name}
    made = {
        **named(MACHINE, namespace, name, labels=labels),
        "spec": {"clusterName": of, "version": "v1.35.4", "bootstrap": {"dataSecretName": name}, "infrastructureRef": reference},
        "status": {"phase": "Running", "nodeRef": {"name": host_name}} if problem is None else {"phase": "Provisioning"},
    }
    below = {
        **named(BAREMETAL_MACHINE, namespace, name, labels=labels),
        "spec": {},
        "status": {
            "phase": "Running" if problem is None else "Failed",
            "machineInventoryRef": {"name": host_name},
            "conditions": [problem or condition(names.NODE_JOINED_CONDITION, "True", "NodeJoined")],
        },
    }
    return made, below
