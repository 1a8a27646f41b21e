"""What the API server asks before it stores an object of the bare-metal provider, or one that rolls machines of ours.

The provider's own kinds are held to what can be known to be wrong: see each ``…_errors``.  KubeadmControlPlane, MachineDeployment and the
image catalog are others': of them the API server asks only where they concern us, and stores them unseen while nobody answers.
Which of the guards' objections refuse such an object and which only warn, :mod:`slipway.fleet.baremetal.rollouts.guards` says.
"""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address, ip_interface
from typing import TYPE_CHECKING, TypeVar

from slipway.api.cluster.infrastructure.cluster import BaremetalCluster, Endpoint
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.infrastructure.names import AHEAD, CATALOG_NAME, INTERNAL, PROVIDER_ID_PREFIX, VIP_READY_CONDITION, inventory_of
from slipway.api.cluster.infrastructure.pool import MachineInventoryPool
from slipway.api.cluster.infrastructure.template import BaremetalMachineTemplate
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
)
from slipway.api.elemental.inventory import MachineInventory
from slipway.api.machinery.fieldpath import FieldError, Path, duplicate, forbidden, invalid, required
from slipway.api.machinery.labels import subdomain_problems
from slipway.api.machinery.version import Version
from slipway.fleet.baremetal.rollouts import guards
from slipway.fleet.baremetal.rollouts.known import NotKnownYetError
from slipway.fleet.contract import selectors
from slipway.fleet.contract.admission import problems, read, stored
from slipway.runtime.webhook.admission import Problem, Validator, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from ipaddress import IPv4Network, IPv6Address, IPv6Network

    from slipway.api.cluster.kinds import Kind
    from slipway.api.cluster.meta import Type
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.baremetal.rollouts.guards import Objection, Surroundings
    from slipway.fleet.baremetal.rollouts.known import Known
    from slipway.runtime.webhook.admission import AdmissionRequest

T = TypeVar("T", bound="Type")

PURPOSE = "baremetal"
_IMMUTABLE = "field is immutable"
_CATALOG_CONDITION = f"object.metadata.name == '{CATALOG_NAME}'"


def webhooks(known: Known, catalog_namespace: str = "") -> list[Validator]:
    """``catalog_namespace`` is where the catalog is, where it is not beside the machines."""
    judge_rollout = _Rollouts(known, catalog_namespace)
    return [
        Validator(BAREMETAL_CLUSTER, _judge(BaremetalCluster, lambda new, old: _cluster_verdict(new, old, known))),
        Validator(BAREMETAL_MACHINE, _judge(BaremetalMachine, lambda new, old: Verdict(problems(machine_errors(new, old))))),
        Validator(
            BAREMETAL_MACHINE_TEMPLATE, _judge(BaremetalMachineTemplate, lambda new, old: Verdict(problems(template_errors(new, old))))
        ),
        Validator(MACHINE_INVENTORY_POOL, _judge(MachineInventoryPool, lambda new, old: _pool_verdict(new, old, known))),
        Validator(KUBEADM_CONTROL_PLANE, judge_rollout.judge, purpose=PURPOSE, condition=guards.CONTROL_PLANE_CONDITION, fails_open=True),
        Validator(MACHINE_DEPLOYMENT, judge_rollout.judge, purpose=PURPOSE, condition=guards.DEPLOYMENT_CONDITION, fails_open=True),
        Validator(CONFIG_MAP, _judge_catalog, purpose=PURPOSE, condition=_CATALOG_CONDITION, fails_open=True),
    ]


def _judge(into: type[T], judged: Callable[[T, T | None], Verdict]) -> Callable[[AdmissionRequest], Verdict]:
    def judge(request: AdmissionRequest) -> Verdict:
        if request.object is None:
            return Verdict()
        if _was_taken(request.object, request.old):
            return Verdict()
        new = read(request.object, into)
        if isinstance(new, FieldError):
            return Verdict(problems([new]))
        return judged(new, stored(request.old, into))

    return judge


