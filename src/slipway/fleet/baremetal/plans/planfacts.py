"""The plan Secret of a host: what it says of the plan that is in it, and putting a plan there.

Whose plan it is, and what it was made of, stands in annotations that are written together with the plan: whoever comes later reads it
there, and needs no memory of having written it.
"""

from __future__ import annotations

from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import SECRET
from slipway.api.elemental import names as elemental
from slipway.api.elemental import plan as plans
from slipway.fleet.contract import conditions
from slipway.kube.aio import PatchType
from slipway.kube.errors import ConflictError, NotFoundError
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from slipway.api.elemental.plan import Outcome, Plan
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

OWNER_ANNOTATION = "slipway.io/plan-owner"
"""The BaremetalMachine, by name, that the plan is of."""
WRITTEN_ANNOTATION = "slipway.io/plan-written-at"
IMAGE_ANNOTATION = "slipway.io/plan-image"
BOOTSTRAP_HASH_ANNOTATION = "slipway.io/plan-bootstrap-hash"
CHECKSUM_ANNOTATION = "slipway.io/plan-checksum"
"""Of the plan as it was written: a plan that somebody changed since is not the one that these annotations speak of."""
BOOT_BEFORE_ANNOTATION = "slipway.io/boot-id-before"
"""The boots of Nodes with the host's provider ID that were there before: none of them is the one that the plan makes."""

# Of what a host printed, the end tells what went wrong.
_SHOWN = 1500


class PlanFacts(NamedTuple):
    """The plan that a host has."""

    checksum: str = ""
    outcome: Outcome = "none"
    type: str = ""
    owner: str = ""
    failures: int = 0
    output: Mapping[str, str] = MappingProxyType({})
    written: datetime | None = None
    image: str = ""
    bootstrap_hash: str = ""
    boot_before: str = ""
    clean: bool | None = None
    """What the host said of itself when it had applied this plan; None where it said nothing, as other agents do not."""
    edited: bool = False
    """Somebody else put another plan in the place of the one that was written: it is nobody's, and has no type."""

    @property
    def in_flight(self) -> bool:
        return self.outcome in ("pending", "in-progress")

    @property
    def printed(self) -> str:
        """The end of what the host printed, by its instructions, for a condition's message."""
        text = "\n".join(f"{name}: {output.strip()}" for name, output in self.output.items() if output.strip())
        return text if len(text) <= _SHOWN else f"…{text[-_SHOWN:]}"

    @property
    def is_dirty(self) -> bool:
        """Whether a host that has applied its clean plan is not clean, as it says itself."""
        return self.type == names.PLAN_CLEAN and self.outcome == "applied" and self.clean is False


class Marks(NamedTuple):
    """What is noted down beside a plan."""

    type: str
    owner: str
    image: str = ""
    bootstrap_hash: str = ""
    boot_before: str = ""


class _HostFacts(msgspec.Struct):
    """What of the host's facts matters here."""

    clean: bool | None = None
    plan: str = ""


def plan_facts(secret: Manifest) -> PlanFacts:
    state = plans.read(secret.get("data"))
    annotations = secret["metadata"].get("annotations") or {}
    # A manager of before did not write down which plan it means.
    edited = annotations.get(CHECKSUM_ANNOTATION, state.plan_checksum) != state.plan_checksum
    noted = {} if edited else annotations
    return PlanFacts(
        checksum=state.plan_checksum,
        outcome=state.outcome,
        type=noted.get(names.PLAN_TYPE_ANNOTATION, ""),
        owner=noted.get(OWNER_ANNOTATION, ""),
        failures=state.failures,
        output=state.output,
        written=conditions.moment(annotations.get(WRITTEN_ANNOTATION)),
        image=noted.get(IMAGE_ANNOTATION, ""),
        bootstrap_hash=noted.get(BOOTSTRAP_HASH_ANNOTATION, ""),
        boot_before=noted.get(BOOT_BEFORE_ANNOTATION, ""),
        clean=_clean(secret.get("data") or {}, state.plan_checksum),
        edited=edited,
    )


def _clean(data: Mapping[str, str], checksum: str) -> bool | None:
    try:
        told = msgspec.json.decode(plans.plain({plans.HOST_FACTS: data.get(plans.HOST_FACTS, "")})[plans.HOST_FACTS], type=_HostFacts)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return told.clean if checksum and told.plan == checksum else None


async def read(cache: Cache, name: str, namespace: str) -> Manifest | None:
    """The plan Secret of a host, at least as new as the cache has heard of it: who writes to it names the version that was read."""
    return await cache.whole(SECRET, name, namespace, labels=f"{elemental.MANAGED_LABEL}={elemental.MANAGED}")


async def write(
    client: AsyncClient, cache: Cache, secret: Manifest, plan: Plan, marks: Marks, max_failures: int, now: datetime
) -> Manifest:
    """Put a plan into the Secret that was read; a ConflictError where its host, or somebody else, has written to it since."""
    metadata, raw = secret["metadata"], plans.encode(plan)
    annotations = {
        **(metadata.get("annotations") or {}),
        names.PLAN_TYPE_ANNOTATION: marks.type,
        elemental.PLAN_TYPE_ANNOTATION: marks.type,
        OWNER_ANNOTATION: marks.owner,
        WRITTEN_ANNOTATION: timestamp(now),
        IMAGE_ANNOTATION: marks.image,
        BOOTSTRAP_HASH_ANNOTATION: marks.bootstrap_hash,
        BOOT_BEFORE_ANNOTATION: marks.boot_before,
        CHECKSUM_ANNOTATION: plans.checksum(raw),
    }
    data = {**(secret.get("data") or {}), **plans.written(raw, marks.type, max_failures)}
    written = await client.update(SECRET, {**secret, "metadata": {**metadata, "annotations": annotations}, "data": data})
    cache.wrote_whole(SECRET, written)
    return written


async def annotate(client: AsyncClient, name: str, namespace: str, changes: Mapping[str, str | None]) -> None:
    """Tell a host something beside its plan, by annotations of its Secret; one that works on a plan is left alone.

    None takes an annotation away.  Whoever was faster is followed by an event, after which it is decided anew.
    """
    secret = await client.find(SECRET, name, namespace)
    if secret is None or plan_facts(secret).in_flight:
        return
    patch = {"metadata": {"resourceVersion": secret["metadata"]["resourceVersion"], "annotations": dict(changes)}}
    with suppress(ConflictError, NotFoundError):
        await client.patch(SECRET, name, namespace, patch, type=PatchType.MERGE)
