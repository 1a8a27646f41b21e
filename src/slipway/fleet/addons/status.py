"""The condition ResourcesApplied of a ClusterResourceSet, in both forms: reasons are upstream's, the message says what to do.

Upstream tells the state of the Cluster that it looked at last, and sends the reader to its log.  Here anything that went wrong anywhere
counts, and is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.names import INTERNAL_ERROR_REASON
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.fleet.contract.status import DeprecatedCondition, well

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.fleet.contract.status import Severity, Status

RESOURCES_APPLIED = "ResourcesApplied"
APPLIED, NOT_APPLIED, WRONG_SECRET_TYPE = "Applied", "NotApplied", "WrongSecretType"


class Fault(NamedTuple):
    """A way in which it goes wrong: its reason in both forms of the condition; the first in this order is the condition's."""

    rank: int
    reason: str
    deprecated: str
    severity: Severity = "Warning"


UNREACHABLE = Fault(0, INTERNAL_ERROR_REASON, "RemoteClusterClientFailed", "Error")
MISSING = Fault(1, INTERNAL_ERROR_REASON, "RetrievingResourceFailed")
WRONG_TYPE = Fault(2, WRONG_SECRET_TYPE, WRONG_SECRET_TYPE)
FAILED = Fault(3, NOT_APPLIED, "ApplyFailed")
UNREADABLE_SELECTOR = Fault(4, INTERNAL_ERROR_REASON, "ClusterMatchFailed")


class Trouble(NamedTuple):
    """What went wrong with one thing; ``retry`` where time may mend it, and nobody would tell us."""

    fault: Fault
    message: str
    retry: bool = False


def tell(status: Status, troubles: Sequence[Trouble]) -> None:
    """Set the condition."""
    if not troubles:
        status.set(RESOURCES_APPLIED, TRUE, APPLIED)
        status.set_deprecated(well(RESOURCES_APPLIED))
        return
    worst = min(troubles, key=lambda trouble: trouble.fault.rank).fault
    texts = list(dict.fromkeys(trouble.message for trouble in troubles))
    message = texts[0] if len(texts) == 1 else "\n".join(f"* {text}" for text in texts)
    status.set(RESOURCES_APPLIED, FALSE, worst.reason, message)
    status.set_deprecated(
        DeprecatedCondition(type=RESOURCES_APPLIED, status=FALSE, reason=worst.deprecated, severity=worst.severity, message=message)
    )