def _was_taken(new: Manifest, old: Manifest | None) -> bool:
    """Whether there is nothing to judge: one that was stored when nobody looked can still be labelled, and can go."""
    return old is not None and (new.get("spec") == old.get("spec") or bool((new.get("metadata") or {}).get("deletionTimestamp")))


# The provider's own kinds.


def _cluster_verdict(new: BaremetalCluster, old: BaremetalCluster | None, known: Known) -> Verdict:
    namespace = new.metadata.get("namespace", "")
    found = cluster_errors(new, old)
    try:
        others = [each for each in _read(known.list(BAREMETAL_CLUSTER, ""), BaremetalCluster) if not _same(each.metadata, new.metadata)]
        hosts = _read(known.list(MACHINE_INVENTORY, namespace), MachineInventory)
    except NotKnownYetError:
        return Verdict(problems(found), ["the address was not compared with those of hosts and of other clusters, which are not known yet"])
    errors, warnings = address_errors(new, old, others, hosts)
    return Verdict(problems([*found, *errors]), warnings)


def cluster_errors(new: BaremetalCluster, old: BaremetalCluster | None) -> list[FieldError]:
    """The endpoint stays once it is there; a virtual router has a number, and an address of its own."""
    path, spec = Path("spec"), new.spec
    found: list[FieldError] = []
    was, endpoint = old.spec.control_plane_endpoint if old is not None else Endpoint(), spec.control_plane_endpoint
    if was.host and (was.host, was.port or endpoint.port) != (endpoint.host, endpoint.port):
        found.append(forbidden(path.child("controlPlaneEndpoint"), f"{_IMMUTABLE} once it is set: it is {was}"))
    balancer, place = spec.control_plane_load_balancer, path.child("controlPlaneLoadBalancer")
    had = old.spec.control_plane_load_balancer if old is not None and _is_shared(old) else None
    if had is not None and (balancer is None or (balancer.type or INTERNAL, balancer.vrid) != (had.type or INTERNAL, had.vrid)):
        found.append(
            forbidden(
                place, f"type and vrid stay as they are while hosts share the address: those of vrid {had.vrid} would not hear new ones"
            )
        )
    if balancer is None:
        return found if endpoint.host else [*found, required(place, "name the address of the control plane")]
    if endpoint.host and balancer.host != endpoint.host:
        found.append(invalid(place.child("host"), balancer.host, f"must be that of the control plane's endpoint, {endpoint.host}"))
    if balancer.type == INTERNAL or not balancer.type:
        if not balancer.vrid:
            found.append(
                required(
                    place.child("vrid"), "choose a number from 1 to 255 that no other virtual router in the hosts' network segment has"
                )
            )
        elif not 1 <= balancer.vrid <= 255:
            found.append(invalid(place.child("vrid"), balancer.vrid, "must be from 1 to 255"))
        if not isinstance(_address(balancer.host), IPv4Address):
            found.append(invalid(place.child("host"), balancer.host, "must be an IPv4 address, which hosts can hold among themselves"))
    return found


def _is_shared(cluster: BaremetalCluster) -> bool:
    """Whether there are hosts that hold the virtual address among themselves."""
    return any(each.type == VIP_READY_CONDITION and each.status == "True" for each in cluster.status.conditions)


