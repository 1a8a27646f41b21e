"""The prerequisites of an upgrade on bare metal, one row each: a pure function of what :mod:`.survey` has read.

What cannot be checked from here says so: it is neither met nor failed, and somebody has to look.  A cluster of other infrastructure has
the same rows; those that are about hosts say that it has none of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT
from slipway.api.elemental.inventory import MachineInventory
from slipway.fleet.baremetal.plans import catalog
from slipway.fleet.baremetal.rollouts import guards
from slipway.fleet.contract.admission import stored, with_prefix
from slipway.fleet.contract.conditions import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest

Status = Literal["ok", "failed", "warning", "unknown"]
OK: Status = "ok"
FAILED: Status = "failed"
WARNING: Status = "warning"
UNKNOWN: Status = "unknown"
# The next image is written beside the one that runs.
LEAST_FREE_BYTES = 4 * 2**30
NOT_BARE_METAL = "not bare metal"
# Of more hosts than these, the number.
_NAMED = 5


class Row(NamedTuple):
    """One prerequisite, whether it is met, and what to do where it is not."""

    check: str
    status: Status
    message: str


class HeldLease(NamedTuple):
    """By which a manager leads: the controllers, where the Lease is, and the Lease itself, None where there is none."""

    controllers: str
    place: str
    lease: Manifest | None


class Survey(NamedTuple):
    """What there is of a cluster, as far as its upgrade is concerned."""

    cluster: Manifest
    baremetal_cluster: Manifest | None = None
    control_plane: Manifest | None = None
    deployments: Sequence[Manifest] = ()
    other_rollouts: Sequence[Manifest] = ()
    """Control planes and MachineDeployments of other clusters, which may take hosts from the same pools."""
    templates: Mapping[str, str] = {}
    """The pool of each BaremetalMachineTemplate."""
    pools: Sequence[Manifest] = ()
    inventories: Sequence[Manifest] = ()
    machines: Sequence[Manifest] = ()
    """The cluster's BaremetalMachines."""
    seed_images: Sequence[Manifest] = ()
    catalog: Mapping[str, str] | None = None
    catalog_place: str = names.CATALOG_NAME
    platform_registry: str = ""
    leases: Sequence[HeldLease] = ()
    nodes: Sequence[Manifest] | None = None
    nodes_error: str = ""
    """Why the Nodes cannot be read."""
    now: datetime | None = None


def rows(found: Survey, to: str) -> list[Row]:
    """Every prerequisite of an upgrade to a version, in the order in which an operator would look."""
    version = with_prefix(to)
    pools = _pools(found)
    hosts = _members(found, pools)
    of_hosts = [
        _at_rest(found, pools),
        _image(found, version),
        _entries(found),
        _iso(found, version),
        _registry_known(found),
        _registry_reached(found, hosts),
        _space(hosts),
        _surge(found),
        _capacity(found),
    ]
    if not is_bare_metal(found):
        of_hosts = [Row(each.check, OK, NOT_BARE_METAL) for each in of_hosts]
    return [
        _managers(found),
        _distribution(),
        _reachable(found),
        _nodes(found),
        *of_hosts,
        _steps(found, version),
        _workers(found, version),
        _snapshot(),
    ]


def images(found: Survey, versions: Iterable[str]) -> list[Row]:
    """Of versions that an upgrade goes to later: whether there are images of them."""
    return [_image(found, with_prefix(each)) for each in versions] if is_bare_metal(found) else []


def is_bare_metal(found: Survey) -> bool:
    """Whether hosts of ours are what the cluster's machines are made of."""
    reference = (found.cluster.get("spec") or {}).get("infrastructureRef") or {}
    return reference.get("kind") == BAREMETAL_CLUSTER.kind or bool(_own(found))


def failed(table: Iterable[Row]) -> int:
    return sum(row.status == FAILED for row in table)


# The management side.


