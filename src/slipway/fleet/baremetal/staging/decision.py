"""Which image each host of a pool is to have ahead, and which hosts are asked for it now: pure functions of what was seen.

What somebody has asked for comes first: the version of a control plane or MachineDeployment that its machines do not have yet.  Where
nothing is asked for, the next upgrade is foreseen: workers follow their control plane, and a control plane goes to the highest version of
the catalog that it can be upgraded to.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.elemental.staging import FAILED, STAGED, Wanted
from slipway.api.machinery.version import Version
from slipway.fleet.contract import conditions
from slipway.fleet.contract.admission import without_prerelease
from slipway.fleet.contract.conditions import FALSE, TRUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from slipway.api.elemental.inventory import StagingFacts
    from slipway.fleet.contract.conditions import ConditionStatus

# Hosts in these states can be asked; in the others they work on a plan, or are looked at by somebody.
_AT_REST = (names.AVAILABLE, names.ALLOCATED)
_SHOWN = 5


class Member(NamedTuple):
    """A host of the pool."""

    name: str
    state: str = names.AVAILABLE
    version: str = ""
    """Of the Machine that has it; empty where none does."""
    group: str = ""
    """The control plane or MachineDeployment of that Machine."""
    serves: bool = True
    """That Machine is a Node: before, the host is about to boot what it was asked for, and is left alone."""
    asked: Wanted | None = None
    told: StagingFacts | None = None

    @property
    def is_at_rest(self) -> bool:
        return self.state in _AT_REST and (self.serves or not self.version)


class Rolled(NamedTuple):
    """What of a cluster decides on its next version."""

    targets: Mapping[str, str]
    """The version of every control plane and MachineDeployment whose machines are of the pool, by name."""
    plane: str = ""
    """The version of the cluster's control plane."""
    is_plane: bool = False
    """Whether the pool is the control plane's."""
    replicas: Mapping[str, int] = MappingProxyType({})
    """How many machines each of them is to have."""


def next_version(rolled: Rolled, catalog: Iterable[str], named: str = "") -> str:
    """The version that the machines of a pool are expected to go to after the one that is asked for; empty where there is none."""
    base = max((found for text in rolled.targets.values() if (found := _version(text)) is not None), default=None)
    if base is None:
        return named
    if (meant := _version(named)) is not None and meant > base:
        return named
    plane = _version(rolled.plane) or base
    if not rolled.is_plane and plane > base:
        return rolled.plane
    reach = [
        (found, key)
        for key in catalog
        if (found := _version(key)) is not None
        and found > base
        and (found.major, found.minor) <= (plane.major, plane.minor + 1)
        and found.major == plane.major
        # One that is not released yet is nobody's next version unless it is named.
        and not found.prerelease[:1].isalpha()
    ]
    return max(reach)[1] if reach else ""


def wanted_versions(members: Sequence[Member], rolled: Rolled, next_: str) -> dict[str, str]:
    """The version whose image each host is to have ahead; hosts that are to have none are not there.

    A host that no machine has is for the next machine of the pool: of a rollout that is under way, else of the next one, else in place of
    a machine that fails.
    """
    targets = rolled.targets
    newest = max(targets.values(), key=_order, default="")
    done = Counter(member.group for member in members if member.serves and member.version == targets.get(member.group))
    # Also while the machine that went has no successor yet.
    rolling = any(done[group] < count for group, count in rolled.replicas.items())
    rolling = rolling or any(member.version and targets.get(member.group, member.version) != member.version for member in members)
    found = {}
    for member in members:
        target = targets.get(member.group, newest)
        due, later = (target != member.version, next_) if member.version else (rolling, next_ or newest)
        wanted = target if due else later
        if wanted and wanted != member.version:
            found[member.name] = wanted
    return found


def questions(
    members: Sequence[Member], wanted: Mapping[str, Wanted], limit: int, patience: timedelta, now: datetime
) -> dict[str, Wanted | None]:
    """The hosts that are told something else than before: what they are to have, or that they need nothing.

    So many of a pool fetch at a time, those that wait for a machine first; one that does not answer for long makes room for another.
    """
    fetching = sum(_is_fetching(member, wanted.get(member.name), patience, now) for member in members)
    found: dict[str, Wanted | None] = {}
    for member in sorted(members, key=lambda each: each.state != names.AVAILABLE):
        meant = wanted.get(member.name)
        if not member.is_at_rest or _same(member.asked, meant):
            continue
        if meant is not None and fetching < limit:
            found[member.name] = meant
            fetching += 1
        elif member.asked is not None:
            found[member.name] = None
    return found


def images(members: Sequence[Member], wanted: Mapping[str, Wanted]) -> list[dict[str, object]]:
    """The images that hosts are to have, counted, the newest first."""
    found: dict[str, dict[str, object]] = {}
    for meant in sorted(set(wanted.values()), key=lambda each: _order(each.version), reverse=True):
        states = [state(member, meant) for member in members if wanted.get(member.name) == meant]
        found[meant.image] = {
            "version": meant.version,
            "image": meant.image,
            "hosts": len(states),
            "staged": states.count(STAGED),
            "failed": states.count(FAILED),
        }
    return list(found.values())


def condition(members: Sequence[Member], wanted: Mapping[str, Wanted], unknown: Sequence[str]) -> tuple[ConditionStatus, str, str]:
    """What is told on the pool; ``unknown`` are reasons why an image is not known."""
    if unknown:
        return FALSE, names.IMAGE_UNKNOWN_REASON, "; ".join(unknown)
    if not wanted:
        return TRUE, names.NOTHING_TO_STAGE_REASON, "no other image is foreseen than those that hosts run"
    meant = [(member, wanted[member.name]) for member in members if member.name in wanted]
    states = [state(member, each) for member, each in meant]
    versions = ", ".join(sorted({each.version for _, each in meant}, key=_order))
    counted = f"{states.count(STAGED)} of {len(meant)} hosts have {versions}"
    if failures := [
        f"{member.name}: {member.told.message}" for (member, _), of in zip(meant, states, strict=True) if of == FAILED and member.told
    ]:
        more = f"; and {len(failures) - _SHOWN} more" if len(failures) > _SHOWN else ""
        return FALSE, names.STAGING_FAILED_REASON, f"{counted}; {'; '.join(failures[:_SHOWN])}{more}"
    if states.count(STAGED) < len(meant):
        return FALSE, names.STAGING_REASON, counted
    return TRUE, names.ALL_STAGED_REASON, counted


def state(member: Member, meant: Wanted) -> str:
    """What a host says of the image that it is to have; empty where it says nothing of it."""
    told = member.told
    return told.state if told is not None and told.image == meant.image and _same(member.asked, meant) else ""


def _is_fetching(member: Member, meant: Wanted | None, patience: timedelta, now: datetime) -> bool:
    if meant is None or not _same(member.asked, meant) or state(member, meant) in (STAGED, FAILED):
        return False
    since = conditions.moment(member.asked.since) if member.asked is not None else None
    return since is None or now - since < patience


def _same(asked: Wanted | None, meant: Wanted | None) -> bool:
    return (asked and (asked.image, asked.version)) == (meant and (meant.image, meant.version))


def _version(text: str) -> Version | None:
    try:
        return Version.tolerant(text) if text else None
    except ValueError:
        return None


def _order(text: str) -> tuple[Version, Version, str]:
    found = _version(text) or Version(0, 0)
    return without_prerelease(found), found, text