def address_errors(
    new: BaremetalCluster, old: BaremetalCluster | None, others: Iterable[BaremetalCluster], hosts: Sequence[MachineInventory]
) -> tuple[list[FieldError], list[str]]:
    """What is wrong with the virtual address beside other clusters and hosts, and what may be.

    Two clusters are in one network segment where a host has a network that both addresses are in; where no host has one, nobody knows.
    """
    balancer = new.spec.control_plane_load_balancer
    virtual = None if balancer is None else _address(balancer.host)
    if balancer is None or virtual is None or (balancer.type or INTERNAL) != INTERNAL:
        return [], []
    if old is not None and old.spec.control_plane_load_balancer == balancer:
        # It was so before: whoever labels it has not done it.
        return [], []
    place = Path("spec", "controlPlaneLoadBalancer")
    errors: list[FieldError] = []
    warnings: list[str] = []
    owners = [host.metadata.get("name", "") for host in hosts if virtual in _own_addresses(host)]
    if owners:
        errors.append(invalid(place.child("host"), balancer.host, f"is the host {owners[0]}'s own address: choose one that nobody has"))
    segments = {network for host in hosts for network in _networks(host) if virtual in network}
    for other in others:
        theirs = other.spec.control_plane_load_balancer
        if theirs is None or (theirs.type or INTERNAL) != INTERNAL:
            continue
        name = f"{other.metadata.get('namespace', '')}/{other.metadata.get('name', '')}"
        address = _address(theirs.host)
        if address == virtual:
            errors.append(invalid(place.child("host"), balancer.host, f"is the address of the BaremetalCluster {name}"))
        elif balancer.vrid and theirs.vrid == balancer.vrid:
            if any(address in network for network in segments if address is not None and address.version == network.version):
                errors.append(
                    invalid(place.child("vrid"), balancer.vrid, f"is in use by the BaremetalCluster {name} in the same network segment")
                )
            elif not segments:
                warnings.append(f"the BaremetalCluster {name} has the vrid {balancer.vrid}, too: they must not be in one network segment")
    return errors, warnings


def machine_errors(new: BaremetalMachine, old: BaremetalMachine | None) -> list[FieldError]:
    """A machine stays with its pool and its host."""
    path, spec = Path("spec"), new.spec
    found: list[FieldError] = []
    if old is not None and old.spec.machine_inventory_pool_ref != spec.machine_inventory_pool_ref:
        found.append(forbidden(path.child("machineInventoryPoolRef"), f"{_IMMUTABLE}: delete the Machine to have a host of another pool"))
    if old is not None and old.spec.provider_id and old.spec.provider_id != spec.provider_id:
        found.append(forbidden(path.child("providerID"), f"{_IMMUTABLE} once it is set: it is {old.spec.provider_id}"))
    inventory = inventory_of(spec.provider_id)
    if spec.provider_id and (not inventory or subdomain_problems(inventory)):
        found.append(invalid(path.child("providerID"), spec.provider_id, f"must be {PROVIDER_ID_PREFIX} and the name of an inventory"))
    return found


def template_errors(new: BaremetalMachineTemplate, old: BaremetalMachineTemplate | None) -> list[FieldError]:
    """A template stays as it is, as all of Cluster API's do: what refers to it would not notice."""
    if old is None or old.spec == new.spec:
        return []
    way = "make another template, and let the control plane or the MachineDeployment refer to that"
    return [forbidden(Path("spec", "template", "spec"), f"{_IMMUTABLE}: {way}")]


def _pool_verdict(new: MachineInventoryPool, old: MachineInventoryPool | None, known: Known) -> Verdict:
    found = pool_errors(new, old)
    try:
        others = _read(known.list(MACHINE_INVENTORY_POOL, new.metadata.get("namespace", "")), MachineInventoryPool)
    except NotKnownYetError:
        return Verdict(problems(found), ["the hosts were not compared with those of other pools, which are not known yet"])
    return Verdict(problems([*found, *member_errors(new, old, [each for each in others if not _same(each.metadata, new.metadata)])]))


