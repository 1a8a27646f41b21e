"""What an object waits for, in a few sentences, and what to do: a pure function of the objects of a management cluster.

The chain is followed to where it ends: a Cluster waits for its control plane or its workers, those for a Machine, that for its
BaremetalMachine, that for its host, and the host for an instruction of its plan.  Each link is a sentence; the last one says why.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import moment
from slipway.fleet.overview.problems import Ref  # noqa: TC001 - a field's type
from slipway.fleet.overview.waiting import sentences
from slipway.fleet.overview.waiting.account import account
from slipway.fleet.overview.waiting.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.objects import Objects

# A warning that is older is told by a condition, or over.
_RECENT = timedelta(minutes=30)


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    object: Ref
    well: bool
    """Whether it waits for nothing."""
    lasting: bool
    """Whether what it waits for stays until somebody does something, as far as that can be told."""
    sentences: tuple[str, ...]
    chain: tuple[Ref, ...]
    """From the object to where what it waits for ends."""
    to_do: tuple[str, ...] = ()


def explain(objects: Objects, ref: Ref, now: datetime) -> Explanation:
    """What the object waits for; an OperatorError where there is none such."""
    world = World(objects, now)
    links = account(world, ref)
    if not links:
        raise OperatorError(f"there is no {ref}")
    causes = [link.cause for link in links if link.cause is not None]
    to_do = [way for link in links for way in (link.cause.to_do if link.cause is not None else "", *link.to_do) if way]
    well = all(link.well for link in links)
    told = [link.sentence for link in links]
    if not well:
        told += _warning(objects.events, links[-1].ref, told, now)
    return Explanation(
        ref,
        well,
        any(each.lasts(now) for each in causes),
        tuple(dict.fromkeys(told)),
        tuple(dict.fromkeys(link.ref for link in links)),
        tuple(dict.fromkeys(to_do)),
    )


def _warning(events: Sequence[Manifest], last: Ref, told: Sequence[str], now: datetime) -> list[str]:
    """The last warning about the end of the chain, where no condition says the same."""
    about = [each for each in events if each.get("type") == "Warning" and _is_about(each, last) and now - _when(each, now) < _RECENT]
    newest = max(about, key=lambda each: _when(each, now), default=None)
    message = sentences.one_line(str((newest or {}).get("message") or ""))
    if newest is None or not message or any(message.rstrip(".") in sentence for sentence in told):
        return []
    ago = sentences.age(_when(newest, now), now)
    return [f"The last warning about it, {ago} ago: {newest.get('reason')}: {sentences.ended(message)}"]


def _is_about(event: Manifest, ref: Ref) -> bool:
    about = event.get("involvedObject") or {}
    return (about.get("kind"), about.get("namespace"), about.get("name")) == (ref.kind, ref.namespace, ref.name)


def _when(event: Manifest, now: datetime) -> datetime:
    times = [moment(str(each)) for each in (event.get("eventTime"), event.get("lastTimestamp"), event.get("firstTimestamp")) if each]
    return max((each for each in times if each is not None), default=now - _RECENT)
