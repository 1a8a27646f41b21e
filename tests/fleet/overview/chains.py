"""A small cluster as its controllers write it, and one machine of it that is on its way: what explanations are made from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from slipway.fleet.overview.objects import Objects
from slipway.fleet.overview.problems import Ref

Manifest = dict[str, Any]
SPACE, NAME = "cpaas-system", "prod"
OLD, NEW = "v1.34.10", "v1.35.4"
PLANE, WORKERS = "prod-control-plane", "prod-workers"
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
LABEL = "cluster.x-k8s.io/"


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(type_: str, status: str = "True", reason: str = "", message: str = "", seconds: float = 60) -> Manifest:
    return {"type": type_, "status": status, "reason": reason or type_, "message": message, "lastTransitionTime": ago(seconds)}


def made(kind: str, name: str, spec: Manifest, *conditions: Manifest, status: Manifest | None = None, **metadata: Any) -> Manifest:
    known = {"name": name, "namespace": SPACE, "creationTimestamp": ago(3600), "generation": 1, **metadata}
    told = {"observedGeneration": 1, **(status or {}), "conditions": list(conditions)}
    return {"kind": kind, "metadata": known, "spec": spec, "status": told}


def cluster(*conditions: Manifest, infrastructure: str = "BaremetalCluster", paused: bool = False, **metadata: Any) -> Manifest:
    spec = {
        "controlPlaneRef": {"kind": "KubeadmControlPlane", "name": PLANE},
        "infrastructureRef": {"kind": infrastructure, "name": NAME},
        **({"paused": True} if paused else {}),
    }
    return made("Cluster", NAME, spec, *conditions, status={"initialization": {"controlPlaneInitialized": True}}, **metadata)


def plane(*conditions: Manifest, version: str = OLD, replicas: int = 3, **metadata: Any) -> Manifest:
    labels = {f"{LABEL}cluster-name": NAME}
    return made("KubeadmControlPlane", PLANE, {"version": version, "replicas": replicas}, *conditions, labels=labels, **metadata)


def workers(*conditions: Manifest, version: str = OLD, replicas: int = 2, name: str = WORKERS, **metadata: Any) -> Manifest:
    strategy = metadata.pop("strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
    spec = {
        "clusterName": NAME,
        "replicas": replicas,
        "rollout": {"strategy": strategy},
        "template": {"spec": {"version": version}},
    }
    return made("MachineDeployment", name, spec, *conditions, **metadata)


def machine(name: str, *conditions: Manifest, version: str = OLD, of: str = WORKERS, node: str = "node", **metadata: Any) -> Manifest:
    """A Node that is well, where no conditions are given; ``of`` is empty for a control plane's."""
    group = {f"{LABEL}deployment-name": of} if of else {f"{LABEL}control-plane": ""}
    spec = {"clusterName": NAME, "version": version, "infrastructureRef": {"kind": "BaremetalMachine", "name": name}}
    well = [condition(each) for each in ("Ready", "UpToDate", "BootstrapConfigReady", "InfrastructureReady", "NodeHealthy")]
    told = {each["type"]: each for each in [*well, *conditions]}
    status = {"nodeRef": {"name": node}} if node else {}
    labels = {f"{LABEL}cluster-name": NAME, **group}
    return made("Machine", name, spec, *told.values(), status=status, labels=labels, **metadata)


def baremetal_machine(
    name: str, *conditions: Manifest, host: str = "", phase: str = "Running", of: str = WORKERS, **metadata: Any
) -> Manifest:
    labels = {f"{LABEL}cluster-name": NAME, **({} if of else {f"{LABEL}control-plane": ""})}
    status = {"phase": phase, **({"machineInventoryRef": {"name": host}} if host else {})}
    owner = [{"kind": "Machine", "name": name}]
    spec = {"machineInventoryPoolRef": {"name": "pool"}}
    return made("BaremetalMachine", name, spec, *conditions, status=status, labels=labels, ownerReferences=owner, **metadata)


def host(name: str, *, state: str = "Allocated", owner: str = "", annotations: Manifest | None = None, **status: Any) -> Manifest:
    known = {"baremetal.alauda.io/pool": "pool", "baremetal.alauda.io/allocation-state": state, **(annotations or {})}
    if owner:
        known |= {f"baremetal.alauda.io/owner-{each}": owner for each in ("machine", "baremetalmachine")}
        known["baremetal.alauda.io/owner-cluster"] = NAME
    return made("MachineInventory", name, {}, condition("Ready"), status=status, annotations=known)


def pool(*conditions: Manifest, **counters: int) -> Manifest:
    return made("MachineInventoryPool", "pool", {"clusterName": NAME}, *conditions, status=counters)


def well() -> Objects:
    """Three control planes and two workers, each on a host of its own, and nothing to be done."""
    planes, others = [f"{PLANE}-{each}" for each in "abc"], [f"{WORKERS}-{each}" for each in "de"]
    return Objects(
        clusters=[cluster()],
        control_planes=[plane()],
        machine_deployments=[workers()],
        machines=[
            *(machine(each, of="", node=f"node-{each[-1]}") for each in planes),
            *(machine(each, node=f"node-{each[-1]}") for each in others),
        ],
        baremetal_clusters=[
            made("BaremetalCluster", NAME, {}, condition("EndpointReady"), condition("VIPReady"), condition("RolloutGuarded"))
        ],
        baremetal_machines=[
            *(baremetal_machine(each, host=f"host-{each[-1]}", of="") for each in planes),
            *(baremetal_machine(each, host=f"host-{each[-1]}") for each in others),
        ],
        pools=[pool(condition("MembersValid"), condition("Ready"), total=5, allocated=5)],
        inventories=[host(f"host-{each[-1]}", owner=each) for each in (*planes, *others)],
    )


def with_worker(*conditions: Manifest, below: Manifest | None = None, on: Manifest | None = None, **of_machine: Any) -> Objects:
    """The worker d is not well: ``conditions`` are its Machine's, ``below`` is its BaremetalMachine and ``on`` its host."""
    objects = well()
    told = [condition("Ready", "False", "NotReady"), *conditions]
    return objects._replace(
        machines=[*objects.machines[:3], machine(f"{WORKERS}-d", *told, **of_machine), objects.machines[4]],
        baremetal_machines=[*objects.baremetal_machines[:3], below or objects.baremetal_machines[3], objects.baremetal_machines[4]],
        inventories=[*objects.inventories[:3], on or objects.inventories[3], objects.inventories[4]],
    )


def ref(kind: str, name: str) -> Ref:
    return Ref(kind, SPACE, name)