def pool_errors(new: MachineInventoryPool, old: MachineInventoryPool | None) -> list[FieldError]:
    """A host is named once, and so is a hostname; a pool stays with its cluster while it has hosts in use."""
    path = Path("spec", "machineInventories")
    found: list[FieldError] = []
    names: set[str] = set()
    hostnames: set[str] = set()
    for position, member in enumerate(new.spec.machine_inventories):
        place, hostname = path.index(position), member.hostname or member.name
        if member.name in names:
            found.append(duplicate(place.child("name"), member.name))
        elif hostname in hostnames:
            found.append(duplicate(place.child("hostname"), hostname))
        names.add(member.name)
        hostnames.add(hostname)
        found += [invalid(place.child("hostname"), member.hostname, each) for each in _hostname_problems(member.hostname)]
    why = selectors.problem(new.spec.selector) if new.spec.selector is not None else ""
    if why:
        found.append(forbidden(Path("spec", "selector", "matchExpressions"), why))
    found += _staging_errors(new)
    if old is not None and old.spec.cluster_name != new.spec.cluster_name:
        used = old.status.total - old.status.available - old.status.unavailable
        if used > 0:
            detail = f"{used} hosts of the pool are in use by the cluster {old.spec.cluster_name}"
            found.append(forbidden(Path("spec", "clusterName"), f"cannot be changed while {detail}"))
    return found


def _staging_errors(new: MachineInventoryPool) -> list[FieldError]:
    """A version that is to be staged ahead is one, in a pool that stages."""
    named, place = new.spec.next_version, Path("spec", "nextVersion")
    if not named:
        return []
    if new.spec.image_staging != AHEAD:
        return [forbidden(place, f"nothing is staged ahead in this pool: set spec.imageStaging to {AHEAD}, or take the version out")]
    try:
        Version.parse(named)
    except ValueError:
        return [invalid(place, named, "must be a Kubernetes version, such as v1.35.4")]
    return []


def member_errors(new: MachineInventoryPool, old: MachineInventoryPool | None, others: Iterable[MachineInventoryPool]) -> list[FieldError]:
    """A host is in one active pool: one that is not being deleted; and a cluster has a hostname once.

    Only what is added is judged, so that a pool can be mended.
    """
    had = {member.name: member.hostname for member in old.spec.machine_inventories} if old is not None else {}
    active = [pool for pool in others if not pool.metadata.get("deletionTimestamp")]
    taken = {member.name: pool.metadata.get("name", "") for pool in active for member in pool.spec.machine_inventories}
    hostnames = {
        member.hostname or member.name: pool.metadata.get("name", "")
        for pool in active
        if pool.spec.cluster_name == new.spec.cluster_name
        for member in pool.spec.machine_inventories
    }
    found = []
    for position, member in enumerate(new.spec.machine_inventories):
        place, hostname = Path("spec", "machineInventories").index(position), member.hostname or member.name
        if had.get(member.name) == member.hostname:
            continue
        if member.name in taken and member.name not in had:
            detail = f"is in the pool {taken[member.name]}: a host is in one pool at most; take it out of that one first"
            found.append(invalid(place.child("name"), member.name, detail))
        elif hostname in hostnames and member.name not in taken:
            detail = f"is the name of a host in the pool {hostnames[hostname]} of the same cluster, and a cluster has one Node of a name"
            found.append(invalid(place.child("hostname"), hostname, detail))
    return found


def _hostname_problems(hostname: str) -> list[str]:
    """A Node has the name of its host, and the kernel takes 64 characters of it."""
    if not hostname:
        return []
    return [*subdomain_problems(hostname), *(["must be no more than 63 characters"] if len(hostname) > 63 else [])]


# Others' kinds.


class _Rollouts:
    """Judges control planes and MachineDeployments whose machines are ours."""

    def __init__(self, known: Known, catalog_namespace: str) -> None:
        self._known, self._catalog_namespace = known, catalog_namespace

    def judge(self, request: AdmissionRequest) -> Verdict:
        after = None if request.object is None else guards.rollout(request.object)
        if after is None or (request.object or {}).get("metadata", {}).get("deletionTimestamp"):
            return Verdict()
        before = None if request.old is None else guards.rollout(request.old)
        after = after._replace(namespace=after.namespace or request.namespace)
        around, unknown = surroundings(self._known, after.namespace, self._catalog_namespace)
        refused, told = guards.judged(before, after, around)
        return Verdict([_problem(each) for each in refused], [*(each.message for each in told), *unknown])


