"""What an object waits for, by its conditions: what that means, what to do, and for how long it may last before somebody has to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.contract.conditions import moment
from slipway.fleet.overview.problems import Ref
from slipway.fleet.overview.waiting.advice import advice

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest


class Cause(NamedTuple):
    """A condition that is not as it should be, and what that means."""

    ref: Ref
    condition: str
    reason: str
    message: str
    since: datetime | None
    meaning: str
    to_do: str = ""
    patience: float | None = None
    """For how many seconds it may be so; None for ever, as something else ends it."""

    def lasts(self, now: datetime) -> bool:
        """Whether it has been so for longer than it would be if it ended by itself."""
        if self.patience is None:
            return False
        return not self.patience or (self.since is not None and (now - self.since).total_seconds() >= self.patience)


def cause(kind: str, manifest: Manifest, condition: Manifest) -> Cause:
    """What a condition of an object means."""
    metadata = manifest["metadata"]
    type_, reason, message = (str(condition.get(each) or "") for each in ("type", "reason", "message"))
    known = advice(kind, type_, reason, message)
    ref = Ref(kind, str(metadata.get("namespace") or ""), str(metadata["name"]))
    return Cause(ref, type_, reason, message, moment(condition.get("lastTransitionTime")), known.meaning, known.to_do, known.patience)
