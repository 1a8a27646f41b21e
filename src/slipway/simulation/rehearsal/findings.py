"""What a rehearsal has to say beyond the course: what would stop the upgrade, what is doubtful, and what nobody could know.  Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from slipway.api.cluster import names as core
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_SET,
    NODE,
)
from slipway.embedded.storage import selectors
from slipway.fleet.baremetal.plans import catalog
from slipway.fleet.baremetal.rollouts import guards, preflight
from slipway.fleet.overview.problems import problems_of, worst_first
from slipway.fleet.overview.stages import condition, host_of
from slipway.simulation.rehearsal import measured, transplant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.problems import Problem
    from slipway.simulation.rehearsal.measured import Durations
    from slipway.simulation.rehearsal.original import Original

Weight = Literal["stops", "holds", "warning", "unknown"]
"""Whether the upgrade would not end well for it; whether ``fleet upgrade`` would not even begin; whether somebody should look; whether it
could not be found out."""
WEIGHTS: tuple[Weight, ...] = get_args(Weight)
"""The heaviest first."""
FATAL = frozenset[Weight](("stops", "holds"))
"""With which an upgrade does not come to its end."""
CATALOG_MISS, POOL_TOO_SMALL, NO_SPACE, EVICTION, REFUSED, CONDITION, PREREQUISITE, TIMES, WORKLOAD, LEFT_OUT, STALLED, REGISTRY = (
    "catalog-miss", "pool-too-small", "no-space", "eviction-blocked", "refused", "condition", "prerequisite", "times-unknown",
    "workload-unknown", "not-rehearsed", "stalled", "registry-unknown",
)  # fmt: skip
TOLD_KINDS = (
    CLUSTER,
    BAREMETAL_CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    MACHINE,
    BAREMETAL_MACHINE,
    MACHINE_INVENTORY_POOL,
)
"""Whose conditions say why an upgrade does not go on."""
_BY_REASON = {
    names.IMAGE_CATALOG_MISS_REASON: CATALOG_MISS,
    names.IMAGE_CATALOG_INVALID_REASON: CATALOG_MISS,
    names.POOL_EXHAUSTED_REASON: POOL_TOO_SMALL,
    names.POOL_MISSING_REASON: POOL_TOO_SMALL,
    names.POOL_INVALID_REASON: POOL_TOO_SMALL,
}
_FULL = "no space left on device"
_BUDGET = "cannot evict pod as it would violate the pod's disruption budget"
# Of rows about Nodes nothing can be said where those could not be read, and that is told already.
_OF_NODES = ("the control plane is reached", "all Nodes are Ready")
_NAMED = 5
_TAKEN_FOR_GRANTED = (
    "taken for granted: that the images are in the registry and boot, that no host fails, that Pods find room elsewhere whatever "
    "resources, affinities and volumes they have, and that no MachineHealthCheck, webhook or controller of others comes between"
)


class Finding(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: str
    weight: Weight
    message: str
    object: str = ""
    """What it is about, such as ``MachineInventoryPool workers``."""
    to_do: str = ""


def beforehand(original: Original, versions: Sequence[str], durations: Mapping[str, Durations]) -> list[Finding]:
    """What is to be said before anything is tried; ``versions`` are those that machines will be made for."""
    found = _catalog(original, versions)
    # What is told with more weight is not told again.
    missing = [each.message for each in found]
    found += [each for each in _prerequisites(original, versions) if not each.message.endswith(tuple(missing))]
    found += _space(original)
    for what in transplant.foreign(original):
        found.append(Finding(LEFT_OUT, "unknown", f"{what} is somebody else's: that it is taken away in time is not rehearsed"))
    if original.registry_unknown:
        found.append(
            Finding(REGISTRY, "unknown", f"whether hosts know the registry of their images is not known: {original.registry_unknown}")
        )
    if original.workload is None:
        found.append(
            Finding(
                WORKLOAD,
                "unknown",
                f"whether PodDisruptionBudgets would hold up drains is not known: {original.workload_unknown}",
                to_do="Name a kubeconfig that may list Pods, their owners and budgets with --workload-kubeconfig.",
            )
        )
    for part, hosts in measured.unknown(durations).items():
        used = f"{measured.DEFAULTS[part]:.0f} s are taken for it"
        found.append(Finding(TIMES, "unknown", f"how long {_listed(hosts)} need to {_WORDS[part]} was never measured: {used}"))
    return [*found, Finding(LEFT_OUT, "unknown", _TAKEN_FOR_GRANTED)] if versions else found


_WORDS: Mapping[measured.Part, str] = {
    "drain": "be drained",
    "clean": "be cleaned",
    "image": "get an image",
    "boot": "boot and join",
}


def stuck(objects: Iterable[tuple[Kind, Manifest]], quiet: float) -> list[Finding]:
    """Why nothing goes on: everything that is not well; where nothing says so, that."""
    now = datetime.now(UTC)
    problems = worst_first(each for kind, manifest in objects for each in problems_of(kind.kind, manifest, now))
    lasting = [each for each in problems if each.lasting and each.object.kind == BAREMETAL_MACHINE.kind] or problems
    found = [_of(each) for each in lasting]
    return found or [Finding(STALLED, "stops", f"nothing has happened for {quiet:.0f} s, and no condition says why")]


def is_known(objects: Iterable[tuple[Kind, Manifest]]) -> bool:
    """Whether something that lasts says why nothing goes on."""
    now = datetime.now(UTC)
    for kind, manifest in objects:
        if kind == BAREMETAL_MACHINE and any(each.lasting for each in problems_of(kind.kind, manifest, now)):
            return True
        if kind == MACHINE and is_held(manifest):
            return True
    return False


def is_held(machine: Manifest) -> bool:
    """Whether the drain of a Machine waits for a PodDisruptionBudget."""
    return _BUDGET in str(condition(machine, core.DELETING_CONDITION).get("message") or "")


def forced_after(machine: Manifest) -> int:
    """Seconds after which a drain is given up and the Machine goes on; 0 where it never is."""
    return int(((machine.get("spec") or {}).get("deletion") or {}).get("nodeDrainTimeoutSeconds") or 0)


def blocking(pods: Iterable[Manifest], budgets: Iterable[Manifest], node: str) -> list[tuple[Manifest, list[str]]]:
    """The budgets that allow no disruption, each with the Pods of a Node that it holds."""
    here = [pod for pod in pods if pod["spec"].get("nodeName") == node]
    found = []
    for budget in budgets:
        if (budget.get("status") or {}).get("disruptionsAllowed"):
            continue
        metadata = budget["metadata"]
        matches = selectors.from_label_selector((budget.get("spec") or {}).get("selector") or {})
        held = [
            str(pod["metadata"]["name"])
            for pod in here
            if pod["metadata"].get("namespace") == metadata.get("namespace")
            and selectors.match_labels(matches, pod["metadata"].get("labels") or {})
        ]
        if held:
            found.append((budget, sorted(held)))
    return found


def held_up(budget: Manifest, pods: Sequence[str], machine: Manifest, host: str) -> Finding:
    metadata, status = budget["metadata"], budget.get("status") or {}
    place = f"{metadata.get('namespace')}/{metadata['name']}"
    seconds = forced_after(machine)
    numbers = f"it wants {status.get('desiredHealthy', '?')} healthy Pods and has {status.get('currentHealthy', '?')}"
    held = f"the drain of {host} would wait for {_listed(pods)}: {numbers}"
    if seconds:
        return Finding(
            EVICTION, "warning", f"{held}; after {seconds} s the drain is given up, and they are ended", f"PodDisruptionBudget {place}"
        )
    way = "Give it one more replica, or a budget that lets one go; a drain without a time limit waits for ever."
    return Finding(EVICTION, "stops", held, f"PodDisruptionBudget {place}", way)


def not_at_rest(original: Original) -> list[Finding]:
    """Why a rehearsal cannot begin: it starts from a cluster in which nothing moves."""
    found = []
    for each in original.objects[BAREMETAL_MACHINE]:
        phase = str((each.get("status") or {}).get("phase") or "Pending")
        if phase != names.RUNNING_PHASE or each["metadata"].get("deletionTimestamp"):
            problems = problems_of(BAREMETAL_MACHINE.kind, each, datetime.now(UTC))
            told = f": {problems[0].message}" if problems else ""
            name = f"BaremetalMachine {each['metadata']['name']}"
            way = "Wait until it is Running, or mend what its conditions name."
            found.append(Finding(CONDITION, "stops", f"{host_of(each) or 'it'} is {phase}{told}", name, way))
    return found


def _of(problem: Problem) -> Finding:
    kind = NO_SPACE if _FULL in problem.message else _BY_REASON.get(problem.reason, CONDITION)
    message = " ".join(problem.message.split()) or problem.reason
    return Finding(
        kind, "stops", f"{problem.condition}: {problem.reason}: {message}", f"{problem.object.kind} {problem.object.name}", problem.to_do
    )


def _catalog(original: Original, versions: Iterable[str]) -> list[Finding]:
    found = []
    for version in dict.fromkeys(versions):
        try:
            catalog.image(original.catalog, original.catalog_place, version, original.registry or "unknown", original.name)
        except (catalog.CatalogMissError, catalog.InvalidImageError) as error:
            found.append(Finding(CATALOG_MISS, "stops", error.message, f"ConfigMap {original.catalog_place}"))
    return found


def _prerequisites(original: Original, versions: Sequence[str]) -> list[Finding]:
    """What preflight would say, but for what it reads that a rehearsal does not."""
    nodes = (original.workload or {}).get(NODE)
    survey = preflight.Survey(
        cluster=original.cluster,
        baremetal_cluster=original.infrastructure,
        control_plane=original.control_plane,
        deployments=original.objects[MACHINE_DEPLOYMENT],
        templates=guards.template_pools(original.objects[BAREMETAL_MACHINE_TEMPLATE]),
        pools=original.objects[MACHINE_INVENTORY_POOL],
        inventories=original.objects[MACHINE_INVENTORY],
        machines=original.objects[BAREMETAL_MACHINE],
        catalog=original.catalog,
        catalog_place=original.catalog_place,
        platform_registry=original.registry,
        nodes=nodes,
    )
    rows = preflight.rows(survey, versions[0]) if versions else []
    told = [
        row
        for row in rows
        if row.status in (preflight.FAILED, preflight.WARNING) and (nodes is not None or not row.check.startswith(_OF_NODES))
    ]
    first = "Mend it first: fleet upgrade does not begin before, but with --ignore-preflight."
    return [
        Finding(PREREQUISITE, "holds", f"not met: {row.check}: {row.message}", to_do=first)
        if row.status == preflight.FAILED
        else Finding(PREREQUISITE, "warning", f"doubtful: {row.check}: {row.message}")
        for row in told
    ]


def _space(original: Original) -> list[Finding]:
    silent = [str(each["metadata"]["name"]) for each in original.objects[MACHINE_INVENTORY] if not _free(each)]
    if not silent:
        return []
    return [
        Finding(NO_SPACE, "unknown", f"{_listed(silent)} have not told how much space they have: that it is enough is taken for granted")
    ]


def _free(inventory: Manifest) -> Mapping[str, int]:
    return ((inventory.get("status") or {}).get("hostFacts") or {}).get("freeBytes") or {}


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
