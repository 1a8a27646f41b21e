"""Control planes from the cases that upstream's code was asked about: ages in seconds, everything that is usual left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from slipway.api.cluster.core.machine import Machine as ApiMachine
from slipway.api.cluster.core.machine import MachineNodeReference, MachineSpec, MachineStatus
from slipway.api.cluster.meta import Condition
from slipway.fleet.controlplane.decisions.machines import (
    Check,
    ControlPlane,
    Machine,
    Member,
    Remediation,
    RemediationRules,
)
from slipway.fleet.controlplane.decisions.remediation import not_replaced_yet
from slipway.runtime.objects import timestamp

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_YOUNG = 20


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def remediation(case: dict[str, Any] | None) -> Remediation | None:
    if case is None:
        return None
    return Remediation(case["machine"], None if case.get("ago") is None else ago(case["ago"]), case.get("retries", 0))


def machine(case: dict[str, Any]) -> Machine:
    deleted = case.get("deletedAgo")
    return Machine(
        case["name"],
        ago(case["age"]),
        version=case.get("version", ""),
        up_to_date=not case.get("outdated"),
        failure_domain=case.get("domain", ""),
        node=case.get("node", ""),
        checks={name: Check(*said) for name, said in case.get("checks", {}).items()},
        deleted=None if deleted is None else ago(deleted),
        has_hook=not case.get("noHook"),
        other_hooks=bool(case.get("otherHooks")),
        waits_for_hook=deleted is not None and bool(case.get("waitsForHook")),
        delete_asked=bool(case.get("deleteAsked")),
        remediate_asked=bool(case.get("remediateAsked")),
        unhealthy=bool(case.get("unhealthy")),
        ours_to_remediate=bool(case.get("unhealthy") and case.get("ours")),
        health_checked=bool(case.get("healthChecked")),
        replaces=remediation(case.get("replaces")),
    )


def plane(case: dict[str, Any]) -> ControlPlane:
    machines = case.get("machines", [])
    rules = RemediationRules()
    rules = RemediationRules(case.get("maxRetry"), case.get("retryPeriod") or 0, case.get("minHealthyPeriod", rules.min_healthy_period))
    return ControlPlane(
        case["replicas"],
        tuple(map(machine, machines)),
        NOW,
        max_surge=case.get("maxSurge", 1),
        version=case["version"],
        failure_domains=tuple(case.get("domains", ())),
        manages_etcd=not case.get("externalEtcd"),
        members=tuple(
            Member(one["id"], one["name"], bool(one.get("learner")), bool(one.get("alarms")), bool(one.get("leader")))
            for one in case.get("members", ())
        ),
        members_healthy=bool(case.get("membersHealthy")),
        young_nodes=frozenset(one["node"] for one in machines if one.get("node") and one.get("nodeAge", 0) < _YOUNG),
        initialized=not case.get("uninitialized"),
        cluster_initialized=not case.get("uninitialized"),
        certificates=not case.get("noCertificates"),
        in_progress=not_replaced_yet(remediation(case.get("inProgress")), tuple(map(machine, machines))),
        remediation=rules,
    )


def api_machine(case: dict[str, Any]) -> ApiMachine:
    """The Machine as the API has it."""
    since = timestamp(ago(case.get("since", 0)))
    said = {name: (status, "Told", message) for name, (status, message) in case.get("checks", {}).items()}
    said |= {name: tuple(other) for name, other in case.get("others", {}).items()}
    if case.get("healthChecked") or case.get("unhealthy"):
        said["HealthCheckSucceeded"] = ("False" if case.get("unhealthy") else "True", "Told", "")
    if case.get("ours"):
        said["OwnerRemediated"] = ("False", "WaitingForRemediation", "")
    conditions = [
        Condition(type=name, status=status, reason=reason, message=message, last_transition_time=since)
        for name, (status, reason, message) in said.items()
    ]
    deleted = case.get("deletedAgo")
    metadata = {
        "name": case["name"],
        "namespace": "n",
        "creationTimestamp": timestamp(ago(case["age"])),
        "labels": {"cluster.x-k8s.io/control-plane": ""},
        **({} if deleted is None else {"deletionTimestamp": timestamp(ago(deleted))}),
    }
    spec = MachineSpec(version=case.get("version", ""), provider_id="" if case.get("noProviderID") else f"host://{case['name']}")
    status = MachineStatus(conditions=conditions, node_ref=MachineNodeReference(name=case.get("node", "")))
    return ApiMachine(metadata=metadata, spec=spec, status=status)
