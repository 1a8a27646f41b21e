"""Writing a host's inventory down, by whichever replica the host called: every change has the resource version as its precondition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import MACHINE_INVENTORY
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.inventory.registration.session import NOT_FOUND, Refusal
from slipway.kube.errors import AlreadyExistsError, ConflictError
from slipway.runtime import finalizers

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.inventory.registration.session import Session
    from slipway.kube.aio import AsyncClient

_ATTEMPTS = 5


class RefusedError(OperatorError):
    """What a host asked for is not done; the sentence is for the person at the host."""


async def commit(client: AsyncClient, session: Session, *, updating: bool) -> Manifest:
    """The inventory as the API server has it now."""
    place = None if session.known is None else (session.known["metadata"]["name"], session.known["metadata"]["namespace"])
    for _ in range(_ATTEMPTS):
        found = None if place is None else await client.find(MACHINE_INVENTORY, *place)
        if found is None and updating:
            raise RefusedError(NOT_FOUND)
        if found is not None:
            _require_same(found, session)
        wanted = session.manifest(found)
        if isinstance(wanted, Refusal):
            raise RefusedError(wanted.sentence)
        try:
            if found is None:
                return await client.create(MACHINE_INVENTORY, wanted)
            return found if wanted == found else await client.update(MACHINE_INVENTORY, wanted)
        except AlreadyExistsError:
            # Another replica may have written it for the same host a moment ago; what is there is looked at.
            place = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
        except ConflictError:
            continue
    raise RefusedError("the MachineInventory of this host is changed by many at once: register again")


def _require_same(found: Manifest, session: Session) -> None:
    metadata, identity = found["metadata"], session.identity
    if (found.get("spec") or {}).get(identity.field) != identity.hashed:
        raise RefusedError(
            f"there is another host of the name {metadata['name']}: change machineName of the MachineRegistration "
            f"{session.registration.metadata['name']} so that it names hosts apart, or delete that MachineInventory"
        )
    if finalizers.is_deleted(found):
        raise RefusedError(f"the MachineInventory {metadata['name']} of this host is being deleted: register again when it is gone")
