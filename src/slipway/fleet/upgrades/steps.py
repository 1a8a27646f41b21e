"""What an upgrade does next: one step, from what there is and what is wanted.

The control plane goes first, one minor version at a time; the workers follow when it is there, all the way at once, so that each of them is
replaced as seldom as the skew policy allows.  Nothing is patched while anything is on its way.  There is no memory: whoever is killed and
started again finds the same step.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.overview.groups import Member
from slipway.fleet.upgrades.versions import KUBELET_SKEW, is_older, minor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.fleet.overview.groups import Group, Standing

_MOST_STEPS = 1000


class Goal(NamedTuple):
    """``between`` has the version to go to of each minor that lies on the way."""

    version: str
    between: Mapping[int, str] = MappingProxyType({})
    control_plane: bool = True
    workers: bool = True


class Done(NamedTuple):
    """Everything is at the version."""


class Wait(NamedTuple):
    """Something is on its way."""

    group: Group


class Patch(NamedTuple):
    """A group is to have another version."""

    group: Group
    version: str


class Refuse(NamedTuple):
    """It cannot be."""

    why: str


Step = Done | Wait | Patch | Refuse


def next_step(now: Standing, goal: Goal) -> Step:
    refusal = _refusal(now, goal)
    if refusal:
        return Refuse(refusal)
    moving = next((each for each in now.groups if not each.settled), None)
    if moving is not None:
        return Wait(moving)
    if goal.control_plane and now.plane.version != goal.version:
        to = goal.between.get(minor(now.plane.version) + 1, goal.version)
        late = next((each for each in now.workers if minor(to) - minor(each.version) > KUBELET_SKEW), None)
        # The latest moment at which they have to follow is the one that replaces them least often.
        return Patch(now.plane, to) if late is None else Patch(late, now.plane.version)
    behind = next((each for each in now.workers if goal.workers and each.version != goal.version), None)
    return Done() if behind is None else Patch(behind, goal.version)


def plan(now: Standing, goal: Goal) -> list[Patch] | Refuse:
    """Every patch from here on, if all goes well: what is on its way arrives, and what is patched becomes what it was patched to."""
    found: list[Patch] = []
    at = now._replace(plane=_arrived(now.plane), workers=tuple(map(_arrived, now.workers)))
    for _ in range(_MOST_STEPS):
        step = next_step(at, goal)
        if isinstance(step, Refuse):
            return step
        if not isinstance(step, Patch):
            break
        found.append(step)
        there = _arrived(step.group._replace(version=step.version))
        at = at._replace(
            plane=there if step.group.is_control_plane else at.plane,
            workers=tuple(there if each.name == there.name and not there.is_control_plane else each for each in at.workers),
        )
    return found


def held(now: Standing, step: Patch) -> str:
    """Why nobody would act on a patch: it would come into force by surprise, when somebody else thinks of something else."""
    if now.paused:
        return f"the Cluster {now.cluster} is paused, and nobody would act on a patch: take its spec.paused away first"
    if step.group.paused:
        return f"the {step.group.title} is paused, and nobody would act on a patch: take its spec.paused, or the annotation, away first"
    return ""


def _refusal(now: Standing, goal: Goal) -> str:
    for each in now.groups:
        heading = each.heading or each.version
        if is_older(goal.version, heading) and (goal.control_plane if each.is_control_plane else goal.workers):
            return f"the {each.title} is at {heading} already, and Kubernetes cannot go back to {goal.version}"
    if not goal.control_plane and is_older(now.plane.heading or now.plane.version, goal.version):
        return (
            f"workers cannot be ahead of their control plane, and the {now.plane.title} is {now.plane.version}: "
            "upgrade it first, without --workers-only"
        )
    if goal.control_plane and not goal.workers:
        late = [each for each in now.workers if minor(goal.version) - minor(each.version) > KUBELET_SKEW]
        if late:
            return (
                f"the {late[0].title} is {late[0].version}, and no kubelet may be more than {KUBELET_SKEW} minor versions behind "
                f"{goal.version}: upgrade the workers too, without --control-plane-only"
            )
    return ""


def _arrived(group: Group) -> Group:
    """As it will be when its manager has nothing left to do."""
    version = group.heading or group.version
    return group._replace(version=version, heading="", observed=True, members=(Member("", version),) * group.replicas)
