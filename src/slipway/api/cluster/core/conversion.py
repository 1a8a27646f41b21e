"""Cluster, Machine, MachineSet, MachineDeployment, MachineHealthCheck and MachineDrainRule between v1beta1 and v1beta2 (see ``versions``).

What v1beta1 had in its status, conditions of another form and counters of another meaning, v1beta2 keeps under
``status.deprecated.v1beta1``; what v1beta2 has, v1beta1 shows under ``status.v1beta2``.  Neither is made from the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster.core import cluster, machine, machinedeployment, machinedrainrule, machinehealthcheck, machineset
from slipway.api.cluster.core.moved import (
    given,
    health_down,
    health_up,
    status_down,
    status_up,
    strategy_down,
    strategy_up,
    timeouts_down,
    timeouts_up,
)
from slipway.api.cluster.core.topology_conversion import topology_down, topology_up
from slipway.api.cluster.core.v1beta1 import cluster as cluster_v1beta1
from slipway.api.cluster.core.v1beta1 import machine as machine_v1beta1
from slipway.api.cluster.core.v1beta1 import machinedeployment as machinedeployment_v1beta1
from slipway.api.cluster.core.v1beta1 import machinedrainrule as machinedrainrule_v1beta1
from slipway.api.cluster.core.v1beta1 import machinehealthcheck as machinehealthcheck_v1beta1
from slipway.api.cluster.core.v1beta1 import machineset as machineset_v1beta1
from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_DRAIN_RULE, MACHINE_HEALTH_CHECK, MACHINE_SET
from slipway.api.cluster.versions import Conversion, Part, meant, within

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

_SET_COUNTERS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_DEPLOYMENT_COUNTERS = ("updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")


def _unchanged_down(out: Manifest, _: str) -> Manifest:
    return out


def _unchanged_up(out: Manifest, _: Manifest) -> Manifest:
    return out


def _machine_spec_down(out: Manifest, _: str) -> Manifest:
    return out | timeouts_down(out.pop("deletion", {}))


def _machine_spec_up(out: Manifest, before: Manifest) -> Manifest:
    return out | given(deletion=timeouts_up(out), minReadySeconds=before.get("minReadySeconds"))


def _machine_status_down(out: Manifest, _: str) -> Manifest:
    # v1beta1 does not have the phase.
    if out.get("phase") == "Updating":
        out["phase"] = "Running"
    if "nodeRef" in out:
        out["nodeRef"] |= {"apiVersion": "v1", "kind": "Node"}
    initialization = out.pop("initialization", {})
    out["bootstrapReady"] = bool(initialization.get("bootstrapDataSecretCreated"))
    out["infrastructureReady"] = bool(initialization.get("infrastructureProvisioned"))
    return status_down(out)


def _machine_status_up(out: Manifest, before: Manifest) -> Manifest:
    was = before.get("initialization", {})
    out["initialization"] = {
        "bootstrapDataSecretCreated": meant(out.pop("bootstrapReady"), was.get("bootstrapDataSecretCreated")),
        "infrastructureProvisioned": meant(out.pop("infrastructureReady"), was.get("infrastructureProvisioned")),
    }
    if "nodeRef" in out:
        out["nodeRef"] = {"name": out["nodeRef"].get("name", "")}
    # Only the controller of Machines writes the phase, and it does not write v1beta1.
    return status_up(out) | given(phase=before.get("phase"), failureDomain=before.get("failureDomain"))


def _template_down(out: Manifest) -> Manifest:
    """The template of Machines; minReadySeconds is beside it in v1beta1."""
    spec = within(out, "template", "spec")
    out |= given(minReadySeconds=spec.pop("minReadySeconds", None))
    out["template"]["spec"] = _machine_spec_down(spec, "")
    return out


def _template_up(out: Manifest) -> Manifest:
    spec = within(out, "template", "spec")
    out["template"]["spec"] = _machine_spec_up(spec, {"minReadySeconds": out.pop("minReadySeconds", None)})
    return out


def _set_spec_down(out: Manifest, _: str) -> Manifest:
    out |= given(deletePolicy=out.pop("deletion", {}).get("order"), machineNamingStrategy=out.pop("machineNaming", None))
    return _template_down(out)


def _set_spec_up(out: Manifest, _: Manifest) -> Manifest:
    out |= given(deletion={"order": out.pop("deletePolicy", "")}, machineNaming=out.pop("machineNamingStrategy", None))
    return _template_up(out)


def _set_status_down(out: Manifest, _: str) -> Manifest:
    return status_down(out)


def _set_status_up(out: Manifest, _: Manifest) -> Manifest:
    return status_up({"replicas": 0} | out, *_SET_COUNTERS)


def _deployment_spec_down(out: Manifest, _: str) -> Manifest:
    rollout, remediation = out.pop("rollout", {}), out.pop("remediation", {})
    order = out.pop("deletion", {}).get("order")
    out |= given(
        strategy=strategy_down(rollout.get("strategy", {}), order, remediation.get("maxInFlight")),
        rolloutAfter=rollout.get("after"),
        machineNamingStrategy=out.pop("machineNaming", None),
    )
    return _template_down(out)


def _deployment_spec_up(out: Manifest, before: Manifest) -> Manifest:
    strategy, order, max_in_flight = strategy_up(out.pop("strategy", {}))
    out |= given(
        rollout={"strategy": strategy} | given(after=out.pop("rolloutAfter", None)),
        remediation=given(maxInFlight=max_in_flight),
        deletion=given(order=order),
        machineNaming=out.pop("machineNamingStrategy", None),
    )
    out["paused"] = meant(out.get("paused", False), before.get("paused"))
    return _template_up(out)


def _deployment_status_up(out: Manifest, _: Manifest) -> Manifest:
    return status_up({"replicas": 0} | out, *_DEPLOYMENT_COUNTERS)


def _check_spec_down(out: Manifest, namespace: str) -> Manifest:
    return out | health_down(out.pop("checks", {}), out.pop("remediation", {}), namespace)


def _check_spec_up(out: Manifest, _: Manifest) -> Manifest:
    checks, remediation = health_up(out)
    return out | {"checks": checks, "remediation": remediation}


def _check_status_up(out: Manifest, before: Manifest) -> Manifest:
    for name in ("expectedMachines", "currentHealthy", "remediationsAllowed"):
        out[name] = meant(out.get(name, 0), before.get(name))
    return status_up(out)


def _cluster_spec_down(out: Manifest, namespace: str) -> Manifest:
    if "topology" in out:
        out["topology"] = topology_down(out["topology"], namespace)
    return out


def _cluster_spec_up(out: Manifest, before: Manifest) -> Manifest:
    if "topology" in out:
        out["topology"] = topology_up(out["topology"])
    out["paused"] = meant(out.get("paused", False), before.get("paused"))
    return out


def _cluster_status_down(out: Manifest, _: str) -> Manifest:
    initialization = out.pop("initialization", {})
    out["controlPlaneReady"] = bool(initialization.get("controlPlaneInitialized"))
    out["infrastructureReady"] = bool(initialization.get("infrastructureProvisioned"))
    if "failureDomains" in out:
        out["failureDomains"] = {
            each.get("name", ""): given(controlPlane=each.get("controlPlane"), attributes=each.get("attributes"))
            for each in out["failureDomains"]
        }
    return status_down(out, "controlPlane", "workers")


def _cluster_status_up(out: Manifest, before: Manifest) -> Manifest:
    was = before.get("initialization", {})
    out["initialization"] = {
        "controlPlaneInitialized": meant(out.pop("controlPlaneReady"), was.get("controlPlaneInitialized")),
        "infrastructureProvisioned": meant(out.pop("infrastructureReady"), was.get("infrastructureProvisioned")),
    }
    domains: dict[str, Any] = out.pop("failureDomains", {})
    out["failureDomains"] = [{"name": name, "controlPlane": False} | domains[name] for name in sorted(domains)]
    return status_up(out, more=("controlPlane", "workers"))


_MACHINE_REFERENCES = ((("infrastructureRef",),) * 2, (("bootstrap", "configRef"),) * 2)
_TEMPLATE_REFERENCES = tuple(((("template", "spec", *path)),) * 2 for path, _ in _MACHINE_REFERENCES)
_CLUSTER_REFERENCES = ((("infrastructureRef",),) * 2, (("controlPlaneRef",),) * 2)

CONVERSIONS = {
    CLUSTER.kind: Conversion(
        {
            "spec": Part(cluster.ClusterSpec, cluster_v1beta1.ClusterSpec, _cluster_spec_down, _cluster_spec_up, _CLUSTER_REFERENCES),
            "status": Part(cluster.ClusterStatus, cluster_v1beta1.ClusterStatus, _cluster_status_down, _cluster_status_up),
        }
    ),
    MACHINE.kind: Conversion(
        {
            "spec": Part(machine.MachineSpec, machine_v1beta1.MachineSpec, _machine_spec_down, _machine_spec_up, _MACHINE_REFERENCES),
            "status": Part(machine.MachineStatus, machine_v1beta1.MachineStatus, _machine_status_down, _machine_status_up),
        }
    ),
    MACHINE_SET.kind: Conversion(
        {
            "spec": Part(machineset.MachineSetSpec, machineset_v1beta1.MachineSetSpec, _set_spec_down, _set_spec_up, _TEMPLATE_REFERENCES),
            "status": Part(machineset.MachineSetStatus, machineset_v1beta1.MachineSetStatus, _set_status_down, _set_status_up),
        },
        data=False,
    ),
    MACHINE_DEPLOYMENT.kind: Conversion(
        {
            "spec": Part(
                machinedeployment.MachineDeploymentSpec,
                machinedeployment_v1beta1.MachineDeploymentSpec,
                _deployment_spec_down,
                _deployment_spec_up,
                _TEMPLATE_REFERENCES,
            ),
            "status": Part(
                machinedeployment.MachineDeploymentStatus,
                machinedeployment_v1beta1.MachineDeploymentStatus,
                _set_status_down,
                _deployment_status_up,
            ),
        }
    ),
    MACHINE_HEALTH_CHECK.kind: Conversion(
        {
            "spec": Part(
                machinehealthcheck.MachineHealthCheckSpec,
                machinehealthcheck_v1beta1.MachineHealthCheckSpec,
                _check_spec_down,
                _check_spec_up,
            ),
            "status": Part(
                machinehealthcheck.MachineHealthCheckStatus,
                machinehealthcheck_v1beta1.MachineHealthCheckStatus,
                _set_status_down,
                _check_status_up,
            ),
        }
    ),
    MACHINE_DRAIN_RULE.kind: Conversion(
        {
            "spec": Part(
                machinedrainrule.MachineDrainRuleSpec, machinedrainrule_v1beta1.MachineDrainRuleSpec, _unchanged_down, _unchanged_up
            )
        },
        data=False,
    ),
}
