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

_ATTEMPTS = 10
# So many names are drawn for one that differs from the one that another host has.
_NAMES = 16


class RefusedError(OperatorError):
    """What a host asked for is not done; the sentence is for the person at the host."""


async def commit(client: AsyncClient, session: Session, *, updating: bool) -> Manifest:
    """The inventory as the API server has it now."""
    place = None if session.known is None else (session.known["metadata"]["name"], session.known["metadata"]["namespace"])
    taken = 0
    for _ in range(_ATTEMPTS):
        found = None if place is None else await client.find(MACHINE_INVENTORY, *place)
        if found is None and updating:
            raise RefusedError(NOT_FOUND)
        if found is not None and not _is_same(found, session):
            # Where the name is by chance there is another one, and that is the same at all replicas, too.
            following = range(taken + 1, taken + _NAMES) if session.known is None else ()
            taken = next((count for count in following if _place(_wanted(session, None, count)) != place), 0)
            if not taken:
                raise _taken(found, session)
            place = _place(_wanted(session, None, taken))
            continue
        if found is not None and finalizers.is_deleted(found):
            name = found["metadata"]["name"]
            raise RefusedError(f"the MachineInventory {name} of this host is being deleted: register again when it is gone")
        wanted = _wanted(session, found, taken)
        try:
            if found is None:
                return await client.create(MACHINE_INVENTORY, wanted)
            return found if wanted == found else await client.update(MACHINE_INVENTORY, wanted)
        except AlreadyExistsError:
            # Another replica may have written it for the same host a moment ago; what is there is looked at.
            place = _place(wanted)
        except ConflictError:
            continue
    raise RefusedError("the MachineInventory of this host is changed by many at once: register again")


def _wanted(session: Session, found: Manifest | None, taken: int) -> Manifest:
    wanted = session.manifest(found, taken)
    if isinstance(wanted, Refusal):
        raise RefusedError(wanted.sentence)
    return wanted


def _place(inventory: Manifest) -> tuple[str, str]:
    return inventory["metadata"]["name"], inventory["metadata"]["namespace"]


def _is_same(found: Manifest, session: Session) -> bool:
    return bool((found.get("spec") or {}).get(session.identity.field) == session.identity.hashed)


def _taken(found: Manifest, session: Session) -> RefusedError:
    return RefusedError(
        f"there is another host of the name {found['metadata']['name']}: change machineName of the MachineRegistration "
        f"{session.registration.metadata['name']} so that it names hosts apart, or delete that MachineInventory"
    )
