"""A Cluster in terms of a ClusterClass between v1beta1 and v1beta2: not worked with here, and not to be lost either."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.core.moved import given, health_down, health_up, strategy_down, strategy_up, timeouts_down, timeouts_up
from slipway.api.cluster.versions import within

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest


def topology_down(out: Manifest, namespace: str) -> Manifest:
    reference = out.pop("classRef", {})
    out |= given(**{"class": reference.get("name"), "classNamespace": reference.get("namespace")})
    control_plane = out.get("controlPlane") or {}
    control_plane |= timeouts_down(control_plane.pop("deletion", {}))
    _health_down(control_plane, namespace)
    workers = out.get("workers") or {}
    for deployment in workers.get("machineDeployments", []):
        _deployment_down(deployment, namespace)
    for pool in workers.get("machinePools", []):
        pool |= timeouts_down(pool.pop("deletion", {}))
    return out


def _deployment_down(deployment: Manifest, namespace: str) -> None:
    deletion = deployment.pop("deletion", {})
    remediation = (deployment.get("healthCheck") or {}).get("remediation") or {}
    strategy = (deployment.get("rollout") or {}).pop("strategy", {})
    deployment |= given(strategy=strategy_down(strategy, deletion.get("order"), remediation.pop("maxInFlight", None)))
    deployment |= timeouts_down(deletion)
    if not remediation:
        (deployment.get("healthCheck") or {}).pop("remediation", None)
    if not deployment.get("rollout"):
        deployment.pop("rollout", None)
    _health_down(deployment, namespace)


def _health_down(holder: Manifest, namespace: str) -> None:
    health = holder.pop("healthCheck", {})
    if health:
        made = health_down(health.get("checks", {}), health.get("remediation", {}), namespace)
        holder["machineHealthCheck"] = made | given(enable=health.get("enabled"))


def topology_up(out: Manifest) -> Manifest:
    out["classRef"] = given(name=out.pop("class", None), namespace=out.pop("classNamespace", None))
    control_plane = within(out, "controlPlane")
    control_plane["deletion"] = timeouts_up(control_plane)
    _health_up(control_plane)
    workers = out.get("workers") or {}
    for deployment in workers.get("machineDeployments", []):
        _deployment_up(deployment)
    for pool in workers.get("machinePools", []):
        pool["deletion"] = timeouts_up(pool)
    return out


def _deployment_up(deployment: Manifest) -> None:
    strategy, order, max_in_flight = strategy_up(deployment.pop("strategy", {}))
    deployment["deletion"] = timeouts_up(deployment) | given(order=order)
    within(deployment, "rollout")["strategy"] = strategy
    _health_up(deployment)
    if max_in_flight is not None:
        within(deployment, "healthCheck", "remediation")["maxInFlight"] = max_in_flight


def _health_up(holder: Manifest) -> None:
    health = holder.pop("machineHealthCheck", {})
    checks, remediation = health_up(health)
    holder["healthCheck"] = {"checks": checks, "remediation": remediation} | given(enabled=health.get("enable"))
