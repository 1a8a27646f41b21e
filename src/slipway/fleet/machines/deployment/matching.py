"""Which MachineSet is of a MachineDeployment's template of today, and why the others are not.

Templates are compared in what needs another machine: version, bootstrap, infrastructure and failure domain.  Everything else is changed on
machines that are there.  Once ``rollout.after`` has come, only a MachineSet that was made since is of today.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.names import TEMPLATE_SUFFIX
from slipway.fleet.machines.times import moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.cluster.core.machine import MachineTemplateSpec
    from slipway.api.cluster.core.machineset import MachineSet


class Difference(NamedTuple):
    """What differs: for the log, and for the conditions of Machines, as Cluster API words it."""

    logged: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


class Found(NamedTuple):
    new: MachineSet | None
    old: list[MachineSet]
    """Large ones first."""
    reason: str = ""
    """Why there is no new one."""


def difference(current: MachineTemplateSpec, wanted: MachineTemplateSpec) -> Difference:
    """Why machines of one template are to be replaced by those of another; empty where they need not be."""
    logged: list[str] = []
    told: list[str] = []
    one, other = current.spec, wanted.spec
    if one.version != other.version:
        logged.append(f"spec.version {one.version}, {other.version} required")
        told.append(f"Version {one.version}, {other.version} required")
    if one.bootstrap != other.bootstrap:
        if one.bootstrap.config_ref:
            have, want = one.bootstrap.config_ref, other.bootstrap.config_ref
            logged.append(f"spec.bootstrap.configRef {have.kind} {have.name}, {want.kind} {want.name} required")
            told.append(f"{have.kind.removesuffix(TEMPLATE_SUFFIX)} is not up-to-date")
        else:
            secrets = [each if each is not None else "nil" for each in (one.bootstrap.data_secret_name, other.bootstrap.data_secret_name)]
            logged.append(f"spec.bootstrap.dataSecretName {secrets[0]}, {secrets[1]} required")
            told.append(logged[-1])
    if one.infrastructure_ref != other.infrastructure_ref:
        have, want = one.infrastructure_ref, other.infrastructure_ref
        logged.append(f"spec.infrastructureRef {have.kind} {have.name}, {want.kind} {want.name} required")
        told.append(f"{have.kind.removesuffix(TEMPLATE_SUFFIX)} is not up-to-date")
    if one.failure_domain != other.failure_domain:
        logged.append(f"spec.failureDomain {one.failure_domain}, {other.failure_domain} required")
        told.append(f"Failure domain {one.failure_domain}, {other.failure_domain} required")
    return Difference(tuple(logged), tuple(told))


def find(template: MachineTemplateSpec, after: str, sets: Sequence[MachineSet], now: datetime) -> Found:
    """The MachineSet of the template; of several, the largest, and of those of one size the oldest."""
    if not sets:
        return Found(None, [], "no MachineSets exist for the MachineDeployment")
    fitting: list[MachineSet] = []
    old: list[MachineSet] = []
    differences: list[str] = []
    rollout_after = moment(after) if after else None
    passed = rollout_after if rollout_after is not None and rollout_after <= now else None
    for one in sorted(sets, key=by_size):
        differs = difference(one.spec.template, template).logged
        if not differs:
            fitting.append(one)
            continue
        old.append(one)
        if rollout_after is not None and rollout_after < now and _created(one) < rollout_after:
            differs = (*differs, "MachineDeployment spec.rolloutAfter expired")
        differences.append(f"MachineSet {one.metadata['name']} needs rollout: {', '.join(differs)}")
    if not fitting:
        return Found(None, old, f"couldn't find MachineSet matching MachineDeployment spec template: {'; '.join(differences)}")
    new = next((one for one in fitting if passed is None or _created(one) >= passed), None)
    old += [one for one in fitting if one is not new]
    if new is None:
        return Found(None, old, f"spec.rollout.after on MachineDeployment set to {after}, no MachineSet has been created afterwards")
    return Found(new, old)


def by_size(one: MachineSet) -> tuple[int, str, str]:
    return -(one.spec.replicas or 0), one.metadata.get("creationTimestamp") or "", one.metadata["name"]


def _created(one: MachineSet) -> datetime:
    return moment(one.metadata["creationTimestamp"])
