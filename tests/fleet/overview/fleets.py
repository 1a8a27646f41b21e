"""Objects of small fleets, as Cluster API's and the bare-metal provider's controllers write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from slipway.fleet.overview.objects import Objects

Manifest = dict[str, Any]
SPACE, NAME = "fleet", "prod"
OLD, NEW = "v1.34.10", "v1.35.4"
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def at(minutes: float) -> str:
    """So many minutes ago, as the API has it."""
    return (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(type_: str, status: str = "True", reason: str = "Reason", message: str = "", minutes: float = 30) -> Manifest:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(minutes)}


def made(kind: str, name: str, spec: Manifest, status: Manifest, minutes: float = 60, **metadata: Any) -> Manifest:
    known = {"name": name, "namespace": SPACE, "creationTimestamp": at(minutes), **metadata}
    return {"kind": kind, "metadata": known, "spec": spec, "status": status}


def cluster(*conditions: Manifest, infrastructure: str = "BaremetalCluster", plane: str = "KubeadmControlPlane", **status: Any) -> Manifest:
    spec = {
        "controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443},
        "controlPlaneRef": {"kind": plane, "name": "prod-cp"},
        "infrastructureRef": {"kind": infrastructure, "name": NAME},
    }
    found = conditions or (condition("Available"),)
    return made("Cluster", NAME, spec, {"phase": "Provisioned", "conditions": list(found), **status})


def plane(*conditions: Manifest, version: str = OLD, replicas: int = 3, **counters: int) -> Manifest:
    status = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "upToDateReplicas": replicas, **counters}
    return made("KubeadmControlPlane", "prod-cp", {"version": version, "replicas": replicas}, {**status, "conditions": list(conditions)})


def workers(*conditions: Manifest, version: str = OLD, replicas: int = 2, name: str = "prod-w", **counters: int) -> Manifest:
    status = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "upToDateReplicas": replicas, **counters}
    spec = {"clusterName": NAME, "replicas": replicas, "template": {"spec": {"version": version}}}
    return made("MachineDeployment", name, spec, {**status, "conditions": list(conditions)})


def machine(
    name: str,
    *conditions: Manifest,
    version: str = OLD,
    of: str = "",
    node: str = "",
    phase: str = "Running",
    minutes: float = 60,
    infrastructure: str = "BaremetalMachine",
    deleted: float | None = None,
) -> Manifest:
    """``of`` is its MachineDeployment; a control plane without one."""
    group = (
        {"cluster.x-k8s.io/deployment-name": of}
        if of
        else {"cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/control-plane-name": "prod-cp"}
    )
    spec = {"clusterName": NAME, "version": version, "infrastructureRef": {"kind": infrastructure, "name": name}}
    status: Manifest = {"phase": phase, "conditions": list(conditions)}
    if node:
        status["nodeRef"] = {"name": node}
    more = {"deletionTimestamp": at(deleted)} if deleted is not None else {}
    return made("Machine", name, spec, status, minutes, labels=group, **more)


def host_machine(name: str, host: str, *conditions: Manifest, phase: str = "Running", **status: Any) -> Manifest:
    """A BaremetalMachine; without conditions, of a Node that came half an hour ago."""
    found = conditions or (condition("InventoryAllocated"), condition("PlanApplied"), condition("NodeJoined"))
    told = {"phase": phase, "machineInventoryRef": {"name": host}, "conditions": list(found), **status}
    owner = [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": name, "controller": True}]
    return made("BaremetalMachine", name, {}, told if host else {**told, "machineInventoryRef": None}, ownerReferences=owner)


def inventory(
    name: str, *, state: str = "Allocated", machine: str = "", pool: str = "pool", lives: list[Manifest] | None = None, **status: Any
) -> Manifest:
    annotations = {"baremetal.alauda.io/pool": pool, "baremetal.alauda.io/allocation-state": state}
    if machine:
        annotations |= {"baremetal.alauda.io/owner-machine": machine, "baremetal.alauda.io/owner-cluster": NAME}
    if lives is not None:
        annotations["slipway.io/host-cycles"] = json.dumps(lives)
    ready = condition("Ready", reason="PlanSuccessfullyApplied", minutes=50)
    return made("MachineInventory", name, {}, {"conditions": [ready], **status}, annotations=annotations, labels={"rack": "3"})


def pool(*conditions: Manifest, **counters: int) -> Manifest:
    return made("MachineInventoryPool", "pool", {"clusterName": NAME}, {**counters, "conditions": list(conditions)})


def at_rest() -> Objects:
    """Three control planes and two workers on five hosts, and a host that is free."""
    found = {f"prod-cp-{number}": f"host-{number}" for number in range(3)} | {f"prod-w-{number}": f"host-{number}" for number in (3, 4)}
    names = list(found)
    return Objects(
        clusters=[cluster()],
        control_planes=[plane(condition("RollingOut", "False"))],
        machine_deployments=[workers(condition("RollingOut", "False"))],
        machines=[machine(name, node=found[name], of="" if "-cp-" in name else "prod-w") for name in names],
        baremetal_clusters=[made("BaremetalCluster", NAME, {}, {})],
        baremetal_machines=[host_machine(name, host) for name, host in found.items()],
        pools=[pool(total=6, available=1, allocated=5)],
        inventories=[*(inventory(host, machine=name) for name, host in found.items()), inventory("host-5", state="Available")],
    )


def in_a_rollout() -> Objects:
    """The control plane goes to the new version since ten minutes: one is done, the next is on its way, one is old."""
    objects = at_rest()
    new = condition("NodeJoined", minutes=6)
    planes = [
        machine("prod-cp-0", node="host-0"),
        machine("prod-cp-a", version=NEW, node="host-1", minutes=9),
        machine("prod-cp-b", version=NEW, phase="Provisioning", minutes=3),
    ]
    machines = [
        host_machine("prod-cp-0", "host-0"),
        host_machine("prod-cp-a", "host-1", condition("InventoryAllocated", minutes=9), condition("PlanApplied", minutes=7), new),
        host_machine(
            "prod-cp-b",
            "host-2",
            condition("InventoryAllocated", minutes=3),
            condition("PlanApplied", "False", "PlanRunning"),
            phase="Reprovisioning",
            planWrittenTime=at(2),
        ),
    ]
    hosts = {"host-1": "prod-cp-a", "host-2": "prod-cp-b"}
    return objects._replace(
        control_planes=[plane(condition("RollingOut", minutes=10), version=NEW, readyReplicas=2, availableReplicas=2, upToDateReplicas=2)],
        machines=[*planes, *objects.machines[3:]],
        baremetal_machines=[*machines, *objects.baremetal_machines[3:]],
        inventories=[
            inventory(name, machine=hosts[name], state="Reprovisioning" if name == "host-2" else "Allocated") if name in hosts else each
            for each in objects.inventories
            for name in [each["metadata"]["name"]]
        ],
    )
