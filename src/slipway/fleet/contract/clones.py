"""Clones of templates that were made for a Machine that was never made.

Whoever makes a Machine makes its bootstrap configuration and its infrastructure first, and owns them until the Machine takes them over.
A process that is killed in between, or that never hears how it went, leaves clones behind; they are found by their owner.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import MACHINE
from slipway.runtime.logs import fields

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

_log = logging.getLogger("slipway.fleet.contract.clones")

_OWNER = "owner"


async def delete_orphans(client: AsyncClient, cache: Cache, kind: Kind, owner: str, used: Container[str]) -> bool:
    """Delete the clones that the object of the uid ``owner`` owns and that neither a Machine ``used`` nor one that is new has.

    Whether all Machines of clones are known here: where the server has one that the cache has not, no more are to be made yet.
    """
    cache.add_index(kind, _OWNER, _by_owner)
    known = True
    for clone in await cache.list(kind, index=(_OWNER, owner)):
        # One that a Machine has taken over is that Machine's, which may be another's by now, and have another name.
        taken = any(owner.kind == MACHINE.kind for owner in clone.metadata.owner_references)
        if taken or clone.name in used or clone.metadata.deletion_timestamp is not None:
            continue
        # Asked of the server: the Machine, which has the name of its clones, may have been made by a request whose answer was lost.
        machine = await client.find(MACHINE, clone.name, clone.namespace)
        if machine is None:
            await client.delete(kind, clone.name, clone.namespace, uid=clone.metadata.uid)
            _log.info("Deleted a clone without a Machine", extra=fields(kind=kind.kind, clone=clone.name))
        elif await cache.get(MACHINE, clone.name, clone.namespace) is None:
            cache.wrote(MACHINE, machine)
            known = False
    return known


def _by_owner(found: Object) -> Iterable[str]:
    return [owner.uid for owner in found.metadata.owner_references]
