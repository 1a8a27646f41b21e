"""What a person asks of a control plane whose machines are all lost: to be made anew, from a snapshot."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

ANNOTATION = "slipway.io/restore"
"""On a KubeadmControlPlane, written by ``slipway fleet restore``; gone when it is done."""


class Restore(msgspec.Struct, frozen=True):
    """``secret`` holds how a host gets the snapshot; ``asked`` is when that was written."""

    snapshot: str
    secret: str
    asked: datetime

    def gives_up(self, created: datetime) -> bool:
        """Whether a machine is one that there was before; what has come since is of the new control plane."""
        # Objects know the time of their creation to the second.
        return created < self.asked.replace(microsecond=0)

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def restore_from(annotations: Mapping[str, str]) -> Restore | None:
    text = annotations.get(ANNOTATION)
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text, type=Restore)
    except msgspec.DecodeError as error:
        raise OperatorError(f"the annotation {ANNOTATION} cannot be read: {error}; `slipway fleet restore` writes it") from None
    return found if found.asked.tzinfo is not None else msgspec.structs.replace(found, asked=found.asked.replace(tzinfo=UTC))
