"""Machines as types, decoded once for each state that the cache has of them.

Controllers of sets read all their Machines in every reconcile, and most have not changed since the last one.  Nobody changes what is
read here: it is shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.kinds import MACHINE
from slipway.fleet.contract.facts import read

if TYPE_CHECKING:
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

# So many are kept before those that are gone are looked for.
_FEW = 1000


class Machines:
    """The Machines of one cache."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._known: dict[str, tuple[Object, Machine]] = {}
        self._limit = _FEW

    def __call__(self, found: Object) -> Machine:
        known = self._known.get(found.metadata.uid)
        if known is not None and known[0] is found:
            return known[1]
        machine = read(found, Machine)
        # The largest part of an object, of which no type knows anything.
        machine.metadata.pop("managedFields", None)
        if len(self._known) >= self._limit:
            store = self._cache.informer(MACHINE).store
            self._known = {uid: one for uid, one in self._known.items() if store.get(one[0].name, one[0].namespace) is one[0]}
            self._limit = max(_FEW, 2 * len(self._known))
        self._known[found.metadata.uid] = found, machine
        return machine


_of: WeakKeyDictionary[Cache, Machines] = WeakKeyDictionary()


def machines(cache: Cache) -> Machines:
    """The same for all controllers that share a cache."""
    found = _of.get(cache)
    if found is None:
        found = _of[cache] = Machines(cache)
    return found
