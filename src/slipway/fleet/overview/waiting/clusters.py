"""What a Cluster waits for, and what has its machines: the control plane, MachineDeployments and MachineSets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names as core
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, MACHINE, MACHINE_SET
from slipway.fleet.overview import groups
from slipway.fleet.overview.problems import Ref
from slipway.fleet.overview.stages import condition
from slipway.fleet.overview.waiting import machines, sentences
from slipway.fleet.overview.waiting.causes import Cause
from slipway.fleet.overview.waiting.machines import NOT_TRUE
from slipway.fleet.overview.waiting.world import Link, owner, ref, space

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.groups import Group, Member
    from slipway.fleet.overview.waiting.world import World

_HEALTH = (core.CERTIFICATES_AVAILABLE_CONDITION, core.ETCD_CLUSTER_HEALTHY_CONDITION, core.CONTROL_PLANE_COMPONENTS_HEALTHY_CONDITION)


def cluster(world: World, of: Ref, content: Manifest) -> Iterator[Link]:
    spec = content.get("spec") or {}
    if spec.get("paused") is True or core.PAUSED_ANNOTATION in (content["metadata"].get("annotations") or {}):
        yield world.paused(of, content)
        return
    if content["metadata"].get("deletionTimestamp"):
        yield world.caused(of, content, condition(content, core.DELETING_CONDITION) or {"type": core.DELETING_CONDITION})
        going = [groups.member(each) for each in world.machines(of) if each["metadata"].get("deletionTimestamp")]
        yield from _most_in_the_way(world, going, of.namespace)
        return
    base = world.referred(of, spec.get("infrastructureRef"))
    troubles = list(machines.infrastructure_troubles(world, base[0])) if base is not None and base[0].kind == BAREMETAL_CLUSTER.kind else []
    ready = condition(content, core.INFRASTRUCTURE_READY_CONDITION)
    if any(link.cause is not None and link.cause.condition == names.ENDPOINT_READY_CONDITION for link in troubles):
        yield Link(of, f"The Cluster {of.name} waits for its BaremetalCluster.")
        yield from troubles
    elif not troubles and ready.get("status") == "False":
        yield world.caused(of, content, ready)
    else:
        yield from _of_machines(world, of, content, troubles)


def _of_machines(world: World, of: Ref, content: Manifest, troubles: Sequence[Link]) -> Iterator[Link]:
    probe = condition(content, core.REMOTE_CONNECTION_PROBE_CONDITION)
    initialized = ((content.get("status") or {}).get("initialization") or {}).get("controlPlaneInitialized") is True
    unreachable = initialized and probe.get("status") == "False"
    if unreachable:
        yield world.caused(of, content, probe)
    rolled = world.groups(of, content)
    moving = next(((at, each) for at, each in rolled if not each.settled), None)
    if moving is not None:
        what = "control plane" if moving[1].is_control_plane else "workers"
        yield Link(of, f"The Cluster {of.name} waits for its {what} {moving[1].name}.")
        above = world.get(moving[0])
        yield from group(world, moving[0], above) if above is not None else ()
    elif troubles:
        yield Link(of, f"The machines of the Cluster {of.name} are well.")
        yield from troubles
    elif not unreachable:
        kinds = {True: "control plane machine", False: "worker"}
        parts = [f"{sentences.count(each.replicas, kinds[each.is_control_plane])} at {each.version}" for _, each in rolled]
        yield Link(of, f"The Cluster {of.name} is well: {', '.join(parts) or 'it has no machines'}.", well=True)


def baremetal_cluster(world: World, of: Ref, content: Manifest) -> Iterator[Link]:
    yield from list(machines.infrastructure_troubles(world, of)) or [Link(of, f"The BaremetalCluster {of.name} is well.", well=True)]


def group(world: World, of: Ref, content: Manifest) -> Iterator[Link]:
    """A KubeadmControlPlane or a MachineDeployment."""
    found = world.group(of, content)
    if found.paused:
        yield world.paused(of, content)
    elif content["metadata"].get("deletionTimestamp"):
        yield world.caused(of, content, condition(content, core.DELETING_CONDITION) or {"type": core.DELETING_CONDITION})
        yield from _most_in_the_way(world, [each for each in found.members if each.leaving], of.namespace)
    elif not found.observed:
        yield _unheard(of, content, found)
    elif found.settled:
        yield Link(of, f"The {found.title} is well: {sentences.count(found.replicas, 'machine')} at {found.version}.", well=True)
    else:
        yield Link(of, sentences.progress(found))
        culprits = [each for each in found.members if each.leaving or not each.well]
        yield from _most_in_the_way(world, culprits, of.namespace) if culprits else _own_words(world, of, content, found)


def _unheard(of: Ref, content: Manifest, found: Group) -> Link:
    seen, wanted = (content.get("status") or {}).get("observedGeneration", 0), content["metadata"].get("generation")
    return Link(
        of,
        f"Nobody has acted yet on what the spec of the {found.title} says: generation {seen} of {wanted} is the last that was.",
        to_do=("Where that lasts, look whether the manager that reconciles it runs: slipway fleet preflight says so.",),
    )


def _own_words(world: World, of: Ref, content: Manifest, found: Group) -> Iterator[Link]:
    """What a group says itself, where none of its machines is in the way."""
    outdated = [each.name for each in found.members if not each.current or each.version != found.version]
    if found.by_hand and outdated:
        meaning = "With the strategy OnDelete a Machine is replaced when somebody deletes it."
        way = f"Delete its Machines of the old template, one after the other: {sentences.listed(outdated)}."
        yield Link(of, meaning, Cause(of, "", "OnDelete", "", None, meaning, way, 0.0))
        return
    told = [(of, content, condition(content, each)) for each in (core.SCALING_UP_CONDITION, core.SCALING_DOWN_CONDITION)]
    if not found.is_control_plane:
        told.append((of, content, condition(content, core.ROLLING_OUT_CONDITION)))
        sets = [each for each in world.objects.machine_sets if _is_of(each, of)]
        told += [(ref(MACHINE_SET.kind, each), each, condition(each, core.SCALING_UP_CONDITION)) for each in sets]
    wrong = [each for each in told if sentences.is_blocked(str(each[2].get("message") or ""))]
    if found.is_control_plane:
        wrong += [(of, content, each) for name in _HEALTH if (each := condition(content, name)).get("status") in NOT_TRUE]
    available = condition(content, core.AVAILABLE_CONDITION)
    if not wrong and available.get("status") == "False":
        wrong.append((of, content, available))
    if not wrong:
        yield Link(of, "None of its machines is in the way: the next one is taken in a moment.")
    yield from (world.caused(*each) for each in wrong)


def machine_set(world: World, of: Ref, content: Manifest) -> Iterator[Link]:
    spec, status = content.get("spec") or {}, content.get("status") or {}
    above = str((content["metadata"].get("labels") or {}).get(core.DEPLOYMENT_NAME_LABEL) or "")
    wanted, ready = spec.get("replicas") or 0, status.get("readyReplicas") or 0
    own = [each for each in world.objects.machines if space(each) == of.namespace and owner(each, MACHINE_SET.kind) == of.name]
    unwell = [each for each in map(groups.member, own) if each.leaving or not each.well]
    up = condition(content, core.SCALING_UP_CONDITION)
    blocked = sentences.is_blocked(str(up.get("message") or ""))
    place = f" of the MachineDeployment {above}" if above else ""
    counted = f"{ready} of {sentences.count(wanted, 'machine')} are ready"
    yield Link(of, f"The MachineSet {of.name}{place}: {counted}.", well=not unwell and not blocked and ready == wanted)
    if blocked:
        yield world.caused(of, content, up)
    yield from _most_in_the_way(world, unwell, of.namespace)


def _most_in_the_way(world: World, members: Sequence[Member], namespace: str) -> Iterator[Link]:
    """The account of one machine: one that does not get on by itself, else one that leaves, else any."""
    accounts = []
    for each in sorted(members, key=lambda one: not one.leaving):
        at = Ref(MACHINE.kind, namespace, each.name)
        content = world.get(at)
        accounts.append(list(machines.machine(world, at, content)) if content is not None else [])
    stuck = [links for links in accounts if any(link.cause is not None and link.cause.lasts(world.now) for link in links)]
    yield from (stuck or accounts or [[]])[0]


def _is_of(content: Manifest, deployment: Ref) -> bool:
    labels = content["metadata"].get("labels") or {}
    return (space(content), labels.get(core.DEPLOYMENT_NAME_LABEL)) == (deployment.namespace, deployment.name)
