"""What an operator must not forget before a rollout on bare metal, as checks: pure functions of objects that somebody has read.

A rollout with ``maxSurge: 0`` deletes a node before its replacement is made.  So what would keep the replacement from coming up costs
a node, and is refused where it is asked for (:mod:`slipway.fleet.baremetal.webhooks`); what merely has to wait is told: as a warning to
who writes it, as the condition RolloutGuarded of the BaremetalCluster, and by ``slipway fleet preflight``.

KubeadmControlPlane and MachineDeployment may be anybody's: they are read in either version of their API, as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from slipway.api.cluster.infrastructure.names import CATALOG_NAME
from slipway.api.cluster.kinds import BAREMETAL_MACHINE_TEMPLATE, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, MULTI_STEP_UPGRADE_ANNOTATION
from slipway.api.machinery.version import Version
from slipway.fleet.baremetal.plans import catalog
from slipway.fleet.contract.admission import without_prerelease

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest

SKIP_ANNOTATION = "slipway.io/skip-guards"
"""On a KubeadmControlPlane or a MachineDeployment: the guards whose refusals become warnings, comma-separated, or All."""

Guard = Literal["MaxSurge", "ImageCatalog", "CatalogEntry", "PoolCapacity", "ControlPlaneSkew", "WorkerSkew"]
GUARDS: tuple[Guard, ...] = ("MaxSurge", "ImageCatalog", "CatalogEntry", "PoolCapacity", "ControlPlaneSkew", "WorkerSkew")
_ALL = "All"
# A kubelet may be so many minor versions older than the API server.
_KUBELET_SKEW = 3
# Cluster API wants so many replicas before a control plane may go without one of them.
_LEAST_FOR_SCALE_IN = 3
# Cluster API's defaults.
_SURGE, _REPLICAS = 1, 1

CONTROL_PLANE_CONDITION = (
    "has(object.spec.machineTemplate.spec) && has(object.spec.machineTemplate.spec.infrastructureRef) && "
    f"object.spec.machineTemplate.spec.infrastructureRef.kind == '{BAREMETAL_MACHINE_TEMPLATE.kind}'"
)
"""Of which control planes the API server asks, in CEL and in v1beta2."""
DEPLOYMENT_CONDITION = (
    "has(object.spec.template.spec.infrastructureRef) && "
    f"object.spec.template.spec.infrastructureRef.kind == '{BAREMETAL_MACHINE_TEMPLATE.kind}'"
)


class Objection(NamedTuple):
    """What speaks against a rollout, where, and what to do about it."""

    guard: Guard
    field: str
    message: str


class Rollout(NamedTuple):
    """What rolls machines of ours: a control plane or a MachineDeployment, whichever version it was read in."""

    kind: str
    namespace: str
    name: str
    cluster: str
    template: str
    version: str
    replicas: int
    max_surge: int | str
    surge_field: str
    rolls: bool
    """Whether machines are replaced by themselves: not so with OnDelete."""
    skipped: frozenset[str]
    steps: bool
    """Whether it goes over several minor versions by itself."""

    @property
    def is_control_plane(self) -> bool:
        return self.kind == KUBEADM_CONTROL_PLANE.kind

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def surge(self) -> int:
        """How many machines there may be at a time beyond the replicas."""
        if isinstance(self.max_surge, int):
            return self.max_surge
        share = self.max_surge.removesuffix("%")
        # As Cluster API counts: a surge is rounded up.
        return -(-self.replicas * int(share) // 100) if share.isascii() and share.isdigit() else _SURGE


class Pool(NamedTuple):
    """The hosts of a pool, counted."""

    total: int
    unavailable: int = 0

    @property
    def usable(self) -> int:
        return self.total - self.unavailable


class Surroundings(NamedTuple):
    """What a rollout is judged by.  What is None is not known, and nothing is held against it."""

    catalog: Mapping[str, str] | None = None
    """The image catalog; empty where there is no such ConfigMap."""
    catalog_place: str = CATALOG_NAME
    pools: Mapping[str, Pool] | None = None
    templates: Mapping[str, str] | None = None
    """The pool of each BaremetalMachineTemplate."""
    rollouts: Sequence[Rollout] | None = None
    """All of the cluster, and of other clusters where they have pools in common."""


def rollout(content: Manifest, *, anybodys: bool = False) -> Rollout | None:
    """The object as far as guards look at it; None where its machines are not ours, unless ``anybodys`` will do."""
    kind = str(content.get("kind") or "")
    spec, metadata = _object(content, "spec"), _object(content, "metadata")
    if kind == KUBEADM_CONTROL_PLANE.kind:
        template = _object(spec, "machineTemplate")
        reference = _object(template, "spec", "infrastructureRef") or _object(template, "infrastructureRef")
        version, cluster = spec.get("version"), _object(metadata, "labels").get(CLUSTER_NAME_LABEL) or _owner(metadata)
        old = "rolloutStrategy"
    elif kind == MACHINE_DEPLOYMENT.kind:
        of_machines = _object(spec, "template", "spec")
        reference = _object(of_machines, "infrastructureRef")
        version, cluster = of_machines.get("version"), spec.get("clusterName")
        old = "strategy"
    else:
        return None
    if reference.get("kind") != BAREMETAL_MACHINE_TEMPLATE.kind and not anybodys:
        return None
    is_old = str(content.get("apiVersion") or "").endswith("/v1beta1")
    strategy, place = (_object(spec, old), f"spec.{old}") if is_old else (_object(spec, "rollout", "strategy"), "spec.rollout.strategy")
    surge = _object(strategy, "rollingUpdate").get("maxSurge")
    annotations = _object(metadata, "annotations")
    return Rollout(
        kind,
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
        str(cluster or ""),
        str(reference.get("name") or ""),
        str(version or ""),
        _whole(spec.get("replicas"), _REPLICAS),
        surge if isinstance(surge, int | str) and not isinstance(surge, bool) else _SURGE,
        f"{place}.rollingUpdate.maxSurge",
        strategy.get("type", "RollingUpdate") != "OnDelete",
        frozenset(each.strip() for each in str(annotations.get(SKIP_ANNOTATION) or "").split(",") if each.strip()),
        annotations.get(MULTI_STEP_UPGRADE_ANNOTATION) == "true",
    )


def objections(of: Rollout, around: Surroundings) -> list[Objection]:
    """All that speaks against rolling the object as it is."""
    return [*surge_objections(of, around), *image_objections(of, around), *pool_objections(of, around), *skew_objections(of, around)]


def surge_objections(of: Rollout, around: Surroundings) -> list[Objection]:
    """A pool has no hosts to make one more from."""
    if not of.rolls or of.surge == 0:
        return []
    if of.is_control_plane and of.replicas < _LEAST_FOR_SCALE_IN:
        spare = f"a control plane of {of.replicas} cannot do without one: it needs a spare host in its pool to be replaced"
        pool = _pool(of, around)
        known = pool is not None and pool.usable >= of.replicas + of.surge
        return [] if known else [Objection("MaxSurge", of.surge_field, f"{of.title} has maxSurge {of.max_surge}, as {spare}")]
    way = "" if of.is_control_plane else "; to replace more machines at a time, raise maxUnavailable"
    return [
        Objection(
            "MaxSurge",
            of.surge_field,
            f"{of.title} has maxSurge {of.max_surge}, and a pool of physical hosts has none to make one more machine from: "
            f"set maxSurge to 0{way}",
        )
    ]


def image_objections(of: Rollout, around: Surroundings) -> list[Objection]:
    """A machine of the version would find no image."""
    if around.catalog is None or not of.version:
        return []
    field = "spec.version" if of.is_control_plane else "spec.template.spec.version"
    try:
        catalog.split(catalog.entry(around.catalog, around.catalog_place, of.version), f"the entry {catalog.key(of.version)}")
    except (catalog.CatalogMissError, catalog.InvalidImageError) as error:
        return [Objection("ImageCatalog", field, error.message)]
    return []


def pool_objections(of: Rollout, around: Surroundings) -> list[Objection]:
    """The machines of all who take hosts from a pool are more than it has."""
    if around.templates is None or around.pools is None:
        return []
    field = "spec.machineTemplate.spec.infrastructureRef.name" if of.is_control_plane else "spec.template.spec.infrastructureRef.name"
    name = around.templates.get(of.template)
    if name is None:
        return [
            Objection("PoolCapacity", field, f"there is no BaremetalMachineTemplate {of.template}, which {of.title} refers to: make it")
        ]
    pool = around.pools.get(name)
    if pool is None:
        return [
            Objection("PoolCapacity", field, f"there is no MachineInventoryPool {name}, which the template {of.template} names: make it")
        ]
    others = [
        each
        for each in around.rollouts or ()
        if (each.kind, each.name) != (of.kind, of.name) and around.templates.get(each.template) == name
    ]
    wanted = of.replicas + sum(each.replicas for each in others)
    if wanted <= pool.usable:
        return []
    broken = f", {pool.unavailable} of them unavailable" if pool.unavailable else ""
    sharing = f", of which {of.replicas} are of {of.title}" if others else ""
    return [
        Objection(
            "PoolCapacity",
            "spec.replicas",
            f"the pool {name} has {pool.total} hosts{broken}, and {wanted} machines are wanted from it{sharing}: add inventories to it",
        )
    ]


def skew_objections(of: Rollout, around: Surroundings) -> list[Objection]:
    """Workers are not ahead of their control plane, nor further behind than kubelets may be."""
    mine = [each for each in around.rollouts or () if each.cluster == of.cluster and (each.kind, each.name) != (of.kind, of.name)]
    if of.is_control_plane:
        return [found for each in mine if not each.is_control_plane for found in _behind(each, of, "ControlPlaneSkew", "spec.version")]
    plane = next((each for each in mine if each.is_control_plane), None)
    if plane is None:
        return []
    field = "spec.template.spec.version"
    at, ahead = _version(of.version), _version(plane.version)
    if at is not None and ahead is not None and at > ahead:
        way = f"upgrade the control plane first, to {of.version}"
        return [
            Objection("WorkerSkew", field, f"{of.title} is to be {of.version}, ahead of its control plane, which is {plane.version}: {way}")
        ]
    return _behind(of, plane, "WorkerSkew", field)


def step_objections(before: Rollout, after: Rollout) -> list[Objection]:
    """A control plane goes up one minor version at a time."""
    at, to = _version(before.version), _version(after.version)
    if not after.is_control_plane or after.steps or at is None or to is None or (to.major, to.minor) <= (at.major, at.minor + 1):
        return []
    return [
        Objection(
            "ControlPlaneSkew",
            "spec.version",
            f"{after.title} is to go from {before.version} to {after.version}, and a control plane goes up one minor version at a time: "
            f"go to a v{at.major}.{at.minor + 1} first (slipway fleet upgrade takes all steps, one after the other)",
        )
    ]


def entry_objections(entries: Mapping[str, Any], place: str = CATALOG_NAME) -> list[Objection]:
    """Entries of the catalog that no machine could be made from."""
    found = []
    for key, value in entries.items():
        field = f"data[{key}]"
        if not key.startswith("v"):
            found.append(Objection("CatalogEntry", field, f'the key "{key}" of the ConfigMap {place} has no leading v: name it "v{key}"'))
        elif _version(key) is None:
            found.append(
                Objection("CatalogEntry", field, f'the key "{key}" of the ConfigMap {place} is no Kubernetes version, such as v1.34.5')
            )
        try:
            catalog.split(str(value).strip(), f"the entry {key} of the ConfigMap {place}")
        except catalog.InvalidImageError as error:
            found.append(Objection("CatalogEntry", field, error.message))
    return found


def judged(before: Rollout | None, after: Rollout, around: Surroundings) -> tuple[list[Objection], list[Objection]]:
    """What is refused, and what is told, when an object that was ``before``, None where there was none, is to be ``after``.

    Refused is what costs a node: a rollout that begins and cannot end.  A first machine costs nothing: it waits, and says what for.
    What was so before is told again, so that the object can still be changed in other ways.
    """
    begins = before is not None and (before.version, before.template) != (after.version, after.template)
    refused_now: dict[Guard, bool] = {
        "MaxSurge": before is None or begins or before.surge != after.surge,
        "ImageCatalog": before is not None and before.version != after.version,
        "PoolCapacity": before is not None and before.template != after.template,
        "ControlPlaneSkew": before is not None and before.version != after.version,
        "WorkerSkew": before is None or before.version != after.version,
        "CatalogEntry": False,
    }
    refused: list[Objection] = []
    told: list[Objection] = []
    found = objections(after, around) + (step_objections(before, after) if before is not None else [])
    for each in found:
        cannot_be_zero = each.guard == "MaxSurge" and after.is_control_plane and after.replicas < _LEAST_FOR_SCALE_IN
        skipped = bool(after.skipped & {each.guard, _ALL})
        (refused if refused_now[each.guard] and not cannot_be_zero and not skipped else told).append(each)
    return refused, told


def is_downgrade(at: str, to: str) -> bool:
    before, after = _version(at), _version(to)
    return before is not None and after is not None and after < before


def pool_sizes(pools: Iterable[Manifest]) -> dict[str, Pool]:
    """How many hosts each pool has: as many as it names and has selected, less those that its status says are unavailable."""
    found = {}
    for each in pools:
        members = _object(each, "spec").get("machineInventories") or []
        names = {str(member.get("name")) for member in members if isinstance(member, dict)} if isinstance(members, list) else set()
        selected = _object(each, "status").get("selected")
        names |= set(map(str, selected)) if isinstance(selected, list) else set()
        unavailable = _whole(_object(each, "status").get("unavailable"), 0)
        found[str(_object(each, "metadata").get("name") or "")] = Pool(len(names), min(unavailable, len(names)))
    return found


def template_pools(templates: Iterable[Manifest]) -> dict[str, str]:
    """The pool of each BaremetalMachineTemplate."""
    return {
        str(_object(each, "metadata").get("name") or ""): str(
            _object(each, "spec", "template", "spec", "machineInventoryPoolRef").get("name") or ""
        )
        for each in templates
    }


def summary(found: Iterable[Objection]) -> str:
    """All objections as a sentence each, for a condition."""
    return "; ".join(dict.fromkeys(each.message for each in found))


def _behind(workers: Rollout, plane: Rollout, guard: Guard, field: str) -> list[Objection]:
    at, ahead = _version(workers.version), _version(plane.version)
    if at is None or ahead is None or at.major != ahead.major or ahead.minor - at.minor <= _KUBELET_SKEW:
        return []
    way = f"upgrade the workers to a v{ahead.major}.{ahead.minor - _KUBELET_SKEW} or later first"
    return [
        Objection(
            guard,
            field,
            f"{workers.title} is {workers.version}, more than {_KUBELET_SKEW} minor versions behind its control plane, "
            f"which is {plane.version}: {way}",
        )
    ]


def _pool(of: Rollout, around: Surroundings) -> Pool | None:
    name = (around.templates or {}).get(of.template)
    return (around.pools or {}).get(name) if name is not None else None


def _version(text: str) -> Version | None:
    """Without what follows a dash, by which distributions count their builds of a version."""
    try:
        return without_prerelease(Version.tolerant(text)) if text else None
    except ValueError:
        return None


def _object(content: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The object at a path; empty where there is none."""
    here: Any = content
    for name in path:
        here = here.get(name) if isinstance(here, dict) else None
    return here if isinstance(here, dict) else {}


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _owner(metadata: Mapping[str, Any]) -> str:
    owners = metadata.get("ownerReferences")
    named = [each.get("name") for each in owners or () if isinstance(each, dict) and each.get("kind") == "Cluster"]
    return str(named[0] or "") if named else ""