def _managers(found: Survey) -> Row:
    """A manager that leads renews its Lease all the time."""
    check = "management controllers are ready"
    idle = [f"{each.controllers} ({each.place})" for each in found.leases if each.lease and not _is_held(each.lease, found.now)]
    if idle:
        return Row(check, FAILED, f"nobody works as {', '.join(idle)}: start the manager, and wait until it is ready")
    silent = [each.controllers for each in found.leases if not each.lease]
    if silent:
        return Row(
            check, UNKNOWN, f"there is no Lease of {', '.join(silent)}: their manager runs without an election, or not at all; look for it"
        )
    return Row(check, OK, ", ".join(each.controllers for each in found.leases))


def _is_held(lease: Manifest | None, now: datetime | None) -> bool:
    spec = (lease or {}).get("spec") or {}
    renewed = moment(str(spec.get("renewTime") or ""))
    if not spec.get("holderIdentity") or renewed is None:
        return False
    return now is None or (now - renewed).total_seconds() <= float(spec.get("leaseDurationSeconds") or 0)


def _distribution() -> Row:
    message = "not checkable here: the Distribution Version belongs to the platform; complete its upgrade first"
    return Row("the Distribution Version upgrade is complete", UNKNOWN, message)


def _snapshot() -> Row:
    message = "not checkable here: every reprovisioning clears /var/lib/etcd; keep a snapshot of etcd outside of the nodes"
    return Row("a snapshot of etcd outlives the nodes", UNKNOWN, message)


# The cluster.


def _reachable(found: Survey) -> Row:
    endpoint = ((found.cluster.get("spec") or {}).get("controlPlaneEndpoint")) or {}
    place = f"{endpoint.get('host') or '?'}:{endpoint.get('port') or '?'}"
    check = "the control plane is reached through its endpoint"
    return Row(check, OK, place) if found.nodes is not None else Row(check, FAILED, f"{place} does not answer: {found.nodes_error}")


def _nodes(found: Survey) -> Row:
    check = "all Nodes are Ready"
    if found.nodes is None:
        return Row(check, FAILED, "the Nodes cannot be read")
    unready = [_name(node) for node in found.nodes if _condition(node, "Ready") != "True"]
    if unready or not found.nodes:
        return Row(check, FAILED, f"not Ready: {_listed(unready)}" if unready else "there are none")
    if len(found.nodes) < len(found.machines):
        return Row(
            check, FAILED, f"{len(found.nodes)} Nodes for {len(found.machines)} machines: wait for the others, or see what they lack"
        )
    return Row(check, OK, f"{len(found.nodes)} Nodes")


def _at_rest(found: Survey, pools: Mapping[str, Manifest]) -> Row:
    check = "no machine is on its way"
    moving = [
        f"{_name(each)} ({phase})"
        for each in found.machines
        if (phase := str((each.get("status") or {}).get("phase") or "Pending")) != names.RUNNING_PHASE
    ]
    if moving:
        return Row(check, FAILED, f"{_listed(moving)}: wait, or see their conditions")
    busy = [name for name, pool in pools.items() if any(_count(pool, each) for each in ("preparing", "reprovisioning"))]
    if busy:
        return Row(check, FAILED, f"hosts of {_listed(busy)} are being prepared: wait")
    return Row(check, OK, f"{len(found.machines)} machines are Running")


# Images.


def _image(found: Survey, version: str) -> Row:
    check = f"{version} is in the image catalog"
    try:
        reference = catalog.entry(found.catalog, found.catalog_place, version)
        catalog.split(reference, f"the entry {version} of the ConfigMap {found.catalog_place}")
    except (catalog.CatalogMissError, catalog.InvalidImageError) as error:
        return Row(check, FAILED, error.message)
    return Row(check, OK, reference)


def _entries(found: Survey) -> Row:
    wrong = guards.entry_objections(found.catalog or {}, found.catalog_place)
    return Row(
        "the catalog's other entries are good", WARNING if wrong else OK, guards.summary(wrong) or f"{len(found.catalog or {})} entries"
    )


