"""The status of a Machine: what a reconcile saw becomes conditions, in today's and in yesterday's form, and the phase.

The steps of a reconcile note down what they saw and did; here, and nowhere else, that becomes the status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.meta import decode
from slipway.fleet.contract import conditions as contract
from slipway.fleet.contract.conditions import TRUE
from slipway.fleet.contract.status import Status
from slipway.fleet.liveclusters import Probe
from slipway.fleet.machines.machine import conditions, deprecated, readiness
from slipway.fleet.machines.machine.conditions import ClusterState, Templates
from slipway.fleet.machines.machine.values import External, Found, Said
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest


STARTED = Said("Deleting", "Deletion started")
"""What is said of a deletion while there is nothing better to say."""


class Observed(msgspec.Struct):
    """What a reconcile saw of the world around a Machine."""

    cluster: ClusterState = ClusterState()
    config: External = External()
    config_problem: str = ""
    """Why it could not be read or used."""
    infrastructure: External = External()
    infrastructure_problem: str = ""
    found: Found = Found()
    probe: Probe = Probe()
    templates: Templates | None = None
    deletion: Said = STARTED


def tell(manifest: Manifest, observed: Observed, now: datetime) -> float:
    """Put into the status how a reconcile went; in how many seconds it changes by itself, or 0."""
    status, machine = Status(manifest, now), decode(manifest, Machine)
    status.say(conditions.bootstrap_config_ready(machine, observed.config, observed.config_problem))
    status.say(conditions.infrastructure_ready(machine, observed.infrastructure, observed.infrastructure_problem))
    known = [condition.type for condition in machine.status.conditions]
    for condition in conditions.node_conditions(machine, observed.cluster, observed.found, observed.probe, known, now):
        status.say(condition)
    status.say(conditions.deleting(machine, observed.deletion))
    in_place = conditions.updating(machine)
    status.say(in_place)
    current = conditions.up_to_date(machine, observed.templates, in_place, now)
    if current is not None:
        status.say(current)
    status.say(readiness.ready(machine, contract.of(manifest), now))
    _tell_phase(status, machine, readiness.phase(machine, in_place_update=in_place.status == TRUE), now)
    ready = contract.find(contract.of(manifest), names.READY_CONDITION)
    if ready is None:
        raise AssertionError("Ready was set a moment ago")
    available = readiness.available(ready, machine.spec.min_ready_seconds, now)
    status.say(available.condition)
    starting = not machine.metadata.get("deletionTimestamp") and not machine.spec.provider_id
    older = deprecated.ready(deprecated.of(manifest), starting=starting)
    if older is not None:
        status.set_deprecated(older)
    return available.seconds


def _tell_phase(status: Status, machine: Machine, phase: str, now: datetime) -> None:
    if phase != machine.status.phase:
        status.fields["phase"] = phase
        status.fields["lastUpdated"] = timestamp(now)
