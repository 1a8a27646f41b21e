"""What a host, and what a pool of hosts waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names as core
from slipway.api.cluster.infrastructure import names
from slipway.fleet.baremetal.hosts.host import QUARANTINE_ANNOTATION
from slipway.fleet.overview.hosts import APPLIED, FAILED, PENDING, host_view, pool_view
from slipway.fleet.overview.stages import condition
from slipway.fleet.overview.waiting import sentences
from slipway.fleet.overview.waiting.world import Link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.problems import Ref
    from slipway.fleet.overview.waiting.world import World


def host(world: World, ref: Ref, content: Manifest) -> Iterator[Link]:
    """A host by itself: its plan, else whose it is."""
    view = host_view(content, world.secret(ref), None)
    plan, problem = view.plan, view.problem
    quarantined = QUARANTINE_ANNOTATION in (content["metadata"].get("annotations") or {})
    if plan is not None and not quarantined and (plan.state != APPLIED or view.state == names.REPROVISIONING):
        heard = (
            f" Its agent was last heard of {sentences.age(view.last_heard, world.now)} ago."
            if plan.state == PENDING and view.last_heard
            else ""
        )
        yield Link(ref, sentences.plan(ref.name, plan, world.now) + heard, to_do=_advice(plan.state, view.state))
    elif problem is not None:
        yield Link(ref, f"The host {ref.name}: {sentences.ended(sentences.one_line(problem.message))}", to_do=(problem.to_do,))
    else:
        yield Link(ref, sentences.host(view), well=True)


def _advice(plan: str, state: str) -> tuple[str, ...]:
    if plan == FAILED:
        return ("See the host's serial console for errors of elemental upgrade, and whether it reaches the platform's registry.",)
    if plan == PENDING and state != names.AVAILABLE:
        return ("Where that lasts, look at the host's power, network and agent.",)
    return ()


def pool(world: World, ref: Ref, content: Manifest) -> Iterator[Link]:
    """A pool by itself: what it counts, and which of its entries are wrong."""
    wrong = condition(content, names.MEMBERS_VALID_CONDITION)
    wrong = wrong if wrong.get("status") == "False" else condition(content, core.READY_CONDITION)
    is_wrong = wrong.get("status") == "False"
    yield Link(ref, sentences.pool(pool_view(content, world.now)), well=not is_wrong)
    if is_wrong:
        yield world.caused(ref, content, wrong)
    staged = condition(content, names.IMAGES_STAGED_CONDITION)
    if staged.get("status") == "False":
        yield world.caused(ref, content, staged)