def surroundings(known: Known, namespace: str, catalog_namespace: str = "") -> tuple[Surroundings, list[str]]:
    """What a rollout in a namespace is judged by, and a sentence on each thing that is not known yet."""
    unknown: list[str] = []

    def looked(kind: Kind, within: str) -> Sequence[Manifest] | None:
        try:
            return known.list(kind, within)
        except NotKnownYetError:
            unknown.append(f"{kind.plural} were not looked at: they are not known yet")
            return None

    place = catalog_namespace or namespace
    entries: dict[str, str] | None = None
    try:
        found = known.get(CONFIG_MAP, place, CATALOG_NAME)
        entries = dict((found or {}).get("data") or {})
    except NotKnownYetError:
        unknown.append("the image catalog was not looked at: it is not known yet")
    pools, templates = looked(MACHINE_INVENTORY_POOL, namespace), looked(BAREMETAL_MACHINE_TEMPLATE, namespace)
    planes, deployments = looked(KUBEADM_CONTROL_PLANE, namespace), looked(MACHINE_DEPLOYMENT, namespace)
    rollouts = None
    if planes is not None and deployments is not None:
        of_kind = [(KUBEADM_CONTROL_PLANE, planes), (MACHINE_DEPLOYMENT, deployments)]
        read_as = [
            guards.rollout({"kind": kind.kind, "apiVersion": kind.api_version, **each}) for kind, found_ in of_kind for each in found_
        ]
        rollouts = [each for each in read_as if each is not None]
    around = guards.Surroundings(
        catalog=entries,
        catalog_place=f"{place}/{CATALOG_NAME}",
        pools=None if pools is None else guards.pool_sizes(pools),
        templates=None if templates is None else guards.template_pools(templates),
        rollouts=rollouts,
    )
    return around, unknown


def _judge_catalog(request: AdmissionRequest) -> Verdict:
    """An entry that is added or changed and no good is refused; one that was there before is told."""
    metadata = (request.object or {}).get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != CATALOG_NAME:
        return Verdict()
    new, old = ({} if each is None else each.get("data") or {} for each in (request.object, request.old))
    found = guards.entry_objections(new)
    refused = [each for each in found if new != old and _changed(each, new, old)]
    return Verdict([_problem(each) for each in refused], [each.message for each in found if each not in refused])


def _changed(objection: Objection, new: Manifest, old: Manifest) -> bool:
    key = objection.field.removeprefix("data[").removesuffix("]")
    return bool(new.get(key) != old.get(key))


def _problem(objection: Objection) -> Problem:
    return Problem(objection.field, "FieldValueForbidden", f"{objection.field}: Forbidden: {objection.message}")


def _read(content: Iterable[Manifest], into: type[T]) -> list[T]:
    """Those that can be read: one that cannot is no reason to refuse another."""
    found = (stored(each, into) for each in content)
    return [each for each in found if each is not None]


def _same(one: Manifest, other: Manifest) -> bool:
    return (one.get("namespace"), one.get("name")) == (other.get("namespace"), other.get("name"))


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _interfaces(host: MachineInventory) -> list[tuple[IPv4Address | IPv6Address, IPv4Network | IPv6Network]]:
    found = []
    for interface in host.spec.observed_network.interfaces if host.spec.observed_network is not None else ():
        for each in interface.addresses:
            try:
                own = ip_interface(each)
            except ValueError:
                continue
            found.append((own.ip, own.network))
    return found


def _own_addresses(host: MachineInventory) -> set[IPv4Address | IPv6Address]:
    return {address for address, _ in _interfaces(host)}


def _networks(host: MachineInventory) -> set[IPv4Network | IPv6Network]:
    return {network for _, network in _interfaces(host)}