def _iso(found: Survey, version: str) -> Row:
    """For hosts to come: the image that they register from."""
    check = f"the {names.ISO_SUFFIX} image of {version} is there"
    try:
        registry, rest = catalog.split(catalog.entry(found.catalog, found.catalog_place, version), "the entry")
    except (catalog.CatalogMissError, catalog.InvalidImageError):
        return Row(check, UNKNOWN, f"{version} has no image in the catalog")
    expected = iso_reference(registry, rest)
    if any(((each.get("spec") or {}).get("baseImage") or "") == expected for each in found.seed_images):
        return Row(check, OK, f"a SeedImage is made from {expected}")
    return Row(check, UNKNOWN, f"not checkable here: {expected} is what SeedImages for new hosts are to be made from")


def iso_reference(registry: str, rest: str) -> str:
    """The registration image beside a base image: its repository with -iso, under the same tag.  A digest is the base image's own."""
    repository, _, _ = rest.partition("@")
    path, colon, tag = repository.rpartition(":")
    named = f"{path}{names.ISO_SUFFIX}:{tag}" if colon else f"{repository}{names.ISO_SUFFIX}"
    return f"{registry}/{named}" if registry else named


def _registry_known(found: Survey) -> Row:
    check = "the registry of hosts is known"
    address = _registry(found)
    way = f"set the annotation {names.REGISTRY_ADDRESS_ANNOTATION} on the Cluster"
    return Row(check, OK, address) if address else Row(check, FAILED, f"nobody names it: {way}")


def _registry_reached(found: Survey, hosts: Mapping[str, MachineInventory | None]) -> Row:
    check = "the registry is reachable from every host"
    address = _registry(found)
    reports = {name: host.status.host_facts.registry for name, host in hosts.items() if host and host.status.host_facts}
    broken = [
        f"{name} ({report.message or 'no answer'})" for name, report in reports.items() if report is not None and not report.reachable
    ]
    if broken:
        return Row(check, FAILED, f"not from {_listed(broken)}")
    silent = [name for name in hosts if (report := reports.get(name)) is None or (address and _bare(report.address) != address)]
    if silent or not hosts:
        return Row(check, UNKNOWN, f"not reported by {_listed(silent)}" if silent else "the cluster's pools have no hosts")
    return Row(check, OK, f"{len(hosts)} hosts reach {address}")


def _space(hosts: Mapping[str, MachineInventory | None]) -> Row:
    check = "hosts have space for one more image"
    least: dict[str, int] = {}
    for name, host in hosts.items():
        free = host.status.host_facts.free_bytes if host and host.status.host_facts else {}
        if free:
            least[name] = min(free.values())
    tight = [f"{name} ({free // 2**20} MiB)" for name, free in least.items() if free < LEAST_FREE_BYTES]
    if tight:
        return Row(check, WARNING, f"less than {LEAST_FREE_BYTES // 2**30} GiB: {_listed(tight)}")
    silent = [name for name in hosts if name not in least]
    return Row(check, UNKNOWN, f"not reported by {_listed(silent)}") if silent else Row(check, OK, f"{len(least)} hosts")


# The rollout.


def _surge(found: Survey) -> Row:
    around = _surroundings(found)
    wrong = [each for rollout in _own(found) for each in guards.surge_objections(rollout, around)]
    return Row("maxSurge is 0 everywhere", FAILED if wrong else OK, guards.summary(wrong) or _titles(found))


def _capacity(found: Survey) -> Row:
    around = _surroundings(found)
    wrong = [each for rollout in _own(found) for each in guards.pool_objections(rollout, around)]
    sizes = ", ".join(
        f"{name}: {size.usable} of {size.total} hosts" for name, size in (around.pools or {}).items() if name in _pools(found)
    )
    return Row("pools can replace one machine at a time", FAILED if wrong else OK, guards.summary(wrong) or sizes)


