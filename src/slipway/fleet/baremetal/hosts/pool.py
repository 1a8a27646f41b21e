"""A pool of hosts, counted and checked: pure functions of what it names and of the hosts that are there.

Nothing is ever counted up or down: the counters follow from the hosts, each of which is in just one of the five states.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.fleet.baremetal.hosts.host import NOT_CLEAN, QUARANTINE_ANNOTATION
from slipway.fleet.contract import selectors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from slipway.api.cluster.infrastructure.pool import PoolMember
    from slipway.api.cluster.meta import LabelSelector
    from slipway.fleet.baremetal.hosts.host import Host

MEMBER_UNSUPPORTED_REASON = "MemberUnsupported"
MEMBER_ORPHANED_REASON = "MemberOrphaned"
SELECTOR_INVALID_REASON = "SelectorInvalid"
MEMBER_NOT_CLEAN_REASON = "MemberNotClean"

# What the counters of the status are called, by the state of a host.
_COUNTERS = {state: state.lower() for state in names.ALLOCATION_STATES}


class OtherPool(NamedTuple):
    """A pool of the namespace, as far as it may dispute a host; ``rank`` is lower for the older one."""

    name: str
    members: frozenset[str]
    rank: tuple[str, str]
    selector: LabelSelector | None = None

    @property
    def selects(self) -> bool:
        """Whether it has a selector that means something."""
        return self.selector is not None and not selectors.problem(self.selector)


def selected(hosts: Mapping[str, tuple[Host, Mapping[str, str]]], pool: OtherPool, others: Collection[OtherPool]) -> list[str]:
    """The hosts that a pool's selector brings in, of all of the namespace with their labels.

    One that a pool names is that pool's; of those that select a host, the older pool has it.  While a machine has a host, it stays in the
    pool that it was taken from, whatever its labels become.
    """
    if pool.selector is None or not pool.selects:
        return []
    named = frozenset[str]().union(pool.members, *(other.members for other in others))
    older = [other.selector for other in others if other.selector is not None and other.selects and other.rank < pool.rank]
    there = {pool.name, *(other.name for other in others)}
    found = []
    for name, (host, labels) in sorted(hosts.items()):
        held = host.pool if host.owner is not None and host.pool in there else ""
        wanted = selectors.matches(pool.selector, labels) and not any(selectors.matches(each, labels) for each in older)
        if name not in named and (held == pool.name or (wanted and not held)):
            found.append(name)
    return found


class Problem(NamedTuple):
    """What is wrong with an entry of a pool."""

    reason: str
    message: str


def member_names(members: Sequence[PoolMember]) -> list[str]:
    """The inventories that a pool names, each once, in order."""
    return list(dict.fromkeys(member.name for member in members))


def state_of(host: Host | None, pool: str) -> str:
    """The one state that a member counts for.  What cannot be used is Unavailable, one that is missing too."""
    if host is None or host.deleting or host.pool not in ("", pool):
        return names.UNAVAILABLE
    state = host.state or names.AVAILABLE
    if state not in names.ALLOCATION_STATES:
        return names.UNAVAILABLE
    if state == names.AVAILABLE and (host.owner is not None or not host.ready or host.volumes or host.dirty):
        return names.UNAVAILABLE
    return state


def counters(members: Sequence[PoolMember], hosts: Mapping[str, Host], pool: str) -> dict[str, int]:
    """The numbers of the status; those below total add up to it, whatever the hosts say of themselves."""
    states = [state_of(hosts.get(name), pool) for name in member_names(members)]
    return {"total": len(states), **{counter: states.count(state) for state, counter in _COUNTERS.items()}}


def problems(members: Sequence[PoolMember], hosts: Mapping[str, Host], pool: str, orphans: Collection[str] = ()) -> list[Problem]:
    """What is wrong with the entries, in the order of the pool; ``orphans`` are hosts of machines that are not there."""
    found = []
    # In one go: a selector may bring in ten thousand hosts.
    for name, times in Counter(member.name for member in members).items():
        host = hosts.get(name)
        if times > 1:
            found.append(Problem(names.MEMBER_DUPLICATE_REASON, f"{name} is named {times} times: name it once"))
        if host is None:
            found.append(Problem(names.MEMBER_MISSING_REASON, f"there is no MachineInventory {name}: register the host, or take it out"))
        elif host.pool not in ("", pool) and host.quarantined_by:
            found.append(
                Problem(
                    names.MEMBER_IN_OTHER_POOL_REASON,
                    f"{name} was given up in the pool {host.pool}, which has it until it has been cleaned: switch it on for that",
                )
            )
        elif host.pool not in ("", pool):
            found.append(
                Problem(names.MEMBER_IN_OTHER_POOL_REASON, f"{name} is in the pool {host.pool} as well, which has it: take it out of one")
            )
        elif name in orphans and host.owner is not None:
            machine = host.owner.baremetal_machine
            way = " ".join([f"{QUARANTINE_ANNOTATION}={machine}", *(f"{owner}-" for owner in names.OWNER_ANNOTATIONS)])
            found.append(
                Problem(
                    MEMBER_ORPHANED_REASON,
                    f"{name} is of the BaremetalMachine {machine}, which is not there and never gave it back; to have it cleaned and used "
                    f"again: kubectl annotate machineinventory {name} {way}",
                )
            )
        elif host.dirty and host.owner is None:
            # Another value each time: a host has applied the clean plan of a value that it had before.
            again = f"kubectl annotate --overwrite machineinventory {name} {QUARANTINE_ANNOTATION}=by-hand-$(date +%s)"
            found.append(Problem(MEMBER_NOT_CLEAN_REASON, f"{name}: {NOT_CLEAN}; mend it, or to have it cleaned once more: {again}"))
        elif host.volumes:
            found.append(
                Problem(
                    MEMBER_UNSUPPORTED_REASON,
                    f"{name} declares data volumes (spec.storage), which a reprovision would not keep: take them out of the inventory",
                )
            )
    return found


def selector_problems(selector: LabelSelector | None) -> list[Problem]:
    """A selector that cannot be understood selects nothing, and says so."""
    why = selectors.problem(selector) if selector is not None else ""
    return [Problem(SELECTOR_INVALID_REASON, f"the selector selects no host: {why}")] if why else []


def adopted(name: str, host: Host, pool: OtherPool, others: Iterable[OtherPool]) -> bool:
    """Whether the pool takes a host over whose annotation names none, or one that does not have it any more.

    Of two pools that name a host, the older one has it: for as long as both do, nothing moves.
    """
    rivals = [other for other in others if other.name != pool.name and name in other.members]
    if host.pool == pool.name:
        return False
    if any(other.name == host.pool for other in rivals) or (host.pool and host.owner is not None):
        return False
    return all(pool.rank < other.rank for other in rivals)
