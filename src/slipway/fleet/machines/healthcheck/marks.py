"""What a health check writes onto a Machine: whether it is healthy, and that somebody is to remediate it.

OwnerRemediated belongs to the owner once it acts: the health check begins it, and begins it again when the last remediation is through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.fleet.contract.conditions import FALSE, TRUE, Condition
from slipway.fleet.contract.status import DeprecatedCondition, well

if TYPE_CHECKING:
    from slipway.fleet.machines.healthcheck.judgement import Verdict
    from slipway.fleet.machines.healthcheck.observed import Machine, Seen

SUCCEEDED = names.HEALTH_CHECK_SUCCEEDED_CONDITION
OWNER_REMEDIATED = names.OWNER_REMEDIATED_CONDITION
EXTERNALLY_REMEDIATED = names.EXTERNALLY_REMEDIATED_CONDITION

TEMPLATE_NOT_FOUND = "RemediationTemplateNotFound"
REQUEST_FAILED = "RemediationRequestCreationFailed"


class Marks(NamedTuple):
    """The conditions that are to be set, in today's and in yesterday's form."""

    conditions: list[Condition]
    deprecated: list[DeprecatedCondition]

    def differ_from(self, machine: Machine) -> bool:
        """Whether there is anything to write."""
        return any(_differs(machine.condition(one.type), one.status, one.reason, one.message) for one in self.conditions) or any(
            _differs(machine.deprecated(one.type), one.status, one.reason, one.message) for one in self.deprecated
        )


def of_verdict(verdict: Verdict) -> Marks:
    """What every Machine that is one or the other gets, whether anything is done about it or not."""
    if verdict.healthy:
        return Marks([Condition(type=SUCCEEDED, status=TRUE, reason=names.HEALTH_CHECK_SUCCEEDED_REASON)], [well(SUCCEEDED)])
    failed = Condition(type=SUCCEEDED, status=FALSE, reason=verdict.reason, message=verdict.message)
    older = DeprecatedCondition(
        type=SUCCEEDED, status=FALSE, reason=verdict.deprecated_reason, severity="Warning", message=verdict.deprecated_message
    )
    return Marks([failed], [older])


def for_owner(machine: Machine) -> Marks:
    """The owner is to remediate the Machine, unless that is under way, or the Machine is going already."""
    if machine.metadata.deletion_timestamp is not None:
        return Marks([], [])
    marks = Marks([], [])
    had, older = machine.condition(OWNER_REMEDIATED), machine.deprecated(OWNER_REMEDIATED)
    reason = names.WAITING_FOR_REMEDIATION_REASON
    if had is None or had.status == TRUE:
        marks.conditions.append(Condition(type=OWNER_REMEDIATED, status=FALSE, reason=reason, message="Waiting for remediation"))
    if older is None or older.status == TRUE:
        marks.deprecated.append(DeprecatedCondition(type=OWNER_REMEDIATED, status=FALSE, reason=reason, severity="Warning"))
    return marks


def for_request(reason: str = names.WAITING_FOR_REMEDIATION_REASON, message: str = "") -> Marks:
    """Another controller is to remediate the Machine, by a request of its own kind."""
    return Marks([Condition(type=EXTERNALLY_REMEDIATED, status=FALSE, reason=reason, message=message)], [])


def request_untold(machine: Machine) -> bool:
    """Whether the Machine does not say yet that there is a request for it: it was made, and then we were killed."""
    had = machine.condition(EXTERNALLY_REMEDIATED)
    return had is None or had.reason in (TEMPLATE_NOT_FOUND, REQUEST_FAILED)


def _differs(had: Seen | None, *wanted: str) -> bool:
    return had is None or (had.status, had.reason, had.message) != wanted