def _steps(found: Survey, version: str) -> Row:
    check = "the control plane goes up one minor version at most"
    plane = next((each for each in _all(found) if each.is_control_plane), None)
    if plane is None:
        return Row(check, UNKNOWN, "the cluster has no KubeadmControlPlane")
    if guards.is_downgrade(plane.version, version):
        return Row(check, FAILED, f"{plane.title} is {plane.version} already, and cannot go back to {version}")
    after = plane._replace(version=version, steps=False)
    wrong = [*guards.step_objections(plane, after), *guards.skew_objections(after, guards.Surroundings(rollouts=_all(found)))]
    return Row(check, FAILED if wrong else OK, guards.summary(wrong) or f"from {plane.version} to {version}")


def _workers(found: Survey, version: str) -> Row:
    """As if the control plane were through already, since it goes first."""
    check = "workers can follow the control plane"
    around = guards.Surroundings(rollouts=[each._replace(version=version) if each.is_control_plane else each for each in _all(found)])
    workers = [each for each in _all(found) if not each.is_control_plane]
    wrong = [each for one in workers for each in guards.skew_objections(one._replace(version=version), around)]
    back = [f"{each.title} is {each.version} already" for each in workers if guards.is_downgrade(each.version, version)]
    words = "; ".join([*back, *([guards.summary(wrong)] if wrong else [])])
    told = ", ".join(f"{each.name} from {each.version}" for each in workers) or "there are none"
    return Row(check, FAILED if words else OK, words or told)


# What was read.


def _own(found: Survey, *, anybodys: bool = False) -> list[guards.Rollout]:
    """What rolls machines of ours, or of ``anybodys``, in the cluster."""
    planes = [found.control_plane] if found.control_plane is not None else []
    kinds = [*((KUBEADM_CONTROL_PLANE, each) for each in planes), *((MACHINE_DEPLOYMENT, each) for each in found.deployments)]
    read = [guards.rollout({"kind": kind.kind, "apiVersion": kind.api_version, **each}, anybodys=anybodys) for kind, each in kinds]
    return [each for each in read if each is not None]


def _all(found: Survey) -> list[guards.Rollout]:
    """Whatever the machines are made of; of one cluster, however that is labelled."""
    return [each._replace(cluster=_name(found.cluster)) for each in _own(found, anybodys=True)]


def _surroundings(found: Survey) -> guards.Surroundings:
    others = [guards.rollout(each) for each in found.other_rollouts]
    return guards.Surroundings(
        catalog=found.catalog or {},
        catalog_place=found.catalog_place,
        pools=guards.pool_sizes(found.pools),
        templates=found.templates,
        rollouts=[*_own(found), *(each for each in others if each is not None)],
    )


def _titles(found: Survey) -> str:
    return ", ".join(each.title for each in _own(found)) or "nothing rolls machines of ours"


def _pools(found: Survey) -> dict[str, Manifest]:
    """The pools that the cluster takes hosts from."""
    wanted = {found.templates.get(each.template, "") for each in _own(found)}
    return {_name(pool): pool for pool in found.pools if _name(pool) in wanted}


def _members(found: Survey, pools: Mapping[str, Manifest]) -> dict[str, MachineInventory | None]:
    """The hosts of the pools; None for one that is not there or cannot be read."""
    there = {_name(each): stored(each, MachineInventory) for each in found.inventories}
    read_pools = [read for pool in pools.values() if (read := stored(pool, MachineInventoryPool)) is not None]
    return {member.name: there.get(member.name) for pool in read_pools for member in pool.members}


def _registry(found: Survey) -> str:
    annotations = (found.cluster.get("metadata") or {}).get("annotations") or {}
    return _bare(str(annotations.get(names.REGISTRY_ADDRESS_ANNOTATION) or found.platform_registry))


def _bare(address: str) -> str:
    """An address as image references have it."""
    return address.strip().removeprefix("https://").removeprefix("http://").rstrip("/")


def _name(content: Manifest) -> str:
    return str((content.get("metadata") or {}).get("name") or "")


def _condition(content: Manifest, of: str) -> str:
    conditions = (content.get("status") or {}).get("conditions") or []
    return next((str(each.get("status")) for each in conditions if each.get("type") == of), "")


def _count(pool: Manifest, field: str) -> int:
    return int((pool.get("status") or {}).get(field) or 0)


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
